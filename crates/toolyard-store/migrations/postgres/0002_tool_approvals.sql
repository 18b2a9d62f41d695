-- Decisions on a server's tools, so that listing the tools need not repeat them.

ALTER TABLE servers ADD COLUMN tool_approvals TEXT;
