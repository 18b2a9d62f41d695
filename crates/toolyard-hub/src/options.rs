//! How one call is to be carried out, and what can be seen of it from outside while it is.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use toolyard_core::{Caller, ContentHash};

use crate::{budget::Budget, decision::Trail, surface::Profile};

/// How one call is to be carried out.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallOptions {
    /// Nothing of the call goes on longer than this.
    pub timeout: Duration,
    /// How much of the answer is shown.
    pub budget: Budget,
    /// Where decisions are written down, for whoever wants them explained.
    pub trail: Option<Arc<Trail>>,
    /// Knows whether the call may be dropped without a question left open.
    pub watch: Option<Arc<Watch>>,
    /// On whose behalf the call is made, for the audit log.
    pub who: Arc<str>,
    /// What the call is for: what a person asked, or the step of a plan. A tool that succeeds is remembered for it.
    pub request: Option<Arc<str>>,
    /// Who can be told and asked while the call goes on.
    pub caller: Option<Arc<dyn Caller>>,
    /// Whether structured results that a tool promises a form for keep that form when the answer is cut. Otherwise only
    /// text is left of it.
    pub keep_form: bool,
    /// Which tools may answer at all; every one where nothing is said.
    pub profile: Option<Arc<Profile>>,
    /// The definitions that somebody judged before the call, as hashes: a step of a run is not carried out by a tool that
    /// is none of these any more.
    pub judged: Option<Arc<[ContentHash]>>,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            budget: Budget::default(),
            trail: None,
            watch: None,
            who: Arc::from("library"),
            request: None,
            caller: None,
            keep_form: false,
            profile: None,
            judged: None,
        }
    }
}

impl CallOptions {
    /// The same options with another time limit.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The same options with another budget.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// The same options with decisions written down.
    #[must_use]
    pub fn with_trail(mut self, trail: Arc<Trail>) -> Self {
        self.trail = Some(trail);
        self
    }

    /// The same options with somebody who watches.
    #[must_use]
    pub fn with_watch(mut self, watch: Arc<Watch>) -> Self {
        self.watch = Some(watch);
        self
    }

    /// The same options on behalf of somebody else.
    #[must_use]
    pub fn on_behalf_of(mut self, who: impl Into<Arc<str>>) -> Self {
        self.who = who.into();
        self
    }

    /// The same options for a call of somebody who can be told and asked things.
    #[must_use]
    pub fn with_caller(mut self, caller: Arc<dyn Caller>) -> Self {
        self.caller = Some(caller);
        self
    }

    /// The same options for a call of somebody who is offered only these tools.
    #[must_use]
    pub fn within(mut self, profile: Arc<Profile>) -> Self {
        self.profile = Some(profile);
        self
    }

    /// The same options for a call that only these definitions may answer.
    #[must_use]
    pub fn judged(mut self, definitions: impl Into<Arc<[ContentHash]>>) -> Self {
        self.judged = Some(definitions.into());
        self
    }

    /// The same options for a call that serves this request.
    #[must_use]
    pub fn for_request(mut self, request: impl Into<Arc<str>>) -> Self {
        self.request = Some(request.into());
        self
    }
}

/// Knows whether something that must not be repeated is under way: who drops the call then leaves its outcome unknown.
#[derive(Debug, Default)]
pub struct Watch(AtomicBool);

impl Watch {
    /// Whether a call with side effects was begun and has not ended.
    pub fn is_unsettled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, unsettled: bool) {
        self.0.store(unsettled, Ordering::Relaxed);
    }
}
