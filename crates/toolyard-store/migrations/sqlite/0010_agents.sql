-- Agents that are added and changed while a gateway runs; those of the settings file are not here.

CREATE TABLE agents (
    name       TEXT NOT NULL PRIMARY KEY,
    config     TEXT NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
