//! [`Context`]: what every task of a run needs.

use std::{sync::Arc, time::Duration};

use tokio::sync::mpsc;
use toolyard_core::{Conversation, Lease, telemetry::SpanContext};

use crate::values::StepValues;
use crate::{Agent, AgentParts, RunUpdate, RunWatcher};

#[derive(Clone)]
pub(super) struct Context<'a> {
    pub(super) agent: &'a Agent,
    pub(super) parts: &'a AgentParts,
    pub(super) lease: &'a Lease,
    pub(super) watcher: &'a dyn RunWatcher,
    pub(super) values: Arc<StepValues>,
    /// The conversation that the run belongs to.
    pub(super) conversation: Option<Conversation>,
    /// Receives the progress of tools.
    pub(super) progress: mpsc::Sender<RunUpdate>,
    /// Whether the run was driven before; what its driver had only in memory is lost.
    pub(super) resumed: bool,
    /// The span that causes what the run does: its own, or the one that caused the run.
    pub(super) span: Option<SpanContext>,
}

impl Context<'_> {
    /// How long a failing store operation is retried, short enough that the lease does not expire meanwhile.
    pub(super) fn retry_window(&self) -> Duration {
        self.agent.lease_duration / 2
    }
}
