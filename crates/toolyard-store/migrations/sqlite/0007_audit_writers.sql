-- The last batch of audit records that each process appended, so that a batch that is written again is recognized; the
-- session key that all replicas share.

CREATE TABLE audit_writers (
    writer TEXT PRIMARY KEY,
    batch  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE session_key (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    key TEXT NOT NULL
) STRICT;

PRAGMA user_version = 7;
