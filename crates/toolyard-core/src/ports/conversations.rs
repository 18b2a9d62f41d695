//! The messages of a conversation, as `get_conversation_history` reads them.

use serde::{Deserialize, Serialize};

use crate::{BoxFuture, StorageError};

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationMessage {
    /// `user`, `assistant`, `tool` or `system`.
    pub role: String,
    /// The text of the message.
    pub text: String,
}

/// A query for messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationQuery {
    /// Only messages that contain this text, ignoring case.
    pub containing: Option<String>,
    /// Only messages of this role.
    pub role: Option<String>,
    /// At most this many, the latest.
    pub limit: usize,
}

impl ConversationQuery {
    /// Whether a message matches, apart from the limit.
    pub fn matches(&self, message: &ConversationMessage) -> bool {
        let role_matches = self.role.as_ref().is_none_or(|role| *role == message.role);
        let text_matches = self
            .containing
            .as_ref()
            .is_none_or(|text| message.text.to_lowercase().contains(&text.to_lowercase()));
        role_matches && text_matches
    }
}

/// Reads the conversation that a call belongs to.
pub trait Conversations: Send + Sync {
    /// The matching messages, oldest first.
    fn messages<'a>(
        &'a self,
        query: &'a ConversationQuery,
    ) -> BoxFuture<'a, Result<Vec<ConversationMessage>, StorageError>>;
}
