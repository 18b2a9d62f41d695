-- Arguments of successful calls, shown to their owner only, and example requests that a model wrote about tools.

CREATE TABLE argument_examples (
    owner      TEXT NOT NULL,
    source     TEXT NOT NULL,
    tool       TEXT NOT NULL,
    definition TEXT NOT NULL,
    arguments  TEXT NOT NULL,
    learned_at BIGINT NOT NULL,
    PRIMARY KEY (owner, source, tool)
);

CREATE INDEX argument_examples_by_age ON argument_examples (learned_at);

CREATE TABLE example_requests (
    source     TEXT NOT NULL,
    tool       TEXT NOT NULL,
    definition TEXT NOT NULL,
    requests   TEXT NOT NULL,
    model      TEXT NOT NULL,
    written_at BIGINT NOT NULL,
    PRIMARY KEY (source, tool)
);
