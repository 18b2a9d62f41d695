-- What was decided about a server's tools, so that listing them need not decide anew.

ALTER TABLE servers ADD COLUMN shelf TEXT;
