-- Requests that tools have answered, with secrets redacted.

CREATE TABLE past_requests (
    source       TEXT NOT NULL,
    tool         TEXT NOT NULL,
    request      TEXT NOT NULL,
    uses         INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    PRIMARY KEY (source, tool, request)
) STRICT;

PRAGMA user_version = 3;
