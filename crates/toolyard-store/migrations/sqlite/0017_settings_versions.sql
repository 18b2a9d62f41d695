-- Versions of the settings in the store, which all gateways of the store share.

CREATE TABLE settings_versions (
    number     INTEGER NOT NULL PRIMARY KEY,
    text       TEXT NOT NULL,
    change     TEXT NOT NULL,
    changed_by TEXT NOT NULL,
    changed_at INTEGER NOT NULL
) STRICT;

PRAGMA user_version = 17;
