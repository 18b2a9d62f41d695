//! Which instance of a server serves a call: the shared one, or a private one of the caller.

use std::sync::Arc;

use tokio::time::Instant;
use toolyard_core::{Caller, CallerIdentity, ContentHash, RevisionFamily};

use super::{instances::InstanceLease, pool::InstanceKey, role::InstanceRole};
use crate::{
    config::{HttpKind, IsolationSetting, TransportConfig},
    lifecycle::{connect_error::ConnectError, server::ManagedServer},
    session::handle::Session,
};

impl ManagedServer {
    /// Whether calls of this caller go to an instance of its own.
    pub fn is_isolated(&self, identity: Option<&CallerIdentity>) -> bool {
        let is_distinguished = identity.is_some_and(CallerIdentity::is_distinguished);
        is_distinguished && self.isolation() != IsolationSetting::Shared
    }

    /// The configured isolation; by default, a server that keeps state between calls or has tokens of each caller has an
    /// instance for each caller.
    fn isolation(&self) -> IsolationSetting {
        let by_default = || match self.keeps_state() || self.config.has_tokens_per_caller() {
            true => IsolationSetting::Caller,
            false => IsolationSetting::Shared,
        };
        self.config.isolation.unwrap_or_else(by_default)
    }

    /// Whether the server can tell calls of one session from those of another: a process can, and so can an HTTP server of
    /// a revision with sessions.
    fn keeps_state(&self) -> bool {
        match &self.config.transport {
            TransportConfig::Stdio { .. } | TransportConfig::Http { kind: HttpKind::Sse, .. } => true,
            TransportConfig::Http { .. } => self.revision_family() == Some(RevisionFamily::Legacy),
        }
    }

    /// Whether the end of an instance ends what the server remembered, as far as the settings and the protocol tell.
    pub(super) fn loses_state(&self) -> bool {
        let has_state = || self.live_session().is_none_or(|session| session.has_state());
        self.keeps_state() && !self.config.stateless && has_state()
    }

    /// Whether the server may remember something in its sessions with this process, so that another process cannot continue them.
    /// Connects to find out; true if that fails.
    pub async fn has_session_state(self: &Arc<Self>) -> bool {
        // What a program remembers ends with the program, which this process starts.
        if self.config.has_log() {
            return true;
        }
        self.connect().await.map_or(true, |session| session.has_state())
    }

    /// The shared instance, for a call without a caller that is told apart.
    pub(in crate::lifecycle) fn shared_instance_for(
        self: &Arc<Self>,
        identity: Option<&Arc<CallerIdentity>>,
        caller: Option<&Arc<dyn Caller>>,
    ) -> Option<InstanceLease> {
        let identity = identity.or_else(|| caller?.identity());
        let is_distinguished = identity.is_some_and(|identity| identity.is_distinguished());
        (!is_distinguished).then(|| InstanceLease::shared(self))
    }

    /// The instance for a call, for as long as the result exists.
    ///
    /// Waits until `deadline` for a place among the private instances.
    pub(in crate::lifecycle) async fn instance_for(
        self: &Arc<Self>,
        identity: Option<&Arc<CallerIdentity>>,
        caller: Option<&Arc<dyn Caller>>,
        deadline: Instant,
    ) -> Result<InstanceLease, ConnectError> {
        let identity = identity.or_else(|| caller?.identity()).filter(|identity| identity.is_distinguished());
        let (Some(identity), InstanceRole::Shared { number, private }) = (identity, &self.role) else {
            return Ok(InstanceLease::shared(self));
        };
        // Whether an HTTP server keeps state, its current session says: what is known of earlier ones may have changed.
        let depends_on_session = self.config.isolation.is_none()
            && !self.config.has_tokens_per_caller()
            && matches!(self.config.transport, TransportConfig::Http { kind, .. } if kind != HttpKind::Sse);
        // The process behind the URL belongs to the shared instance.
        if depends_on_session || (self.config.program.is_some() && self.is_isolated(Some(identity))) {
            let session = self.connect().await?;
            if depends_on_session && session.revision_family() != RevisionFamily::Legacy {
                return Ok(InstanceLease::shared(self));
            }
        }
        let session = match self.isolation() {
            IsolationSetting::Shared if !depends_on_session => return Ok(InstanceLease::shared(self)),
            IsolationSetting::Shared | IsolationSetting::Caller => None,
            IsolationSetting::Session => caller.and_then(|caller| session_of(&**caller)),
        };
        self.state.lock().lifecycle.check_usable()?;
        let key = InstanceKey { server: *number, owner: *identity.owner(), session };
        let lease = private.lease(&key, self, identity, deadline).await?;
        // The configuration may have changed since.
        let usable = self.state.lock().lifecycle.check_usable();
        if let Err(error) = usable {
            drop(lease);
            // Calls of others end as the retirement allows them to.
            private.stop_unused(*number);
            return Err(error);
        }
        Ok(lease)
    }

    /// Fails if a call of this caller must not use a session of the shared instance, which became one with state after the
    /// instance had been chosen. Nothing was sent.
    pub(in crate::lifecycle) fn check_may_share(
        &self,
        session: &Session,
        identity: Option<&CallerIdentity>,
    ) -> Result<(), ConnectError> {
        let is_distinguished = identity.is_some_and(CallerIdentity::is_distinguished);
        let has_state = session.revision_family() == RevisionFamily::Legacy;
        if is_distinguished && !self.is_private() && self.config.isolation.is_none() && has_state {
            return Err(ConnectError::Cancelled);
        }
        Ok(())
    }
}

/// What a call belongs to: the conversation of a run, or the session of the client. Calls of a run without either belong to
/// the run. A client of a revision without sessions has none.
fn session_of(caller: &dyn Caller) -> Option<u64> {
    if let Some(conversation) = caller.conversation() {
        let id = conversation.id();
        let hash = ContentHash::of_parts([id.owner.as_bytes(), id.name.as_bytes()]);
        let [a, b, c, d, e, f, g, h, ..] = *hash.as_bytes();
        return Some(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
    }
    // A client without sessions has the same id on all its connections.
    (caller.client_id() == caller.session_id()).then(|| caller.session_id())
}
