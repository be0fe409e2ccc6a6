-- The order among the tasks of a queue: their priority and their tenant. It is null for those that ask for none, which
-- need no further index.
ALTER TABLE record ADD COLUMN lane TEXT;
DROP INDEX record_by_queue;
CREATE INDEX record_by_queue ON record (queue, ready_at, id, has_hint, incarnation, version, lane)
    WHERE ready_at IS NOT NULL AND lane IS NULL;
CREATE INDEX record_laned_by_queue ON record (queue, ready_at, id, has_hint, lane)
    WHERE ready_at IS NOT NULL AND lane IS NOT NULL;
CREATE INDEX record_by_lane ON record (queue, lane, ready_at, id, has_hint, incarnation, version)
    WHERE ready_at IS NOT NULL AND lane IS NOT NULL AND has_hint;
