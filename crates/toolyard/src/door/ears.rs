//! Passes on what happens in a run, and what is asked in it, to whoever began it and to everybody who listens.

use std::sync::Arc;

use tokio::sync::{broadcast, mpsc, oneshot};
use toolyard_agent::{AgentError, ApprovalDecision, ApprovalQuestion, RunEnd, RunNews, RunWatcher};
use toolyard_core::{BoxFuture, CallQuestion, Caller, RawJson, Unanswered};

/// What whoever began a run hears of it: everything, and how it ended.
#[derive(Debug)]
pub(super) enum Heard {
    News(RunNews),
    /// Whether a call may be made; the run goes on when that is answered.
    Asks(ApprovalQuestion, oneshot::Sender<Option<ApprovalDecision>>),
    /// What a tool wants to know; its call goes on when that is answered.
    ToolAsks(Vec<CallQuestion>, oneshot::Sender<Result<Vec<RawJson>, Unanswered>>),
    Ended(Result<RunEnd, AgentError>),
}

/// Passes on what happens. Where nobody can say whether a call may be made, the run is suspended until somebody does.
pub(super) struct Ears {
    pub(super) news: broadcast::Sender<Arc<RunNews>>,
    pub(super) heard: Option<mpsc::UnboundedSender<Heard>>,
    /// Whoever began the run, if they can be asked.
    pub(super) client: Option<Client>,
}

/// The client that began a run, as far as tools must know it before they ask something.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) capabilities: RawJson,
    pub(super) conversation: u64,
}

/// Asks the client of a run what a tool wants to know.
#[derive(Debug)]
struct ClientOfRun {
    client: Client,
    heard: mpsc::UnboundedSender<Heard>,
}

impl Caller for ClientOfRun {
    fn capabilities(&self) -> RawJson {
        self.client.capabilities.clone()
    }

    fn conversation(&self) -> u64 {
        self.client.conversation
    }

    fn ask<'a>(&'a self, questions: &'a [CallQuestion]) -> BoxFuture<'a, Result<Vec<RawJson>, Unanswered>> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let asked = self.heard.send(Heard::ToolAsks(questions.to_vec(), answer));
            asked.map_err(|_| Unanswered::nobody())?;
            answered.await.unwrap_or_else(|_| Err(Unanswered::nobody()))
        })
    }
}

impl RunWatcher for Ears {
    fn see(&self, news: &RunNews) {
        // Nobody has to listen.
        let _ = self.news.send(Arc::new(news.clone()));
        if let Some(heard) = &self.heard {
            let _ = heard.send(Heard::News(news.clone()));
        }
    }

    fn caller(&self, _step: &str) -> Option<Arc<dyn Caller>> {
        let (client, heard) = (self.client.clone()?, self.heard.clone()?);
        Some(Arc::new(ClientOfRun { client, heard }))
    }

    fn decide<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, Option<ApprovalDecision>> {
        Box::pin(async move {
            let heard = self.heard.as_ref().filter(|_| self.client.is_some())?;
            let (answer, answered) = oneshot::channel();
            heard.send(Heard::Asks(question.clone(), answer)).ok()?;
            answered.await.ok().flatten()
        })
    }
}
