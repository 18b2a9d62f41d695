//! [`RunObserver`]: forwards updates, approval requests and input requests of a run to its clients.

use std::sync::Arc;

use tokio::sync::{broadcast, mpsc, oneshot};
use toolyard_agent::{AgentError, ApprovalDecision, ApprovalRequest, RunEnd, RunUpdate, RunWatcher};
use toolyard_core::{BoxFuture, CallInputError, CallInputRequest, Caller, RawJson};

#[derive(Debug)]
pub(super) enum RunMessage {
    Update(RunUpdate),
    /// The run waits for the decision.
    ApprovalRequest(ApprovalRequest, oneshot::Sender<Option<ApprovalDecision>>),
    /// A tool call of the run waits for the responses.
    InputRequest(Vec<CallInputRequest>, oneshot::Sender<Result<Vec<RawJson>, CallInputError>>),
    Ended(Result<RunEnd, AgentError>),
}

/// Watches a run for its clients. Without `client` the run is suspended when a call needs an approval.
pub(super) struct RunObserver {
    /// Updates for every client that follows the run.
    pub(super) updates: broadcast::Sender<Arc<RunUpdate>>,
    /// Messages for the client that started the run, if it waits for the run.
    pub(super) messages: Option<mpsc::UnboundedSender<RunMessage>>,
    /// Set if that client accepts approval and input requests.
    pub(super) client: Option<RunClient>,
}

/// The client that started a run, as its tools see it.
#[derive(Debug, Clone)]
pub(super) struct RunClient {
    pub(super) capabilities: RawJson,
    /// See [`Caller::session_id`], [`Caller::client_id`] and [`Caller::program_id`].
    pub(super) session_id: u64,
    pub(super) client_id: u64,
    pub(super) program_id: u64,
}

impl RunClient {
    pub(super) fn of(caller: &dyn Caller) -> Self {
        Self {
            capabilities: caller.capabilities(),
            session_id: caller.session_id(),
            client_id: caller.client_id(),
            program_id: caller.program_id(),
        }
    }
}

/// Forwards input requests of tools to the client of the run.
#[derive(Debug)]
struct RunCaller {
    client: RunClient,
    messages: mpsc::UnboundedSender<RunMessage>,
}

impl Caller for RunCaller {
    fn capabilities(&self) -> RawJson {
        self.client.capabilities.clone()
    }

    fn session_id(&self) -> u64 {
        self.client.session_id
    }

    fn client_id(&self) -> u64 {
        self.client.client_id
    }

    fn program_id(&self) -> u64 {
        self.client.program_id
    }

    fn request_input<'a>(
        &'a self,
        requests: &'a [CallInputRequest],
    ) -> BoxFuture<'a, Result<Vec<RawJson>, CallInputError>> {
        Box::pin(async move {
            let (sender, response) = oneshot::channel();
            let sent = self.messages.send(RunMessage::InputRequest(requests.to_vec(), sender));
            sent.map_err(|_| CallInputError::unsupported())?;
            response.await.unwrap_or_else(|_| Err(CallInputError::unsupported()))
        })
    }
}

impl RunWatcher for RunObserver {
    fn on_update(&self, update: &RunUpdate) {
        // Both fail only if there are no receivers.
        let _ = self.updates.send(Arc::new(update.clone()));
        if let Some(messages) = &self.messages {
            let _ = messages.send(RunMessage::Update(update.clone()));
        }
    }

    fn responder(&self, _step: &str) -> Option<Arc<dyn Caller>> {
        let (client, messages) = (self.client.clone()?, self.messages.clone()?);
        Some(Arc::new(RunCaller { client, messages }))
    }

    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Option<ApprovalDecision>> {
        Box::pin(async move {
            let messages = self.messages.as_ref().filter(|_| self.client.is_some())?;
            let (sender, decision) = oneshot::channel();
            messages.send(RunMessage::ApprovalRequest(request.clone(), sender)).ok()?;
            decision.await.ok().flatten()
        })
    }
}
