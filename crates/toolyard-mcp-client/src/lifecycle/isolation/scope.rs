//! Which instance of a server serves a call: the shared one, or a private one of the caller.

use std::sync::Arc;

use toolyard_core::{Caller, CallerIdentity, ContentHash, RevisionFamily};

use super::{instances::InstanceLease, pool::InstanceKey, role::InstanceRole};
use crate::{
    config::{HttpKind, IsolationSetting, TransportConfig},
    lifecycle::{connect_error::ConnectError, server::ManagedServer},
    sync::lock,
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
    pub(in crate::lifecycle) async fn instance_for(
        self: &Arc<Self>,
        identity: Option<&Arc<CallerIdentity>>,
        caller: Option<&Arc<dyn Caller>>,
    ) -> Result<InstanceLease, ConnectError> {
        let identity = identity.or_else(|| caller?.identity()).filter(|identity| identity.is_distinguished());
        let (Some(identity), InstanceRole::Shared { number, private }) = (identity, &self.role) else {
            return Ok(InstanceLease::shared(self));
        };
        // Whether an HTTP server keeps state is known once it has been connected.
        let is_unknown = self.config.isolation.is_none()
            && self.revision_family().is_none()
            && !self.keeps_state()
            && !self.config.has_tokens_per_caller();
        // The process behind the URL belongs to the shared instance.
        if is_unknown || (self.config.program.is_some() && self.is_isolated(Some(identity))) {
            self.connect().await?;
        }
        let session = match self.isolation() {
            IsolationSetting::Shared => return Ok(InstanceLease::shared(self)),
            IsolationSetting::Caller => None,
            IsolationSetting::Session => caller.and_then(|caller| session_of(&**caller)),
        };
        lock(&self.state).lifecycle.check_usable()?;
        let key = InstanceKey { server: *number, owner: *identity.owner(), session };
        let lease = private.lease(&key, self, identity)?;
        // The configuration may have changed since.
        let usable = lock(&self.state).lifecycle.check_usable();
        if let Err(error) = usable {
            let (private, number) = (Arc::clone(private), *number);
            tokio::spawn(async move { private.stop_server(number).await });
            return Err(error);
        }
        Ok(lease)
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
