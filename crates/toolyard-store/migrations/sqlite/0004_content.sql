-- What a server offers besides tools, so that listing it starts nothing.

ALTER TABLE servers ADD COLUMN content TEXT;

PRAGMA user_version = 4;
