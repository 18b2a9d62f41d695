-- The last batch of audit records that each process appended, so that a batch that is written again is recognized; the
-- session key that all replicas share.

CREATE TABLE audit_writers (
    writer TEXT PRIMARY KEY,
    batch  BIGINT NOT NULL
);

CREATE TABLE session_key (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    key TEXT NOT NULL
);
