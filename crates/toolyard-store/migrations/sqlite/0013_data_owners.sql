-- Results, past requests and shapes of results belong to a caller. The owner is empty for callers that are not told apart, whose
-- were all rows so far.

ALTER TABLE results ADD COLUMN owner TEXT NOT NULL DEFAULT '';

ALTER TABLE past_requests RENAME TO past_requests_without_owner;

CREATE TABLE past_requests (
    source       TEXT NOT NULL,
    tool         TEXT NOT NULL,
    request      TEXT NOT NULL,
    uses         INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    owner        TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (owner, source, tool, request)
) STRICT;

INSERT INTO past_requests (source, tool, request, uses, last_used_at)
SELECT source, tool, request, uses, last_used_at FROM past_requests_without_owner;

DROP TABLE past_requests_without_owner;

ALTER TABLE result_shapes RENAME TO result_shapes_without_owner;

CREATE TABLE result_shapes (
    source     TEXT NOT NULL,
    tool       TEXT NOT NULL,
    shape      TEXT NOT NULL,
    learned_at INTEGER NOT NULL,
    owner      TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (owner, source, tool)
) STRICT;

INSERT INTO result_shapes (source, tool, shape, learned_at)
SELECT source, tool, shape, learned_at FROM result_shapes_without_owner;

DROP TABLE result_shapes_without_owner;

PRAGMA user_version = 13;
