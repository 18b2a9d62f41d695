-- Audit records that were removed because they were old: the number and hash of the last one of each removal.

CREATE TABLE audit_removals (
    number INTEGER NOT NULL PRIMARY KEY,
    hash   TEXT NOT NULL,
    at     INTEGER NOT NULL
) STRICT;

PRAGMA user_version = 18;
