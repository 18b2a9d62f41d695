-- Which process owns a session with a stateful server. `holder` is NULL once the lease is released; `lease_until` is when it ends or
-- has ended. `fence` grows with each new lease of a name.

CREATE TABLE session_leases (
    name        TEXT NOT NULL PRIMARY KEY,
    holder      TEXT,
    fence       INTEGER NOT NULL,
    lease_until INTEGER NOT NULL
) STRICT;

CREATE INDEX session_leases_by_holder ON session_leases (holder);

-- The callers that have used a session of this name, with the fence of the latest one. They are removed with the lease: a name that
-- starts again at the first fence must not have users of earlier sessions.
CREATE TABLE session_users (
    name   TEXT NOT NULL REFERENCES session_leases (name) ON DELETE CASCADE,
    caller TEXT NOT NULL,
    fence  INTEGER NOT NULL,
    PRIMARY KEY (name, caller)
) STRICT;

PRAGMA user_version = 16;
