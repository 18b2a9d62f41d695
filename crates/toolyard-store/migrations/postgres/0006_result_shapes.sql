-- Shapes of tool results: names and types, never content.

CREATE TABLE result_shapes (
    source     TEXT NOT NULL,
    tool       TEXT NOT NULL,
    shape      TEXT NOT NULL,
    learned_at BIGINT NOT NULL,
    PRIMARY KEY (source, tool)
);
