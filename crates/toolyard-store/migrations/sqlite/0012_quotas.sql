-- Budgets of quotas that all processes share. `slots` is what was granted in each slot of the latest window, as JSON.

CREATE TABLE quota_budgets (
    key           TEXT NOT NULL PRIMARY KEY,
    quota         TEXT NOT NULL,
    meter         TEXT NOT NULL,
    subject       TEXT NOT NULL,
    window_limit  INTEGER NOT NULL,
    window_millis INTEGER NOT NULL,
    slots         TEXT NOT NULL,
    updated_at    INTEGER NOT NULL
) STRICT;

-- Permits for calls at the same time, by the process that holds them.
CREATE TABLE quota_permits (
    key        TEXT NOT NULL,
    holder     TEXT NOT NULL,
    held       INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (key, holder)
) STRICT;

PRAGMA user_version = 12;
