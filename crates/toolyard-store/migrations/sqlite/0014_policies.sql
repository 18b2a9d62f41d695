-- Policies that all gateways of the store share.

CREATE TABLE policies (
    name       TEXT NOT NULL PRIMARY KEY,
    text       TEXT NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

PRAGMA user_version = 14;
