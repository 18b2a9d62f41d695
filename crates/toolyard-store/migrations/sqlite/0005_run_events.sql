-- The events of runs in order; approvals by run.

CREATE TABLE run_events (
    run    TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    event  BLOB NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX approvals_by_run ON approvals (run);

PRAGMA user_version = 5;
