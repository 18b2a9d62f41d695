-- Budgets of quotas that all processes share. `slots` is what was granted in each slot of the latest window, as JSON.

CREATE TABLE quota_budgets (
    key           TEXT NOT NULL PRIMARY KEY,
    quota         TEXT NOT NULL,
    meter         TEXT NOT NULL,
    subject       TEXT NOT NULL,
    window_limit  BIGINT NOT NULL,
    window_millis BIGINT NOT NULL,
    slots         TEXT NOT NULL,
    updated_at    BIGINT NOT NULL
);

-- Permits for calls at the same time, by the process that holds them.
CREATE TABLE quota_permits (
    key        TEXT NOT NULL,
    holder     TEXT NOT NULL,
    held       BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (key, holder)
);
