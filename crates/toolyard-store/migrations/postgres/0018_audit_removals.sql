-- Audit records that were removed because they were old: the number and hash of the last one of each removal.

CREATE TABLE audit_removals (
    number BIGINT NOT NULL PRIMARY KEY,
    hash   TEXT NOT NULL,
    at     BIGINT NOT NULL
);
