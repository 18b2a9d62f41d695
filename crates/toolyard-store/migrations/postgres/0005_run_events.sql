-- The transitions of runs in their order, and questions by the run they belong to.

CREATE TABLE run_events (
    run    TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    event  BYTEA NOT NULL,
    at     BIGINT NOT NULL,
    PRIMARY KEY (run, number)
);

CREATE INDEX questions_by_run ON questions (run);
