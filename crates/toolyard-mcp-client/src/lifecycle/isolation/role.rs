//! What differs between the shared instance of a server and a private one.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};
use toolyard_core::{CallContext, CallerIdentity, ContentHash, ErrorKind, ToolError};

use super::instances::PrivateInstances;
use crate::{
    content::server_content::ServerContent,
    instance_owner::InstanceOwner,
    lifecycle::{
        caller_sessions::CallerSessions,
        server::{ManagedServer, ManagedState},
        state::Lifecycle,
        subscriptions::ResourceSubscriptions,
    },
    pinning::ToolApprovals,
    session::handle::Session,
    transport::stdio::running_processes::RunningProcesses,
};

/// Failed calls in a row after which a private instance is started anew. The circuit breaker of the server does not count
/// them, because they say nothing about the instances of others.
const MAX_CONSECUTIVE_FAILURES: u32 = 5;

#[derive(Debug)]
pub(in crate::lifecycle) enum InstanceRole {
    /// The instance whose lists are recorded. It serves the callers that are not told apart.
    Shared {
        /// Identifies it among all shared instances, also those of earlier configurations.
        number: u64,
        private: Arc<PrivateInstances>,
    },
    /// An instance of one caller. It records nothing, and nobody but its caller learns of its failures.
    Private { owner: Arc<InstanceOwner>, consecutive_failures: AtomicU32 },
}

impl InstanceRole {
    pub(in crate::lifecycle) fn shared(private: Arc<PrivateInstances>) -> Self {
        static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);
        Self::Shared { number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed), private }
    }
}

impl ManagedServer {
    /// A private instance of a server, which is not started. It starts only after its predecessors have ended.
    pub(super) fn private_instance(
        shared: &Self,
        owner: &Arc<CallerIdentity>,
        predecessors: Vec<watch::Receiver<bool>>,
    ) -> Arc<Self> {
        let mut config = shared.config.clone();
        // The pool decides when it is idle, and a process behind a URL belongs to the shared instance.
        (config.idle_stop, config.program) = (None, None);
        let revision_family = shared.revision_family();
        let back_channel = shared.state.lock().back_channel;
        let state = ManagedState {
            lifecycle: Lifecycle::new(config.enabled, true, Instant::now()),
            closing: predecessors,
            draining: Vec::new(),
            back_channel,
            modern_tools: BTreeSet::new(),
            revision_family,
            approvals: Arc::new(ToolApprovals::default()),
            listed_tools: None,
            content: Arc::new(ServerContent::default()),
            subscriptions: ResourceSubscriptions::default(),
            caller_sessions: CallerSessions::default(),
        };
        Arc::new(Self {
            config,
            host: Arc::clone(&shared.host),
            shared: Arc::clone(&shared.shared),
            stderr_tail: Arc::new(shared.stderr_tail.empty_copy()),
            secrets: Arc::clone(&shared.secrets),
            processes: RunningProcesses::default(),
            role: InstanceRole::Private {
                owner: Arc::new(InstanceOwner::new(Arc::clone(owner))),
                consecutive_failures: AtomicU32::new(0),
            },
            state: Mutex::new(state),
            refresh_lock: tokio::sync::Mutex::default(),
            register_lock: Mutex::default(),
        })
    }

    pub(in crate::lifecycle) fn is_private(&self) -> bool {
        matches!(self.role, InstanceRole::Private { .. })
    }

    /// The caller that a private instance belongs to.
    pub(in crate::lifecycle) fn owner(&self) -> Option<Arc<InstanceOwner>> {
        match &self.role {
            InstanceRole::Private { owner, .. } => Some(Arc::clone(owner)),
            InstanceRole::Shared { .. } => None,
        }
    }

    /// Takes over the current claims and the token of the caller.
    pub(super) fn renew_owner(&self, identity: &Arc<CallerIdentity>) {
        if let InstanceRole::Private { owner, .. } = &self.role {
            owner.renew(identity);
        }
    }

    /// The number of private instances of this server.
    pub fn private_instances(&self) -> usize {
        match &self.role {
            InstanceRole::Shared { number, private } => private.active_count(*number),
            InstanceRole::Private { .. } => 0,
        }
    }

    pub(in crate::lifecycle) fn has_private_calls(&self) -> bool {
        match &self.role {
            InstanceRole::Shared { number, private } => private.has_calls(*number),
            InstanceRole::Private { .. } => false,
        }
    }

    /// Stops the private instances of this server.
    pub(in crate::lifecycle) async fn stop_private_instances(&self) {
        if let InstanceRole::Shared { number, private } = &self.role {
            private.stop_server(*number).await;
        }
    }

    /// Stops the private instances of one caller ([`CallerIdentity::owner`]).
    pub async fn stop_instances_of(&self, owner: &ContentHash) {
        if let InstanceRole::Shared { number, private } = &self.role {
            private.stop_owner(*number, owner).await;
        }
    }

    /// Whether this is the shared instance with this number.
    pub(super) fn is_numbered(&self, wanted: u64) -> bool {
        matches!(&self.role, InstanceRole::Shared { number, .. } if *number == wanted)
    }

    /// Stops a private instance for ever; its place goes to others when all its processes have ended.
    pub(super) async fn end(self: &Arc<Self>) {
        self.state.lock().lifecycle.retire();
        self.stop().await;
        // A start that was cancelled leaves its process behind, which shuts down in the background.
        self.processes.wait_until_none().await;
    }

    /// Records whether a private instance as a whole failed at a call. One that keeps failing is started anew.
    pub(in crate::lifecycle) fn record_private_outcome(
        self: &Arc<Self>,
        session: &Arc<Session>,
        is_fault: bool,
    ) {
        let InstanceRole::Private { consecutive_failures, .. } = &self.role else { return };
        if !is_fault {
            return consecutive_failures.store(0, Ordering::Relaxed);
        }
        let failures = consecutive_failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if failures >= MAX_CONSECUTIVE_FAILURES {
            consecutive_failures.store(0, Ordering::Relaxed);
            self.replace_failing_session(session, &format!("{failures} calls in a row failed"));
        }
    }

    /// The error of a call of a tool that a private instance does not offer with the approved definition.
    pub(in crate::lifecycle) fn private_definition_error(&self, tool: &str) -> ToolError {
        let message = "the private instance of the server offers another definition of this tool than the approved one, or none";
        let error = ToolError::new(ErrorKind::Quarantined, message)
            .with_operator_hint(format!(
                "if all instances may share their state, set `isolation = \"shared\"` for the server `{}`",
                self.config.id
            ))
            .with_caller_hint("only the operator can approve it");
        error.on_tool(tool).on_source(&self.config.id)
    }
}

/// Records a call in a private instance that ends without an outcome: it failed if its time is over, otherwise it was
/// cancelled.
#[derive(Debug)]
pub(in crate::lifecycle) struct UnfinishedCall<'a> {
    server: &'a Arc<ManagedServer>,
    session: &'a Arc<Session>,
    context: &'a CallContext,
    is_finished: bool,
}

impl<'a> UnfinishedCall<'a> {
    pub(in crate::lifecycle) fn new(
        server: &'a Arc<ManagedServer>,
        session: &'a Arc<Session>,
        context: &'a CallContext,
    ) -> Self {
        Self { server, session, context, is_finished: false }
    }

    pub(in crate::lifecycle) fn finish(mut self) {
        self.is_finished = true;
    }
}

impl Drop for UnfinishedCall<'_> {
    fn drop(&mut self) {
        if self.is_finished || !self.server.is_private() {
            return;
        }
        let deadline = self
            .context
            .extendable_deadline
            .as_ref()
            .map_or(self.context.deadline, |deadline| deadline.deadline().max(self.context.deadline));
        if Instant::now().into_std() >= deadline {
            self.server.record_private_outcome(self.session, true);
        }
    }
}
