//! [`StepCaller`]: forwards the progress and the input requests of a step's tool.

use std::sync::Arc;

use tokio::sync::mpsc;
use toolyard_core::{
    BoxFuture, CallInputError, CallInputRequest, CallProgress, Caller, CallerIdentity, ContentHash,
    Conversation, RawJson, redact,
};

use super::super::context::Context;
use crate::RunUpdate;

const MAX_MESSAGE_CHARS: usize = 200;

#[derive(Debug)]
pub(super) struct StepCaller {
    step: String,
    /// Identifies the caller to servers, so that all steps of a run count as one session. Derived from the run; used if there
    /// is no `responder`.
    session_id: u64,
    updates: mpsc::Sender<RunUpdate>,
    /// Answers input requests.
    responder: Option<Arc<dyn Caller>>,
    conversation: Option<Conversation>,
    /// In whose name the tool is called.
    identity: Option<Arc<CallerIdentity>>,
}

impl StepCaller {
    pub(super) fn new(
        context: &Context<'_>,
        step: &str,
        responder: Option<Arc<dyn Caller>>,
        identity: Option<Arc<CallerIdentity>>,
    ) -> Self {
        let hash = ContentHash::of(context.lease.run.as_str());
        let prefix: [u8; 8] = std::array::from_fn(|at| hash.as_bytes().get(at).copied().unwrap_or_default());
        Self {
            step: step.to_owned(),
            session_id: u64::from_le_bytes(prefix),
            updates: context.progress.clone(),
            responder,
            conversation: context.conversation.clone(),
            identity,
        }
    }
}

impl Caller for StepCaller {
    fn capabilities(&self) -> RawJson {
        self.responder.as_ref().map_or_else(RawJson::empty_object, |responder| responder.capabilities())
    }

    fn session_id(&self) -> u64 {
        self.responder.as_ref().map_or(self.session_id, |responder| responder.session_id())
    }

    fn client_id(&self) -> u64 {
        self.responder.as_ref().map_or(self.session_id, |responder| responder.client_id())
    }

    fn program_id(&self) -> u64 {
        self.responder.as_ref().map_or(self.session_id, |responder| responder.program_id())
    }

    fn identity(&self) -> Option<&Arc<CallerIdentity>> {
        self.identity.as_ref()
    }

    fn conversation(&self) -> Option<&Conversation> {
        self.conversation.as_ref()
    }

    fn wants_progress(&self) -> bool {
        true
    }

    fn progress(&self, progress: &CallProgress) {
        let amount = match progress.total {
            Some(total) => format!("{} of {total}", progress.progress),
            None => progress.progress.to_string(),
        };
        let message = progress.message.as_deref().map_or(amount, |message| redact(message).into_owned());
        let message: String = message.chars().take(MAX_MESSAGE_CHARS).collect();
        // A full channel drops the update rather than delay the tool.
        let _ = self.updates.try_send(RunUpdate::StepProgress { step: self.step.clone(), message });
    }

    fn trace_context(&self) -> &[(String, String)] {
        self.responder.as_ref().map_or(&[], |responder| responder.trace_context())
    }

    fn request_input<'a>(
        &'a self,
        requests: &'a [CallInputRequest],
    ) -> BoxFuture<'a, Result<Vec<RawJson>, CallInputError>> {
        match &self.responder {
            Some(responder) => responder.request_input(requests),
            None => Box::pin(std::future::ready(Err(CallInputError::unsupported()))),
        }
    }
}
