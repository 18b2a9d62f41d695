//! Conversations that outlive a process.

use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    time::{SystemTime, UNIX_EPOCH},
};

use sqlx::{AnyConnection, Row as _};
use toolyard_core::{
    BoxFuture, ConversationId, ConversationMessage, Conversations, StorageError, redact, unix_millis,
};

use crate::{error::StoreError, sql::Durability, store::Store};

const NUMBERS_PER_MICROSECOND: u32 = 1_000;

/// Messages to append, with secrets redacted.
struct NewMessages {
    id: ConversationId,
    messages: Vec<ConversationMessage>,
}

impl Conversations for Store {
    fn messages<'a>(
        &'a self,
        id: &'a ConversationId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ConversationMessage>, StorageError>> {
        Box::pin(async move {
            let sql = "SELECT role, text FROM messages WHERE owner = $1 AND conversation = $2
                       ORDER BY number DESC LIMIT $3";
            let query = sqlx::query(sql).bind(id.owner.as_str()).bind(id.name.as_str());
            let query = query.bind(i64::try_from(limit).unwrap_or(i64::MAX));
            let mut messages = self
                .select(query, |row| {
                    Ok(ConversationMessage { role: row.try_get("role")?, text: row.try_get("text")? })
                })
                .await?;
            messages.reverse();
            Ok(messages)
        })
    }

    fn append_messages<'a>(
        &'a self,
        id: &'a ConversationId,
        messages: &'a [ConversationMessage],
    ) -> BoxFuture<'a, Result<(), StorageError>> {
        Box::pin(async move {
            let data = NewMessages { id: id.clone(), messages: messages.iter().map(redacted).collect() };
            let written = self.write_unless_abandoned(Durability::Relaxed, data, |connection, data| {
                Box::pin(insert(connection, data))
            });
            Ok(written.await?)
        })
    }

    fn replace_message<'a>(
        &'a self,
        id: &'a ConversationId,
        message: &'a ConversationMessage,
        replacement: Option<&'a ConversationMessage>,
    ) -> BoxFuture<'a, Result<(), StorageError>> {
        Box::pin(async move {
            let data = (id.clone(), message.clone(), replacement.map(redacted));
            let written = self.write(Durability::Relaxed, data, |connection, (id, old, replacement)| {
                Box::pin(async move {
                    let sql = match replacement {
                        Some(_) => {
                            "UPDATE messages SET role = $5, text = $6
                             WHERE owner = $1 AND conversation = $2 AND role = $3 AND text = $4"
                        }
                        None => {
                            "DELETE FROM messages
                             WHERE owner = $1 AND conversation = $2 AND role = $3 AND text = $4"
                        }
                    };
                    let query = sqlx::query(sql).bind(id.owner.as_str()).bind(id.name.as_str());
                    let mut query = query.bind(old.role.as_str()).bind(old.text.as_str());
                    if let Some(replacement) = replacement {
                        query = query.bind(replacement.role.as_str()).bind(replacement.text.as_str());
                    }
                    query.execute(connection).await?;
                    Ok(())
                })
            });
            Ok(written.await?)
        })
    }
}

fn redacted(message: &ConversationMessage) -> ConversationMessage {
    ConversationMessage { role: message.role.clone(), text: redact(&message.text).into_owned() }
}

/// A number for the first of several messages. It grows with time, and processes that append to one conversation in the same
/// microsecond choose different ones.
fn first_number() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let microseconds = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
    let random = RandomState::new().build_hasher().finish() % u64::from(NUMBERS_PER_MICROSECOND);
    let number = microseconds.saturating_mul(i64::from(NUMBERS_PER_MICROSECOND));
    number.saturating_add(i64::try_from(random).unwrap_or(0))
}

/// The numbers are chosen once and follow each other, so that what others append meanwhile does not come in between.
async fn insert(connection: &mut AnyConnection, data: &NewMessages) -> Result<(), StoreError> {
    let NewMessages { id, messages } = data;
    let sql =
        "SELECT COALESCE(MAX(number), 0) AS latest FROM messages WHERE owner = $1 AND conversation = $2";
    let query = sqlx::query(sql).bind(id.owner.as_str()).bind(id.name.as_str());
    let latest: i64 = query.fetch_one(&mut *connection).await?.try_get("latest")?;
    let first_number = first_number().max(latest.saturating_add(1));
    for (number, message) in (first_number..).zip(messages) {
        let sql = "INSERT INTO messages (owner, conversation, number, role, text, at)
                   VALUES ($1, $2, $3, $4, $5, $6)";
        let query = sqlx::query(sql).bind(id.owner.as_str()).bind(id.name.as_str()).bind(number);
        let query = query.bind(message.role.as_str()).bind(message.text.as_str()).bind(unix_millis());
        query.execute(&mut *connection).await?;
    }
    Ok(())
}
