-- Decisions on a server's tools, so that listing the tools need not repeat them.

ALTER TABLE servers ADD COLUMN tool_approvals TEXT;

-- Every migration from here on sets its number, so that a current file is recognised by one query.
PRAGMA user_version = 2;
