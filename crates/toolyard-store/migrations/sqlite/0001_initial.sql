-- Times are milliseconds since 1970, hashes are hexadecimal BLAKE3, JSON is text.

CREATE TABLE servers (
    id              TEXT PRIMARY KEY,
    configuration   TEXT NOT NULL,
    revision_family TEXT,
    cached_tools    TEXT NOT NULL,
    seen_at         INTEGER NOT NULL
) STRICT;

CREATE TABLE tool_definitions (
    server        TEXT NOT NULL,
    tool          TEXT NOT NULL,
    hash          TEXT NOT NULL,
    definition    TEXT NOT NULL,
    approved      INTEGER NOT NULL,
    first_seen_at INTEGER NOT NULL,
    PRIMARY KEY (server, tool, hash)
) STRICT;

CREATE TABLE trust_decisions (
    kind       TEXT NOT NULL,
    subject    TEXT NOT NULL,
    content    TEXT NOT NULL,
    decided_at INTEGER NOT NULL,
    PRIMARY KEY (kind, subject)
) STRICT;

CREATE TABLE program_descriptions (
    program TEXT PRIMARY KEY,
    tools   TEXT NOT NULL
) STRICT;

CREATE TABLE tool_statistics (
    tool         TEXT NOT NULL,
    source       TEXT NOT NULL,
    successes    REAL NOT NULL,
    failures     REAL NOT NULL,
    errors       TEXT NOT NULL,
    latency      BLOB NOT NULL,
    last_success INTEGER,
    last_failure INTEGER,
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (tool, source)
) STRICT;

CREATE TABLE results (
    reference  TEXT PRIMARY KEY,
    bytes      INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX results_by_age ON results (created_at);

CREATE TABLE result_chunks (
    reference TEXT NOT NULL REFERENCES results (reference) ON DELETE CASCADE,
    number    INTEGER NOT NULL,
    starts_at INTEGER NOT NULL,
    content   BLOB NOT NULL,
    PRIMARY KEY (reference, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
    conversation TEXT NOT NULL,
    number       INTEGER NOT NULL,
    role         TEXT NOT NULL,
    text         TEXT NOT NULL,
    at           INTEGER NOT NULL,
    PRIMARY KEY (conversation, number)
) STRICT;

CREATE TABLE runs (
    id          TEXT PRIMARY KEY,
    kind        TEXT NOT NULL,
    state       TEXT NOT NULL,
    detail      TEXT NOT NULL,
    owner       TEXT,
    fence       INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    created_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX runs_to_claim ON runs (kind, created_at) WHERE state = 'open';

CREATE TABLE steps (
    run                TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    step               TEXT NOT NULL,
    number             INTEGER NOT NULL,
    tool               TEXT NOT NULL,
    source             TEXT,
    definition         TEXT NOT NULL,
    arguments          TEXT NOT NULL,
    redacted_arguments TEXT NOT NULL,
    repeatable         INTEGER NOT NULL,
    state              TEXT NOT NULL,
    outcome            BLOB,
    redacted           INTEGER NOT NULL,
    fence              INTEGER NOT NULL,
    started_at         INTEGER NOT NULL,
    ended_at           INTEGER,
    PRIMARY KEY (run, step)
) STRICT;
CREATE INDEX steps_unfinished ON steps (started_at) WHERE state IN ('started', 'unknown');

CREATE TABLE approvals (
    id           INTEGER PRIMARY KEY,
    run          TEXT NOT NULL,
    step         TEXT,
    kind         TEXT NOT NULL,
    text         TEXT NOT NULL,
    outcome      TEXT,
    decided_by   TEXT,
    requested_at INTEGER NOT NULL,
    decided_at   INTEGER
) STRICT;
CREATE INDEX approvals_pending ON approvals (id) WHERE outcome IS NULL;

CREATE TABLE audit (
    number       INTEGER NOT NULL,
    day          INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    caller       TEXT NOT NULL,
    call         TEXT NOT NULL,
    tool         TEXT NOT NULL,
    sources      TEXT NOT NULL,
    arguments    TEXT NOT NULL,
    result       TEXT,
    outcome      TEXT NOT NULL,
    milliseconds INTEGER NOT NULL,
    hash         TEXT NOT NULL,
    PRIMARY KEY (day, number)
) STRICT;
CREATE INDEX audit_by_number ON audit (number);

-- One row: the number and hash of the last record of the chain.
CREATE TABLE audit_head (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    number INTEGER NOT NULL,
    hash   TEXT NOT NULL
) STRICT;
INSERT INTO audit_head VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');

CREATE TABLE audit_checkpoints (
    number INTEGER PRIMARY KEY,
    hash   TEXT NOT NULL,
    at     INTEGER NOT NULL
) STRICT;
