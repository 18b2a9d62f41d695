//! Options of one call, and the flag that tells whether an effect is pending.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use toolyard_core::{Caller, CallerIdentity, ContentHash, DataOwner, Synthesizer, telemetry::SpanContext};

use crate::{
    output::budget::Budget,
    routing::{decision::DecisionLog, profile::Profile},
};

/// Options of one call.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[must_use]
pub struct CallOptions {
    /// Time limit of the whole call. Progress extends it if there is a `caller`.
    pub timeout: Duration,
    /// Output budget.
    pub budget: Budget,
    /// Collects decisions, for `--explain`.
    pub decision_log: Option<Arc<DecisionLog>>,
    /// Tells whether a call with side effects is running.
    pub pending_effect: Option<Arc<PendingEffect>>,
    /// The caller: its name in the audit log, and the one whose calls share the slots of a source fairly with those of
    /// others. For an MCP client this is the name that the client claims, until callers are authenticated: clients of one
    /// name share one share, and a client that varies its name gets more than one.
    pub caller_name: Arc<str>,
    /// The user's request for which the tool is called (a question or a plan step); stored for search if the call succeeds.
    pub user_request: Option<Arc<str>>,
    /// Receives progress and input requests during the call.
    pub caller: Option<Arc<dyn Caller>>,
    /// Whether truncation keeps structured content valid against its output schema; otherwise only text is kept.
    pub keep_structured_valid: bool,
    /// Restricts the callable tools; `None` allows all.
    pub profile: Option<Arc<Profile>>,
    /// Hashes of the definitions that were approved with this call; a tool whose definition is not among them is not called.
    pub approved_definitions: Option<Arc<[ContentHash]>>,
    /// Combines the outputs of several sources in place of the hub's model, if the hub has one: what an agent reads goes to
    /// its own model and to no other.
    pub synthesizer: Option<Arc<dyn Synthesizer>>,
    /// The span that causes the call, in place of the span of `caller`.
    pub span: Option<SpanContext>,
    /// The agent that makes the call, for policies.
    pub agent: Option<Arc<str>>,
    /// For whom the call is made, for policies, in place of the identity of `caller`.
    pub identity: Option<Arc<CallerIdentity>>,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self::for_caller(Arc::from("library"))
    }
}

impl CallOptions {
    /// The default options for a call that the audit log records under this caller.
    pub fn for_caller(caller_name: Arc<str>) -> Self {
        Self {
            timeout: Duration::from_secs(30),
            budget: Budget::default(),
            decision_log: None,
            pending_effect: None,
            caller_name,
            user_request: None,
            caller: None,
            keep_structured_valid: false,
            profile: None,
            approved_definitions: None,
            synthesizer: None,
            span: None,
            agent: None,
            identity: None,
        }
    }

    /// Sets the time limit.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the output budget.
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Collects decisions in `log`.
    pub fn with_decision_log(mut self, log: Arc<DecisionLog>) -> Self {
        self.decision_log = Some(log);
        self
    }

    /// Tells through `pending_effect` whether a call with side effects is running.
    pub fn with_pending_effect(mut self, pending_effect: Arc<PendingEffect>) -> Self {
        self.pending_effect = Some(pending_effect);
        self
    }

    /// Sets the caller name for the audit log.
    pub fn on_behalf_of(mut self, caller_name: impl Into<Arc<str>>) -> Self {
        self.caller_name = caller_name.into();
        self
    }

    /// Sets the receiver of progress and input requests.
    pub fn with_caller(mut self, caller: Arc<dyn Caller>) -> Self {
        self.caller = Some(caller);
        self
    }

    /// Restricts the callable tools.
    pub fn within(mut self, profile: Arc<Profile>) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Restricts the call to tools with one of these definitions.
    pub fn with_approved_definitions(mut self, definitions: impl Into<Arc<[ContentHash]>>) -> Self {
        self.approved_definitions = Some(definitions.into());
        self
    }

    /// Sets the model that combines the outputs of several sources.
    pub fn with_synthesizer(mut self, synthesizer: Arc<dyn Synthesizer>) -> Self {
        self.synthesizer = Some(synthesizer);
        self
    }

    /// Sets the span that causes the call.
    pub fn caused_by(mut self, span: Option<SpanContext>) -> Self {
        self.span = span;
        self
    }

    /// Sets the agent that makes the call.
    pub fn by_agent(mut self, agent: impl Into<Arc<str>>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// Sets for whom the call is made.
    pub fn on_behalf_of_identity(mut self, identity: Option<Arc<CallerIdentity>>) -> Self {
        self.identity = identity;
        self
    }

    /// For whom the call is made: `identity`, else that of `caller`.
    pub fn effective_identity(&self) -> Option<&Arc<CallerIdentity>> {
        self.identity.as_ref().or_else(|| self.caller.as_ref()?.identity())
    }

    /// Whose data the call reads and leaves behind.
    pub fn data_owner(&self) -> DataOwner {
        DataOwner::of(self.effective_identity().map(|identity| &**identity))
    }

    /// Sets the user's request for which the tool is called.
    pub fn for_user_request(mut self, request: impl Into<Arc<str>>) -> Self {
        self.user_request = Some(request.into());
        self
    }
}

/// Tells whether a call with side effects is running: dropping the call then leaves its outcome unknown.
#[derive(Debug, Default)]
pub struct PendingEffect {
    is_pending: AtomicBool,
    has_started: AtomicBool,
}

impl PendingEffect {
    /// Whether a call with side effects has started and not finished.
    pub fn is_pending(&self) -> bool {
        self.is_pending.load(Ordering::Relaxed)
    }

    /// Whether a call with side effects has started, even if it has finished since. Otherwise, dropping the call changes nothing.
    pub fn has_started(&self) -> bool {
        self.has_started.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, is_pending: bool) {
        self.is_pending.store(is_pending, Ordering::Relaxed);
        if is_pending {
            self.has_started.store(true, Ordering::Relaxed);
        }
    }

    /// Forgets that the call has started, because nothing of it was sent.
    pub(crate) fn retract(&self) {
        self.has_started.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_that_is_not_pending_any_more_has_started() {
        let effect = PendingEffect::default();
        assert!(!effect.is_pending() && !effect.has_started());
        effect.set(true);
        assert!(effect.is_pending() && effect.has_started());
        effect.set(false);
        assert!(!effect.is_pending() && effect.has_started());
    }
}
