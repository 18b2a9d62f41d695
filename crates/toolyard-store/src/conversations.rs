//! What was said in one conversation, beyond the life of a process.

use sqlx::Row as _;
use toolyard_core::{BoxFuture, ConversationQuery, Conversations, Message, redact};

use crate::{
    engine::Durability,
    error::StoreError,
    store::{Store, now},
};

/// One conversation in the store.
#[derive(Debug, Clone)]
pub struct StoredConversation {
    store: Store,
    conversation: String,
}

impl Store {
    /// The conversation of this name, begun or not.
    pub fn conversation(&self, name: impl Into<String>) -> StoredConversation {
        StoredConversation { store: self.clone(), conversation: name.into() }
    }
}

impl StoredConversation {
    /// Adds what was said, secrets removed.
    pub async fn push(&self, message: &Message) -> Result<(), StoreError> {
        let text = redact(&message.text).into_owned();
        let data = (self.conversation.clone(), message.role.clone(), text);
        let written = self.store.write(Durability::Relaxed, data, |connection, (conversation, role, text)| {
            Box::pin(async move {
                let sql = "INSERT INTO messages (conversation, number, role, text, at)
                           SELECT $1, COALESCE(MAX(number), 0) + 1, $2, $3, $4 FROM messages WHERE conversation = $1";
                let query = sqlx::query(sql).bind(conversation.as_str()).bind(role.as_str()).bind(text.as_str());
                query.bind(now()).execute(connection).await?;
                Ok(())
            })
        });
        written.await
    }

    /// Puts something else where a message stands, secrets removed, or nothing.
    pub async fn replace(&self, message: &Message, with: Option<&Message>) -> Result<(), StoreError> {
        let with = with.map(|with| (with.role.clone(), redact(&with.text).into_owned()));
        let data = (self.conversation.clone(), message.clone(), with);
        let written = self.store.write(Durability::Relaxed, data, |connection, (conversation, old, with)| {
            Box::pin(async move {
                let query = match with {
                    Some((role, text)) => sqlx::query(
                        "UPDATE messages SET role = $4, text = $5 WHERE conversation = $1 AND role = $2 AND text = $3",
                    )
                    .bind(conversation.as_str())
                    .bind(old.role.as_str())
                    .bind(old.text.as_str())
                    .bind(role.as_str())
                    .bind(text.as_str()),
                    None => sqlx::query(
                        "DELETE FROM messages WHERE conversation = $1 AND role = $2 AND text = $3",
                    )
                    .bind(conversation.as_str())
                    .bind(old.role.as_str())
                    .bind(old.text.as_str()),
                };
                query.execute(connection).await?;
                Ok(())
            })
        });
        written.await
    }
}

impl Conversations for StoredConversation {
    fn recall<'a>(&'a self, query: &'a ConversationQuery) -> BoxFuture<'a, Result<Vec<Message>, String>> {
        Box::pin(async move {
            let sql = "SELECT role, text FROM messages WHERE conversation = $1 ORDER BY number DESC";
            let rows = sqlx::query(sql).bind(self.conversation.as_str()).fetch_all(self.store.pool()).await;
            let mut found = Vec::new();
            for row in rows.map_err(|error| error.to_string())? {
                let get = |column: &str| row.try_get::<String, _>(column).map_err(|error| error.to_string());
                let message = Message { role: get("role")?, text: get("text")? };
                if found.len() < query.limit && query.matches(&message) {
                    found.push(message);
                }
            }
            found.reverse();
            Ok(found)
        })
    }
}
