-- The latest change of each budget of a quota by each process, so that a repeated change is not made twice.

CREATE TABLE quota_changes (
    key        TEXT NOT NULL,
    holder     TEXT NOT NULL,
    number     BIGINT NOT NULL,
    slot       BIGINT NOT NULL,
    granted    BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (key, holder)
);

-- Whose permits they are, to list them.
ALTER TABLE quota_permits ADD COLUMN quota TEXT NOT NULL DEFAULT '';
ALTER TABLE quota_permits ADD COLUMN subject TEXT NOT NULL DEFAULT '';
ALTER TABLE quota_permits ADD COLUMN permit_limit BIGINT NOT NULL DEFAULT 0;
