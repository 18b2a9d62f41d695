-- Requests that tools have answered, with secrets redacted.

CREATE TABLE past_requests (
    source       TEXT NOT NULL,
    tool         TEXT NOT NULL,
    request      TEXT NOT NULL,
    uses         BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    PRIMARY KEY (source, tool, request)
);
