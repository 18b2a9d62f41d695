-- What was decided about a server's tools, so that listing them need not decide anew.

ALTER TABLE servers ADD COLUMN shelf TEXT;

-- Every migration from here on leaves its number, so that an up-to-date file is recognised at once.
PRAGMA user_version = 2;
