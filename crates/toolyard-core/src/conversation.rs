//! What was said before, as `get_conversation_history` reads it.

use serde::{Deserialize, Serialize};

use crate::BoxFuture;

/// One thing that was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// `user`, `assistant`, `tool` or `system`.
    pub role: String,
    /// What was said.
    pub text: String,
}

/// Which messages are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationQuery {
    /// Only messages that contain this text, whatever its case.
    pub containing: Option<String>,
    /// Only messages of this role.
    pub role: Option<String>,
    /// At most this many, the latest ones.
    pub limit: usize,
}

impl ConversationQuery {
    /// Whether one message is wanted, the limit aside.
    pub fn matches(&self, message: &Message) -> bool {
        let role_fits = self.role.as_ref().is_none_or(|role| *role == message.role);
        let text_fits = self
            .containing
            .as_ref()
            .is_none_or(|text| message.text.to_lowercase().contains(&text.to_lowercase()));
        role_fits && text_fits
    }
}

/// The conversation a call belongs to.
pub trait Conversations: Send + Sync {
    /// The messages that match, oldest first.
    fn recall<'a>(&'a self, query: &'a ConversationQuery) -> BoxFuture<'a, Result<Vec<Message>, String>>;
}
