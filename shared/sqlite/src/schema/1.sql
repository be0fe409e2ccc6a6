-- Tasks, executions, crons, queues, idempotency keys and the tick's record: what is looked up has a column of its own,
-- all else is in `body`, as JSON. Where a column and the body differ, the column counts: due slots, wakes and expiries
-- change without the body.
CREATE TABLE record (
    row INTEGER PRIMARY KEY,
    -- 0 task, 1 execution, 2 cron, 3 queue, 4 idempotency key, 5 tick, 6 operation, 7 gate, 8 task that waits at a gate
    kind INTEGER NOT NULL,
    id TEXT NOT NULL,
    -- Eight random bytes each, as a number.
    incarnation INTEGER,
    version INTEGER NOT NULL,
    nonce INTEGER NOT NULL,
    wakes INTEGER NOT NULL,
    -- The due slot. Instants are milliseconds since 1970, UTC.
    due_shard INTEGER,
    due_at INTEGER,
    due_kind TEXT,
    -- The list that the record is in, and its position there.
    list TEXT,
    list_at INTEGER,
    queue TEXT,
    status TEXT,
    -- From when on workers may have a task that is pending, and whether a hint of it should be in its queue.
    ready_at INTEGER,
    has_hint INTEGER NOT NULL,
    -- Whether an execution has no outcome yet, so that it can be woken.
    is_open INTEGER NOT NULL,
    expires_at INTEGER,
    body TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX record_by_id ON record (kind, id);
CREATE INDEX record_by_due ON record (due_shard, due_at, kind, id, due_kind) WHERE due_at IS NOT NULL;
CREATE INDEX record_by_list ON record (list, list_at, id, queue) WHERE list IS NOT NULL;
CREATE INDEX record_running ON record (queue, id) WHERE kind = 0 AND status = 'running';
CREATE INDEX record_by_queue ON record (queue, ready_at, id, has_hint, incarnation, version) WHERE ready_at IS NOT NULL;
CREATE INDEX record_by_expiry ON record (expires_at) WHERE expires_at IS NOT NULL;

-- The names of all queues that a record was ever written for.
CREATE TABLE queue_name (
    name TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Payloads too large for their record.
CREATE TABLE blob (
    row INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    expires_at INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX blob_by_expiry ON blob (expires_at);

-- Sealed segments of journals.
CREATE TABLE segment (
    row INTEGER PRIMARY KEY,
    execution TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    mark INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (execution, incarnation, run, number, mark)
) STRICT;
CREATE INDEX segment_by_expiry ON segment (expires_at);

-- Which slots of a fan-out's join items are marked: a bit each.
CREATE TABLE join_item (
    execution TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    run INTEGER NOT NULL,
    label INTEGER NOT NULL,
    item INTEGER NOT NULL,
    marked BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (execution, incarnation, run, label, item)
) STRICT, WITHOUT ROWID;
CREATE INDEX join_item_by_expiry ON join_item (expires_at);
