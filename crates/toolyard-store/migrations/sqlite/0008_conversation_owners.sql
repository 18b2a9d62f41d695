-- Every conversation belongs to a caller. Those of `toolyard chat`, whose owner is empty, were the only ones so far.

ALTER TABLE messages RENAME TO messages_without_owner;

CREATE TABLE messages (
    owner        TEXT NOT NULL,
    conversation TEXT NOT NULL,
    number       INTEGER NOT NULL,
    role         TEXT NOT NULL,
    text         TEXT NOT NULL,
    at           INTEGER NOT NULL,
    PRIMARY KEY (owner, conversation, number)
) STRICT;

INSERT INTO messages (owner, conversation, number, role, text, at)
SELECT '', conversation, number, role, text, at FROM messages_without_owner;

DROP TABLE messages_without_owner;
