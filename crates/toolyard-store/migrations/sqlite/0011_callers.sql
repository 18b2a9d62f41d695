-- Callers with API keys. Of a key, only the hash of its secret is here. Rows stay when a caller is revoked, so that its name is
-- never given to another.

CREATE TABLE callers (
    name             TEXT NOT NULL PRIMARY KEY,
    key_id           TEXT NOT NULL UNIQUE,
    secret_hash      TEXT NOT NULL,
    allowed_profiles TEXT,
    allowed_agents   TEXT,
    created_at       INTEGER NOT NULL,
    expires_at       INTEGER,
    revoked_at       INTEGER
) STRICT;
