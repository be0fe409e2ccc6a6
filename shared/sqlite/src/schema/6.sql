-- What has failed, of tasks and of executions: when, what it is (a task's kind, an execution's workflow), and the step because
-- of which an execution failed. Nothing else has these columns.
ALTER TABLE record ADD COLUMN failed_at INTEGER;
ALTER TABLE record ADD COLUMN failed_of TEXT;
ALTER TABLE record ADD COLUMN failed_step TEXT;
CREATE INDEX failed ON record (kind, error, failed_of, list_at, id, failed_at, failed_step) WHERE failed_at IS NOT NULL;
-- Tasks have an error too.
DROP INDEX execution_by_error;
CREATE INDEX execution_by_error ON record (error, list_at, id) WHERE error IS NOT NULL AND kind = 1;

-- The labels of tasks beside those of executions.
CREATE TABLE labels (
    -- That of the record.
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    -- As `list_at`, `id` and `row` of the record.
    at INTEGER NOT NULL,
    id TEXT NOT NULL,
    row INTEGER NOT NULL,
    PRIMARY KEY (kind, name, value, at, id)
) STRICT, WITHOUT ROWID;
INSERT INTO labels SELECT 1, name, value, at, id, row FROM label;
DROP TRIGGER record_leaves_no_label;
DROP TABLE label;
ALTER TABLE labels RENAME TO label;
CREATE INDEX label_by_row ON label (row);
CREATE TRIGGER record_leaves_no_label AFTER DELETE ON record WHEN old.kind IN (0, 1) BEGIN
    DELETE FROM label WHERE row = old.row;
END;
