//! Conversations: the messages between a caller and its agents, kept from run to run.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{BoxFuture, RunId, StorageError};

/// Role of a message that stands for the answer of a run that has none yet; its text is the id of the run.
const PENDING_ROLE: &str = "run";
/// How far back [`Conversation::earlier_messages`] looks.
const MAX_SEARCHED_MESSAGES: usize = 10_000;

/// Identifies a conversation. Conversations of different owners are never the same, whatever their names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConversationId {
    /// The caller that it belongs to; empty for the user of this machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// Its name among the conversations of the owner.
    pub name: String,
}

/// The name of a conversation is empty, too long or has control characters.
///
/// Remedy: choose a shorter name of printable characters, such as `--conversation budget`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a conversation needs a name of 1 to {} characters without control characters",
    ConversationId::MAX_NAME_CHARS
)]
pub struct InvalidConversationName;

impl ConversationId {
    /// Longer names are refused.
    pub const MAX_NAME_CHARS: usize = 128;

    /// The conversation of this owner and name.
    pub fn new(owner: impl Into<String>, name: impl Into<String>) -> Result<Self, InvalidConversationName> {
        let (owner, name) = (owner.into(), name.into());
        let is_valid = !name.trim().is_empty()
            && name.chars().nth(Self::MAX_NAME_CHARS).is_none()
            && !name.chars().any(char::is_control);
        if is_valid { Ok(Self { owner, name }) } else { Err(InvalidConversationName) }
    }
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationMessage {
    /// `user`, `assistant`, `tool` or `system`.
    pub role: String,
    /// The text of the message.
    pub text: String,
}

impl ConversationMessage {
    /// A message.
    pub fn new(role: impl Into<String>, text: impl Into<String>) -> Self {
        Self { role: role.into(), text: text.into() }
    }

    /// Stands for the answer of a run until it has one.
    pub fn pending(run: &RunId) -> Self {
        Self::new(PENDING_ROLE, run.as_str())
    }

    /// The run whose answer this message stands for, if it does.
    pub fn pending_run(&self) -> Option<RunId> {
        (self.role == PENDING_ROLE).then(|| RunId::from(self.text.as_str()))
    }
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
    /// Whether a message matches, apart from the limit. A pending answer never does.
    pub fn matches(&self, message: &ConversationMessage) -> bool {
        let role_matches = self.role.as_ref().is_none_or(|role| *role == message.role);
        let text_matches = self
            .containing
            .as_ref()
            .is_none_or(|text| message.text.to_lowercase().contains(&text.to_lowercase()));
        message.pending_run().is_none() && role_matches && text_matches
    }
}

/// Stores conversations.
pub trait Conversations: Send + Sync {
    /// The latest messages of a conversation, at most `limit`, oldest first. A conversation exists once it has a message.
    fn messages<'a>(
        &'a self,
        id: &'a ConversationId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ConversationMessage>, StorageError>>;

    /// Appends messages, all or none and next to each other, with secrets redacted.
    fn append_messages<'a>(
        &'a self,
        id: &'a ConversationId,
        messages: &'a [ConversationMessage],
    ) -> BoxFuture<'a, Result<(), StorageError>>;

    /// Replaces all equal messages, with secrets redacted, or deletes them if `replacement` is absent.
    fn replace_message<'a>(
        &'a self,
        id: &'a ConversationId,
        message: &'a ConversationMessage,
        replacement: Option<&'a ConversationMessage>,
    ) -> BoxFuture<'a, Result<(), StorageError>>;
}

/// The conversation that a run belongs to, as the tools it calls see it.
#[derive(Clone)]
pub struct Conversation {
    store: Arc<dyn Conversations>,
    id: ConversationId,
    run: RunId,
}

impl Conversation {
    /// The conversation of this run.
    pub fn of_run(store: Arc<dyn Conversations>, id: ConversationId, run: RunId) -> Self {
        Self { store, id, run }
    }

    /// Which conversation it is.
    pub fn id(&self) -> &ConversationId {
        &self.id
    }

    /// The messages before the question of the run that match a query, oldest first.
    pub async fn earlier_messages(
        &self,
        query: &ConversationQuery,
    ) -> Result<Vec<ConversationMessage>, StorageError> {
        let messages = self.store.messages(&self.id, MAX_SEARCHED_MESSAGES).await?;
        Ok(earlier_messages(messages, &self.run, query))
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation").field("id", &self.id).field("run", &self.run).finish_non_exhaustive()
    }
}

fn earlier_messages(
    mut messages: Vec<ConversationMessage>,
    run: &RunId,
    query: &ConversationQuery,
) -> Vec<ConversationMessage> {
    // The question of a run is the message before its pending answer.
    let pending = messages.iter().position(|message| message.pending_run().as_ref() == Some(run));
    if let Some(pending) = pending {
        messages.truncate(pending.saturating_sub(1));
    }
    messages.retain(|message| query.matches(message));
    messages.split_off(messages.len().saturating_sub(query.limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(messages: &[ConversationMessage]) -> Vec<&str> {
        messages.iter().map(|message| message.text.as_str()).collect()
    }

    #[test]
    fn a_run_sees_the_messages_before_its_own_question() {
        let (first, second) = (RunId::from("run-1"), RunId::from("run-2"));
        let messages = vec![
            ConversationMessage::new("user", "Hello"),
            ConversationMessage::new("assistant", "Hi"),
            ConversationMessage::new("user", "waiting"),
            ConversationMessage::pending(&first),
            ConversationMessage::new("user", "what did I say?"),
            ConversationMessage::pending(&second),
            ConversationMessage::new("user", "later"),
        ];
        let query = |limit| ConversationQuery { limit, ..ConversationQuery::default() };
        let earlier = |run: &RunId, query: &ConversationQuery| {
            texts(&earlier_messages(messages.clone(), run, query)).join("|")
        };
        assert_eq!(earlier(&second, &query(9)), "Hello|Hi|waiting");
        assert_eq!(earlier(&first, &query(9)), "Hello|Hi");
        assert_eq!(earlier(&second, &query(1)), "waiting");
        assert_eq!(earlier(&RunId::from("other"), &query(2)), "what did I say?|later");
        let users = ConversationQuery { role: Some("run".to_owned()), ..query(9) };
        assert_eq!(earlier(&second, &users), "", "a pending answer is no message");
        let containing = ConversationQuery { containing: Some("HELLO".to_owned()), ..query(9) };
        assert_eq!(earlier(&second, &containing), "Hello");
    }

    #[test]
    fn names_are_short_and_printable() {
        for name in ["taxes 2026", "会话", "a/b", &"x".repeat(128)] {
            assert!(ConversationId::new("", name).is_ok(), "{name}");
        }
        for name in ["", "  ", "a\nb", "a\u{1b}[2J", "a\0", &"x".repeat(129)] {
            assert_eq!(ConversationId::new("me", name), Err(InvalidConversationName), "{name:?}");
        }
    }
}
