//! The stored conversation of a chat. A suspended run is recorded as a placeholder that its answer replaces later.

use std::sync::Arc;

use toolyard_agent::{DataSources, O200k, RunEnd, RunEvent, recent_history};
use toolyard_core::{
    BoxFuture, ConversationMessage, ConversationQuery, Conversations, RunId, RunLog, StorageError,
};
use toolyard_model::{ModelMessage, Role};
use toolyard_store::{Store, StoreError, StoredConversation};

use crate::error::CliError;

const MAX_PROMPT_MESSAGES: usize = 200;
/// Maximum tokens of these messages; the oldest are left out first.
const MAX_PROMPT_TOKENS: usize = 2_000;
/// The role of a placeholder, whose text is the id of a suspended run.
const PLACEHOLDER_ROLE: &str = "run";

/// A stored conversation, and the part that this chat continues.
#[derive(Debug)]
pub(super) struct ChatConversation {
    stored: StoredConversation,
    /// Messages and placeholders, the oldest first.
    messages: Vec<ConversationMessage>,
    /// Whether the answers contain no non-public data. Unknown, and therefore false, for answers of earlier processes.
    is_public: bool,
}

/// What became of a suspended run.
#[derive(Debug)]
enum SuspendedRunState {
    Answered(String),
    EndedWithoutAnswer,
    Unfinished,
}

impl ChatConversation {
    /// The conversation of this name, empty if it is new.
    pub(super) async fn open(store: &Store, name: &str) -> Result<Self, CliError> {
        let stored = store.conversation(name);
        let query = ConversationQuery { limit: usize::MAX, ..ConversationQuery::default() };
        let messages = stored.messages(&query).await?;
        let is_public = messages.iter().all(|message| message.role == "user");
        Ok(Self { stored, messages, is_public })
    }

    /// The conversation for the tool `get_conversation_history`.
    pub(super) fn for_tools(&self) -> Arc<dyn Conversations> {
        Arc::new(WithoutPlaceholders(self.stored.clone()))
    }

    /// The messages, the oldest first.
    pub(super) fn messages(&self) -> impl Iterator<Item = &ConversationMessage> {
        self.messages.iter().filter(|message| message.role != PLACEHOLDER_ROLE)
    }

    /// Continues with an empty conversation; the stored one stays.
    pub(super) fn clear(&mut self) {
        self.messages.clear();
        self.is_public = true;
    }

    /// Whether the answers contain no non-public data.
    pub(super) fn is_public(&self) -> bool {
        self.is_public
    }

    /// The latest messages for a prompt, within limits.
    pub(super) fn prompt_messages(&self) -> Vec<ModelMessage> {
        let message = |message: &ConversationMessage| {
            let role = if message.role == "assistant" { Role::Assistant } else { Role::User };
            ModelMessage::new(role, message.text.as_str())
        };
        let all: Vec<&ConversationMessage> = self.messages().collect();
        let latest = all.iter().skip(all.len().saturating_sub(MAX_PROMPT_MESSAGES));
        recent_history(&latest.map(|one| message(one)).collect::<Vec<_>>(), MAX_PROMPT_TOKENS, &O200k)
    }

    /// Stores a question and its answer, or a placeholder for a suspended run.
    pub(super) async fn record(
        &mut self,
        question: &str,
        run: &RunId,
        end: &RunEnd,
        data_sources: &DataSources,
    ) -> Result<(), StoreError> {
        self.is_public &= data_sources.is_empty() && !matches!(end, RunEnd::Suspended { .. });
        self.push("user", question).await?;
        match end {
            RunEnd::Answered { answer, .. } => self.push("assistant", answer).await,
            RunEnd::Suspended { .. } => self.push(PLACEHOLDER_ROLE, run.as_str()).await,
            _ => Ok(()),
        }
    }

    /// Replaces the placeholders of runs that have finished since, and returns the new answers.
    pub(super) async fn resolve_placeholders(
        &mut self,
        log: &dyn RunLog,
    ) -> Result<Vec<(RunId, String)>, StoreError> {
        let mut answers = Vec::new();
        for index in (0..self.messages.len()).rev() {
            let Some(placeholder) =
                self.messages.get(index).filter(|message| message.role == PLACEHOLDER_ROLE).cloned()
            else {
                continue;
            };
            let run = RunId::from(placeholder.text.as_str());
            match suspended_run_state(log, &run).await {
                SuspendedRunState::Unfinished => {}
                SuspendedRunState::EndedWithoutAnswer => {
                    self.stored.replace(&placeholder, None).await?;
                    self.messages.remove(index);
                }
                SuspendedRunState::Answered(answer) => {
                    let answered = ConversationMessage { role: "assistant".to_owned(), text: answer.clone() };
                    self.stored.replace(&placeholder, Some(&answered)).await?;
                    if let Some(message) = self.messages.get_mut(index) {
                        *message = answered;
                    }
                    answers.push((run, answer));
                }
            }
        }
        answers.reverse();
        Ok(answers)
    }

    async fn push(&mut self, role: &str, text: &str) -> Result<(), StoreError> {
        let message = ConversationMessage { role: role.to_owned(), text: text.to_owned() };
        self.stored.push(&message).await?;
        self.messages.push(message);
        Ok(())
    }
}

async fn suspended_run_state(log: &dyn RunLog, run: &RunId) -> SuspendedRunState {
    // A log that cannot be read now may be readable later.
    let Ok(events) = log.events(run, 0).await else { return SuspendedRunState::Unfinished };
    match events.last().map(|last| last.event.read::<RunEvent>()) {
        Some(Ok(RunEvent::Ended { end: RunEnd::Answered { answer, .. } })) => {
            SuspendedRunState::Answered(answer)
        }
        Some(Ok(RunEvent::Ended { end: RunEnd::Suspended { .. } }) | Err(_)) => SuspendedRunState::Unfinished,
        Some(Ok(RunEvent::Ended { .. })) | None => SuspendedRunState::EndedWithoutAnswer,
        Some(Ok(_)) => SuspendedRunState::Unfinished,
    }
}

/// A conversation without placeholders.
#[derive(Debug)]
struct WithoutPlaceholders(StoredConversation);

impl Conversations for WithoutPlaceholders {
    fn messages<'a>(
        &'a self,
        query: &'a ConversationQuery,
    ) -> BoxFuture<'a, Result<Vec<ConversationMessage>, StorageError>> {
        Box::pin(async move {
            let all = ConversationQuery { limit: usize::MAX, ..query.clone() };
            let mut messages = self.0.messages(&all).await?;
            messages.retain(|message| message.role != PLACEHOLDER_ROLE);
            Ok(messages.split_off(messages.len().saturating_sub(query.limit)))
        })
    }
}
