//! Options of one call, and the flag that tells whether an effect is pending.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use toolyard_core::{Caller, ContentHash};

use crate::{
    output::budget::Budget,
    routing::{decision::DecisionLog, profile::Profile},
};

/// Options of one call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallOptions {
    /// Time limit of the whole call.
    pub timeout: Duration,
    /// Output budget.
    pub budget: Budget,
    /// Collects decisions, for `--explain`.
    pub trail: Option<Arc<DecisionLog>>,
    /// Set while an effect with unknown outcome is pending.
    pub watch: Option<Arc<PendingEffect>>,
    /// Caller name in the audit log.
    pub who: Arc<str>,
    /// The request that the call serves (a question or a plan step); stored for search if the tool succeeds.
    pub request: Option<Arc<str>>,
    /// Receives progress and input requests during the call.
    pub caller: Option<Arc<dyn Caller>>,
    /// Whether truncation keeps structured content valid against its output schema; otherwise only text is kept.
    pub keep_form: bool,
    /// Restricts the callable tools; `None` allows all.
    pub profile: Option<Arc<Profile>>,
    /// Hashes of the tool definitions that were approved; a tool whose definition is not among them is not called.
    pub judged: Option<Arc<[ContentHash]>>,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self::for_caller(Arc::from("library"))
    }
}

impl CallOptions {
    /// The default options for a call that the audit log records under this caller.
    #[must_use]
    pub fn for_caller(who: Arc<str>) -> Self {
        Self {
            timeout: Duration::from_secs(30),
            budget: Budget::default(),
            trail: None,
            watch: None,
            who,
            request: None,
            caller: None,
            keep_form: false,
            profile: None,
            judged: None,
        }
    }

    /// Sets the time limit.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the output budget.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Collects decisions in `log`.
    #[must_use]
    pub fn with_decision_log(mut self, trail: Arc<DecisionLog>) -> Self {
        self.trail = Some(trail);
        self
    }

    /// Tracks pending effects.
    #[must_use]
    pub fn with_pending_effect(mut self, watch: Arc<PendingEffect>) -> Self {
        self.watch = Some(watch);
        self
    }

    /// Sets the caller name for the audit log.
    #[must_use]
    pub fn on_behalf_of(mut self, who: impl Into<Arc<str>>) -> Self {
        self.who = who.into();
        self
    }

    /// Sets the receiver of progress and input requests.
    #[must_use]
    pub fn with_caller(mut self, caller: Arc<dyn Caller>) -> Self {
        self.caller = Some(caller);
        self
    }

    /// Restricts the callable tools.
    #[must_use]
    pub fn within(mut self, profile: Arc<Profile>) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Restricts the call to these approved definitions.
    #[must_use]
    pub fn judged(mut self, definitions: impl Into<Arc<[ContentHash]>>) -> Self {
        self.judged = Some(definitions.into());
        self
    }

    /// Sets the request that the call serves.
    #[must_use]
    pub fn for_request(mut self, request: impl Into<Arc<str>>) -> Self {
        self.request = Some(request.into());
        self
    }
}

/// Tells whether a call with side effects is running: dropping the call then leaves its outcome unknown.
#[derive(Debug, Default)]
pub struct PendingEffect(AtomicBool);

impl PendingEffect {
    /// Whether a call with side effects has started and not finished.
    pub fn is_pending(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, unsettled: bool) {
        self.0.store(unsettled, Ordering::Relaxed);
    }
}
