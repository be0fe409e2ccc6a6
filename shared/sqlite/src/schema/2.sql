-- Executions of all workflows by status, by error and by label. Most have completed: they are found by their workflow.
ALTER TABLE record ADD COLUMN error TEXT;
CREATE INDEX execution_by_status ON record (status, list_at, id, list) WHERE kind = 1 AND status <> 'completed';
CREATE INDEX execution_by_error ON record (error, list_at, id) WHERE error IS NOT NULL;

-- The labels of executions.
CREATE TABLE label (
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    -- The execution's, as `list_at`, `id` and `row` of its record.
    at INTEGER NOT NULL,
    id TEXT NOT NULL,
    row INTEGER NOT NULL,
    PRIMARY KEY (name, value, at, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX label_by_row ON label (row);
CREATE TRIGGER record_leaves_no_label AFTER DELETE ON record WHEN old.kind = 1 BEGIN
    DELETE FROM label WHERE row = old.row;
END;
