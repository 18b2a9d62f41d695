//! [`MemoryConversations`]: conversations in memory, for embedders without a durable store and for tests.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use toolyard_core::{BoxFuture, ConversationId, ConversationMessage, Conversations, StorageError, redact};

/// Older messages of a conversation are dropped.
const MAX_MESSAGES: usize = 1_000;

/// Conversations in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryConversations(Arc<Mutex<BTreeMap<ConversationId, VecDeque<ConversationMessage>>>>);

impl MemoryConversations {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ConversationId, VecDeque<ConversationMessage>>> {
        self.0.lock()
    }
}

fn redacted(message: &ConversationMessage) -> ConversationMessage {
    ConversationMessage { role: message.role.clone(), text: redact(&message.text).into_owned() }
}

impl Conversations for MemoryConversations {
    fn messages<'a>(
        &'a self,
        id: &'a ConversationId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ConversationMessage>, StorageError>> {
        let messages = self.lock().get(id).map_or_else(Vec::new, |messages| {
            messages.iter().skip(messages.len().saturating_sub(limit)).cloned().collect()
        });
        Box::pin(std::future::ready(Ok(messages)))
    }

    fn append_messages<'a>(
        &'a self,
        id: &'a ConversationId,
        messages: &'a [ConversationMessage],
    ) -> BoxFuture<'a, Result<(), StorageError>> {
        let mut conversations = self.lock();
        let stored = conversations.entry(id.clone()).or_default();
        stored.extend(messages.iter().map(redacted));
        let excess = stored.len().saturating_sub(MAX_MESSAGES);
        stored.drain(..excess);
        Box::pin(std::future::ready(Ok(())))
    }

    fn replace_message<'a>(
        &'a self,
        id: &'a ConversationId,
        message: &'a ConversationMessage,
        replacement: Option<&'a ConversationMessage>,
    ) -> BoxFuture<'a, Result<(), StorageError>> {
        if let Some(messages) = self.lock().get_mut(id) {
            match replacement.map(redacted) {
                Some(replacement) => {
                    messages.iter_mut().filter(|known| *known == message).for_each(|known| {
                        *known = replacement.clone();
                    });
                }
                None => messages.retain(|known| known != message),
            }
        }
        Box::pin(std::future::ready(Ok(())))
    }
}
