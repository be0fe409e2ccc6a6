-- What each queue did in each five minutes of the last day, for people. All numbers add up over one part of the day, but for
-- `late_ms`, `depth`, `oldest_ms` and `running`: of those the largest counts.
CREATE TABLE history (
    at INTEGER NOT NULL,
    queue TEXT NOT NULL,
    completed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    late_ms INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    oldest_ms INTEGER NOT NULL,
    running INTEGER NOT NULL,
    PRIMARY KEY (at, queue)
) STRICT, WITHOUT ROWID;
