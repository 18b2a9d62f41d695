-- The latest change of each budget of a quota by each process, so that a repeated change is not made twice.

CREATE TABLE quota_changes (
    key        TEXT NOT NULL,
    holder     TEXT NOT NULL,
    number     INTEGER NOT NULL,
    slot       INTEGER NOT NULL,
    granted    INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (key, holder)
) STRICT;

-- Whose permits they are, to list them.
ALTER TABLE quota_permits ADD COLUMN quota TEXT NOT NULL DEFAULT '';
ALTER TABLE quota_permits ADD COLUMN subject TEXT NOT NULL DEFAULT '';
ALTER TABLE quota_permits ADD COLUMN permit_limit INTEGER NOT NULL DEFAULT 0;

PRAGMA user_version = 15;
