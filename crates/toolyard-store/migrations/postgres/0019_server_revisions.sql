-- Every change of a server's record gives it the next revision, so that processes which share the store find what others changed.
ALTER TABLE servers ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;

CREATE INDEX servers_by_revision ON servers (revision);

-- The last revision that was given. A change locks this row until it is committed, so that revisions become visible in their order.
CREATE TABLE server_revision (last BIGINT NOT NULL);

INSERT INTO server_revision (last) VALUES (0);
