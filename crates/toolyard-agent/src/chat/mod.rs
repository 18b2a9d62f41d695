//! [`Chat`]: a conversation with an agent. Every message is a run; question and answer stay in the conversation.

mod memory;
mod prompt_history;

use std::{fmt, sync::Arc};

use tokio::time::{Instant, timeout_at};
use toolyard_core::{
    ConversationId, ConversationMessage, Conversations, JournalError, RunId, RunLog, StorageError,
};
use toolyard_model::{ModelMessage, Role};

pub use memory::MemoryConversations;
pub use prompt_history::recent_history;

use crate::{
    Agent, AgentError, CancelToken, O200k, RunEnd, RunRequest, RunWatcher, run_log::load_for_driver,
};

const USER_ROLE: &str = "user";
const ASSISTANT_ROLE: &str = "assistant";

/// Messages of a conversation that are read; older ones are out of reach of a prompt.
const MAX_READ_MESSAGES: usize = 1_000;
/// The latest messages that a prompt may contain.
const MAX_PROMPT_MESSAGES: usize = 200;
/// Maximum tokens of these messages; the oldest are left out first.
const MAX_PROMPT_TOKENS: usize = 2_000;
/// How many pending answers are looked up at once, the latest first.
const MAX_PENDING_LOOKUPS: usize = 20;

/// A conversation with agents. `toolyard chat`, `/v1`, `/runs`, `ask_agent` and embedders send messages through it:
/// [`Chat::stream_chat_message`] starts the run of a message, and [`Agent::drive`] streams it to a watcher.
pub struct Chat {
    conversations: Arc<dyn Conversations>,
    log: Arc<dyn RunLog>,
    /// `None` if nothing is recorded.
    id: Option<ConversationId>,
    /// Oldest first, with pending answers.
    messages: Vec<ConversationMessage>,
    /// Whether an answer may contain non-public data. Unknown, and therefore true, for answers of earlier processes.
    has_private_answers: bool,
}

impl fmt::Debug for Chat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chat").field("id", &self.id).field("messages", &self.messages).finish_non_exhaustive()
    }
}

/// What became of a run whose answer is pending.
enum PendingAnswer {
    Answered { text: String, is_public: bool },
    Never,
    NotYet,
}

impl Chat {
    /// Continues a conversation, or begins one. `log` has the runs of its messages.
    pub async fn open(
        conversations: Arc<dyn Conversations>,
        log: Arc<dyn RunLog>,
        id: ConversationId,
    ) -> Result<Self, StorageError> {
        let messages = conversations.messages(&id, MAX_READ_MESSAGES).await?;
        let has_private_answers = messages.iter().any(|message| message.role == ASSISTANT_ROLE);
        Ok(Self { conversations, log, id: Some(id), messages, has_private_answers })
    }

    /// A chat that keeps nothing: requests bring the history along, and `get_conversation_history` is not offered.
    pub fn unrecorded(log: Arc<dyn RunLog>) -> Self {
        Self {
            conversations: Arc::new(MemoryConversations::default()),
            log,
            id: None,
            messages: Vec::new(),
            has_private_answers: false,
        }
    }

    /// The messages so far, oldest first, without pending answers.
    pub fn messages(&self) -> impl Iterator<Item = &ConversationMessage> {
        self.messages.iter().filter(|message| message.pending_run().is_none())
    }

    /// Continues without the messages so far: prompts no longer contain them. What is stored stays.
    pub fn clear(&mut self) {
        self.messages.clear();
        self.has_private_answers = false;
    }

    /// Starts the run that answers a message; `stream_chat_message` in the specification. [`Agent::request`] makes a request
    /// with the limits of the agent; the messages of the conversation are put before those in its history. The question is in
    /// the conversation from now on, and the answer as soon as there is one, whichever process drives the run. Requests for a
    /// plan or a dry run leave the conversation as it is.
    ///
    /// # Errors
    /// [`AgentError::NotStarted`] if the store did not accept the run by the deadline; it is not driven later.
    pub async fn stream_chat_message(
        &mut self,
        agent: &Agent,
        request: RunRequest,
        deadline: Option<Instant>,
    ) -> Result<RunId, AgentError> {
        match deadline {
            Some(deadline) => {
                timeout_at(deadline, self.resolve_pending()).await.map_err(|_| AgentError::NotStarted)?
            }
            None => self.resolve_pending().await,
        }
        .map_err(|error| storage_failure(&error))?;
        let request = self.with_history(request);
        let recorded = request.recorded_conversation().is_some().then(|| request.question.clone());
        let run = match deadline {
            Some(deadline) => agent.create_run_before(request, deadline).await?,
            None => agent.create_run(request).await?,
        };
        if let Some(question) = recorded {
            self.messages.extend(messages_of_run(&question, &run));
        }
        Ok(run)
    }

    /// Sends a message and drives its run: progress and answer are streamed to `watcher`. Limits and `judge` are those of the
    /// agent.
    pub async fn ask(
        &mut self,
        agent: &Agent,
        message: &str,
        watcher: &dyn RunWatcher,
        cancel: &CancelToken,
    ) -> Result<(RunId, RunEnd), AgentError> {
        let run = self.stream_chat_message(agent, agent.request(message), None).await?;
        let end = agent.drive(&run, watcher, cancel).await?;
        self.resolve_pending().await.map_err(|error| storage_failure(&error))?;
        Ok((run, end))
    }

    /// Puts the answers that runs of this conversation have by now in their place, and returns them.
    pub async fn resolve_pending(&mut self) -> Result<Vec<(RunId, String)>, StorageError> {
        let Some(id) = self.id.clone() else { return Ok(Vec::new()) };
        let mut answers = Vec::new();
        let pending_run = |message: &ConversationMessage| Some((message.clone(), message.pending_run()?));
        let pending = self.messages.iter().enumerate().rev();
        let pending: Vec<_> = pending
            .filter_map(|(index, message)| Some((index, pending_run(message)?)))
            .take(MAX_PENDING_LOOKUPS)
            .collect();
        for (index, (pending, run)) in pending {
            match pending_answer(&*self.log, &run).await {
                PendingAnswer::NotYet => {}
                PendingAnswer::Never => {
                    self.conversations.replace_message(&id, &pending, None).await?;
                    self.messages.remove(index);
                }
                PendingAnswer::Answered { text, is_public } => {
                    let answer = ConversationMessage::new(ASSISTANT_ROLE, text.as_str());
                    self.conversations.replace_message(&id, &pending, Some(&answer)).await?;
                    if let Some(message) = self.messages.get_mut(index) {
                        *message = answer;
                    }
                    self.has_private_answers |= !is_public;
                    answers.push((run, text));
                }
            }
        }
        answers.reverse();
        Ok(answers)
    }

    /// The request as a message of this conversation.
    fn with_history(&self, mut request: RunRequest) -> RunRequest {
        let own_history = std::mem::take(&mut request.history);
        request.public_history =
            !self.has_private_answers && (own_history.is_empty() || request.public_history);
        request.history = self.prompt_messages();
        request.history.extend(own_history);
        request.conversation = self.id.clone().map(Box::new);
        request
    }

    /// The latest messages, within the limits of a prompt.
    fn prompt_messages(&self) -> Vec<ModelMessage> {
        let message = |message: &ConversationMessage| {
            let role = if message.role == ASSISTANT_ROLE { Role::Assistant } else { Role::User };
            ModelMessage::new(role, message.text.as_str())
        };
        let all: Vec<ModelMessage> = self.messages().map(message).collect();
        let latest = all.get(all.len().saturating_sub(MAX_PROMPT_MESSAGES)..).unwrap_or_default();
        recent_history(latest, MAX_PROMPT_TOKENS, &O200k)
    }
}

/// The messages that a run adds to its conversation when it is created.
pub(crate) fn messages_of_run(question: &str, run: &RunId) -> [ConversationMessage; 2] {
    [ConversationMessage::new(USER_ROLE, question), ConversationMessage::pending(run)]
}

async fn pending_answer(log: &dyn RunLog, run: &RunId) -> PendingAnswer {
    let loaded = match load_for_driver(log, run).await {
        Ok(loaded) => loaded,
        Err(AgentError::Journal(JournalError::UnknownRun(_))) => return PendingAnswer::Never,
        // A log that cannot be read now may be readable later.
        Err(_) => return PendingAnswer::NotYet,
    };
    match loaded.run.end() {
        Some(RunEnd::Answered { answer, .. } | RunEnd::Partial { answer, .. }) => {
            let is_public = loaded.run.data_sources().is_empty();
            PendingAnswer::Answered { text: answer.clone(), is_public }
        }
        Some(RunEnd::Suspended { .. }) => PendingAnswer::NotYet,
        None if !loaded.is_discarded => PendingAnswer::NotYet,
        Some(_) | None => PendingAnswer::Never,
    }
}

fn storage_failure(error: &StorageError) -> AgentError {
    JournalError::Storage(error.to_string()).into()
}

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;
