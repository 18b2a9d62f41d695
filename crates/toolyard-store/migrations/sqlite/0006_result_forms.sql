-- What results of tools look like: names and kinds, never content.

CREATE TABLE result_forms (
    source     TEXT NOT NULL,
    tool       TEXT NOT NULL,
    form       TEXT NOT NULL,
    learned_at INTEGER NOT NULL,
    PRIMARY KEY (source, tool)
) STRICT;

PRAGMA user_version = 6;
