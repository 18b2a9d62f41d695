-- The events of runs in order; approvals by run.

CREATE TABLE run_events (
    run    TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    event  BYTEA NOT NULL,
    at     BIGINT NOT NULL,
    PRIMARY KEY (run, number)
);

CREATE INDEX approvals_by_run ON approvals (run);
