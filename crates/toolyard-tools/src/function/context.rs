//! [`ToolContext`]: what a function tool knows about its call, and how it talks to its caller meanwhile.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolyard_core::{
    CallContext, CallInputError, CallInputKind, CallInputRequest, CallProgress, Caller, SourceId,
};

use crate::arguments::schema_of;

/// The context of a call of a function tool. Cheap to clone; tasks that the function spawns may keep one.
#[derive(Debug, Clone)]
pub struct ToolContext {
    call: CallContext,
    /// Closed when the future of the call is dropped.
    ended: watch::Receiver<()>,
}

/// Marks the call as ended when it is dropped.
pub(super) struct CallGuard(#[expect(dead_code, reason = "only its drop matters")] watch::Sender<()>);

impl ToolContext {
    /// The context of a call, and what ends it.
    pub(super) fn new(call: &CallContext) -> (Self, CallGuard) {
        let (sender, ended) = watch::channel(());
        (Self { call: call.clone(), ended }, CallGuard(sender))
    }

    /// The caller: its session, credentials and conversation. `None` for a call of the embedding program itself.
    pub fn caller(&self) -> Option<&Arc<dyn Caller>> {
        self.call.caller.as_ref()
    }

    /// When the call is cancelled. Reporting progress moves it for calls with an idle timeout.
    pub fn deadline(&self) -> Instant {
        let extended = self.call.extendable_deadline.as_ref().map(|deadline| deadline.deadline());
        extended.map_or(self.call.deadline, |extended| extended.max(self.call.deadline))
    }

    /// The time that is left until [`ToolContext::deadline`].
    pub fn time_left(&self) -> Duration {
        self.deadline().saturating_duration_since(Instant::now())
    }

    /// 1 for the first attempt of a call, 2 for its first retry. Only calls of tools that are safe to repeat are retried.
    pub fn attempt(&self) -> u32 {
        self.call.attempt
    }

    /// Identifies the call across attempts, for systems that support idempotency keys. Calls of agent runs have one.
    pub fn idempotency_key(&self) -> Option<&str> {
        self.call.idempotency_key.as_deref()
    }

    /// Reports progress to the caller, if it wants reports. The call counts as active, which restarts its idle timeout.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: impl Into<String>) {
        if let Some(deadline) = &self.call.extendable_deadline {
            deadline.record_activity(Instant::now());
        }
        if let Some(caller) = self.caller().filter(|caller| caller.wants_progress()) {
            caller.progress(&CallProgress { progress, total, message: Some(message.into()) });
        }
    }

    /// Asks the user of the caller to fill in a form with the fields of `T`, which are text, numbers, booleans or choices.
    /// `None` if the user declined.
    ///
    /// # Errors
    /// [`CallInputError::Unsupported`] if the caller cannot ask its user.
    pub async fn ask<T: DeserializeOwned + JsonSchema>(
        &self,
        message: &str,
    ) -> Result<Option<T>, CallInputError> {
        let caller = self.caller().ok_or_else(CallInputError::unsupported)?;
        let request = CallInputRequest {
            key: "question".to_owned(),
            source: SourceId::from(SourceId::NATIVE),
            kind: CallInputKind::Elicitation,
            params: Some(
                json!({"mode": "form", "message": message, "requestedSchema": schema_of::<T>().to_value()})
                    .into(),
            ),
        };
        let pause = self.call.extendable_deadline.clone().map(PausedDeadline::new);
        let answers = caller.request_input(&[request]).await?;
        drop(pause);
        let answer = answers.first().map(toolyard_core::RawJson::to_value).unwrap_or_default();
        if answer.get("action").and_then(Value::as_str) != Some("accept") {
            return Ok(None);
        }
        let content = answer.get("content").cloned().unwrap_or_default();
        serde_json::from_value(content)
            .map(Some)
            .map_err(|_| CallInputError::Failed("the answer of the user does not fit the form".to_owned()))
    }

    /// Waits until the call has ended: it was cancelled, its time was over, or it returned. The function itself is dropped
    /// then; this is for tasks that it spawned.
    pub async fn ended(&self) {
        let mut ended = self.ended.clone();
        // Nothing is ever sent, so this only returns when the sender is dropped.
        let _ = ended.changed().await;
    }

    /// Whether the call has ended; for work on other threads.
    pub fn has_ended(&self) -> bool {
        self.ended.has_changed().is_err()
    }
}

/// Pauses the idle timeout of a call, also if the future that waits is dropped.
struct PausedDeadline(Arc<toolyard_core::ExtendableDeadline>);

impl PausedDeadline {
    fn new(deadline: Arc<toolyard_core::ExtendableDeadline>) -> Self {
        deadline.pause();
        Self(deadline)
    }
}

impl Drop for PausedDeadline {
    fn drop(&mut self) {
        self.0.resume(Instant::now());
    }
}
