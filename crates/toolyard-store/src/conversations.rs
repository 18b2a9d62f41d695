//! Conversations that outlive a process.

use sqlx::Row as _;
use toolyard_core::{
    BoxFuture, ConversationMessage, ConversationQuery, Conversations, StorageError, redact, unix_millis,
};

use crate::{error::StoreError, sql::Durability, store::Store};

/// One conversation in the store.
#[derive(Debug, Clone)]
pub struct StoredConversation {
    store: Store,
    name: String,
}

impl Store {
    /// The conversation of this name; it exists once it has a message.
    pub fn conversation(&self, name: impl Into<String>) -> StoredConversation {
        StoredConversation { store: self.clone(), name: name.into() }
    }
}

impl StoredConversation {
    /// Appends a message, with secrets redacted.
    pub async fn push(&self, message: &ConversationMessage) -> Result<(), StoreError> {
        let text = redact(&message.text).into_owned();
        let data = (self.name.clone(), message.role.clone(), text);
        let written = self.store.write(Durability::Relaxed, data, |connection, (name, role, text)| {
            Box::pin(async move {
                let sql = "INSERT INTO messages (conversation, number, role, text, at)
                           SELECT $1, COALESCE(MAX(number), 0) + 1, $2, $3, $4 FROM messages WHERE conversation = $1";
                let query = sqlx::query(sql).bind(name.as_str()).bind(role.as_str()).bind(text.as_str());
                query.bind(unix_millis()).execute(connection).await?;
                Ok(())
            })
        });
        written.await
    }

    /// Replaces a message, with secrets redacted, or deletes it if `replacement` is absent.
    pub async fn replace(
        &self,
        message: &ConversationMessage,
        replacement: Option<&ConversationMessage>,
    ) -> Result<(), StoreError> {
        let replacement =
            replacement.map(|replacement| (replacement.role.clone(), redact(&replacement.text).into_owned()));
        let data = (self.name.clone(), message.clone(), replacement);
        let written = self.store.write(Durability::Relaxed, data, |connection, (name, old, replacement)| {
            Box::pin(async move {
                let sql = match replacement {
                    Some(_) => {
                        "UPDATE messages SET role = $4, text = $5 WHERE conversation = $1 AND role = $2 AND text = $3"
                    }
                    None => "DELETE FROM messages WHERE conversation = $1 AND role = $2 AND text = $3",
                };
                let mut query =
                    sqlx::query(sql).bind(name.as_str()).bind(old.role.as_str()).bind(old.text.as_str());
                if let Some((role, text)) = replacement {
                    query = query.bind(role.as_str()).bind(text.as_str());
                }
                query.execute(connection).await?;
                Ok(())
            })
        });
        written.await
    }
}

impl Conversations for StoredConversation {
    fn messages<'a>(
        &'a self,
        query: &'a ConversationQuery,
    ) -> BoxFuture<'a, Result<Vec<ConversationMessage>, StorageError>> {
        Box::pin(async move {
            let sql = "SELECT role, text FROM messages WHERE conversation = $1 ORDER BY number DESC";
            let rows = self.store.fetch_all(sqlx::query(sql).bind(self.name.as_str())).await?;
            let mut messages = Vec::new();
            for row in rows {
                let read = |column: &str| row.try_get(column).map_err(StoreError::from);
                let message = ConversationMessage { role: read("role")?, text: read("text")? };
                if messages.len() < query.limit && query.matches(&message) {
                    messages.push(message);
                }
            }
            messages.reverse();
            Ok(messages)
        })
    }
}
