-- The transitions of runs in their order, and questions by the run they belong to.

CREATE TABLE run_events (
    run    TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    event  BLOB NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX questions_by_run ON questions (run);

PRAGMA user_version = 5;
