//! What was said in a chat: kept beyond it, with the answers of runs that waited for a person once they are there.

use std::sync::Arc;

use toolyard_agent::{O200k, RunEnd, RunEvent, recent};
use toolyard_core::{BoxFuture, ConversationQuery, Conversations, Message, RunId, RunLog};
use toolyard_model::{ModelMessage, Role};
use toolyard_store::{Store, StoreError, StoredConversation};

use crate::failure::{Code, Failure};

/// So many messages may be told to the model again.
const MOST_TOLD: usize = 200;
/// So many tokens of them, the latest first.
const TOLD_TOKENS: usize = 2_000;
/// The role under which a run stands that waits for a person; what came of it is in its log.
const WAITS: &str = "run";

/// A conversation, and what of it this chat goes on from.
#[derive(Debug)]
pub(super) struct Memory {
    kept: StoredConversation,
    /// What was said, the oldest first.
    said: Vec<Message>,
}

/// What came of a run that waited.
#[derive(Debug)]
enum CameOf {
    Answer(String),
    Nothing,
    StillWaits,
}

impl Memory {
    /// The conversation of this name.
    pub(super) async fn open(store: &Store, name: &str) -> Result<Self, Failure> {
        let kept = store.conversation(name);
        let query = ConversationQuery { limit: usize::MAX, ..ConversationQuery::default() };
        let said = kept.recall(&query).await.map_err(|error| Failure::new(Code::Failed, error))?;
        Ok(Self { kept, said })
    }

    /// The conversation as tools see it.
    pub(super) fn for_tools(&self) -> Arc<dyn Conversations> {
        Arc::new(OnlyMessages(self.kept.clone()))
    }

    /// What was said, the oldest first.
    pub(super) fn messages(&self) -> impl Iterator<Item = &Message> {
        self.said.iter().filter(|message| message.role != WAITS)
    }

    /// Goes on from nothing; what was said stays kept.
    pub(super) fn clear(&mut self) {
        self.said.clear();
    }

    /// What of it a model is told again: the latest, within limits.
    pub(super) fn told_again(&self) -> Vec<ModelMessage> {
        let message = |message: &Message| {
            let role = if message.role == "assistant" { Role::Assistant } else { Role::User };
            ModelMessage::new(role, message.text.as_str())
        };
        let all: Vec<&Message> = self.messages().collect();
        let latest = all.iter().skip(all.len().saturating_sub(MOST_TOLD));
        recent(&latest.map(|one| message(one)).collect::<Vec<_>>(), TOLD_TOKENS, &O200k)
    }

    /// Keeps a question and how its run stands.
    pub(super) async fn remember(
        &mut self,
        question: &str,
        run: &RunId,
        end: &RunEnd,
    ) -> Result<(), StoreError> {
        self.push("user", question).await?;
        match end {
            RunEnd::Answered { answer, .. } => self.push("assistant", answer).await,
            RunEnd::Suspended { .. } => self.push(WAITS, run.as_str()).await,
            _ => Ok(()),
        }
    }

    /// Takes in what runs came to that waited, by whichever door that happened; those whose answers are new, with them.
    pub(super) async fn settle(&mut self, log: &dyn RunLog) -> Result<Vec<(RunId, String)>, StoreError> {
        let mut news = Vec::new();
        for at in (0..self.said.len()).rev() {
            let Some(waits) = self.said.get(at).filter(|message| message.role == WAITS).cloned() else {
                continue;
            };
            let run = RunId::from(waits.text.as_str());
            match came_of(log, &run).await {
                CameOf::StillWaits => {}
                CameOf::Nothing => {
                    self.kept.replace(&waits, None).await?;
                    self.said.remove(at);
                }
                CameOf::Answer(answer) => {
                    let answered = Message { role: "assistant".to_owned(), text: answer.clone() };
                    self.kept.replace(&waits, Some(&answered)).await?;
                    if let Some(message) = self.said.get_mut(at) {
                        *message = answered;
                    }
                    news.push((run, answer));
                }
            }
        }
        news.reverse();
        Ok(news)
    }

    async fn push(&mut self, role: &str, text: &str) -> Result<(), StoreError> {
        let message = Message { role: role.to_owned(), text: text.to_owned() };
        self.kept.push(&message).await?;
        self.said.push(message);
        Ok(())
    }
}

async fn came_of(log: &dyn RunLog, run: &RunId) -> CameOf {
    // What cannot be read now may be readable later.
    let Ok(events) = log.events(run, 0).await else { return CameOf::StillWaits };
    match events.last().map(|last| last.event.read::<RunEvent>()) {
        Some(Ok(RunEvent::Ended { end: RunEnd::Answered { answer, .. } })) => CameOf::Answer(answer),
        Some(Ok(RunEvent::Ended { end: RunEnd::Suspended { .. } }) | Err(_)) => CameOf::StillWaits,
        Some(Ok(RunEvent::Ended { .. })) | None => CameOf::Nothing,
        Some(Ok(_)) => CameOf::StillWaits,
    }
}

/// A conversation without what only stands in it to be looked up.
#[derive(Debug)]
struct OnlyMessages(StoredConversation);

impl Conversations for OnlyMessages {
    fn recall<'a>(&'a self, query: &'a ConversationQuery) -> BoxFuture<'a, Result<Vec<Message>, String>> {
        Box::pin(async move {
            let all = ConversationQuery { limit: usize::MAX, ..query.clone() };
            let mut found = self.0.recall(&all).await?;
            found.retain(|message| message.role != WAITS);
            Ok(found.split_off(found.len().saturating_sub(query.limit)))
        })
    }
}
