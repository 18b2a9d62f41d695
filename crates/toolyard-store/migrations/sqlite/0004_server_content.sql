-- Prompts and resources of a server, so that listing them does not start the server.

ALTER TABLE servers ADD COLUMN content TEXT;

PRAGMA user_version = 4;
