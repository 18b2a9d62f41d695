//! All private instances of a manager's servers: starts and stops what the pool decides.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use futures_util::future::join_all;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use toolyard_core::CallerIdentity;

use super::pool::{Admission, InstanceId, InstanceKey, InstancePool, IsolationLimits};
use crate::{
    lifecycle::{connect_error::ConnectError, server::ManagedServer},
    session::handle::Session,
    sync::lock,
};

/// Idle instances are looked for at least this often, because the limit may change.
const MAX_IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// The private instances of all servers.
#[derive(Debug, Default)]
pub(in crate::lifecycle) struct PrivateInstances(Mutex<InstancesState>);

#[derive(Debug, Default)]
struct InstancesState {
    pool: InstancePool,
    servers: HashMap<InstanceId, PrivateServer>,
    has_idle_task: bool,
}

#[derive(Debug)]
struct PrivateServer {
    server: Arc<ManagedServer>,
    /// Becomes true when the instance has ended.
    ended: watch::Sender<bool>,
}

/// The instance that serves a call. A private one is not stopped while this exists.
#[derive(Debug)]
pub(in crate::lifecycle) struct InstanceLease {
    pub(in crate::lifecycle) server: Arc<ManagedServer>,
    _use: Option<InstanceUse>,
}

#[derive(Debug)]
struct InstanceUse {
    instances: Arc<PrivateInstances>,
    id: InstanceId,
}

impl Drop for InstanceUse {
    fn drop(&mut self) {
        lock(&self.instances.0).pool.release(self.id, Instant::now());
    }
}

impl InstanceLease {
    pub(super) fn shared(server: &Arc<ManagedServer>) -> Self {
        Self { server: Arc::clone(server), _use: None }
    }
}

impl PrivateInstances {
    pub(in crate::lifecycle) fn set_limits(&self, limits: IsolationLimits) {
        lock(&self.0).pool.set_limits(limits);
    }

    /// The instance of a key. Nothing is started: that is up to the call.
    pub(super) fn lease(
        self: &Arc<Self>,
        key: &InstanceKey,
        shared: &Arc<ManagedServer>,
        identity: &Arc<CallerIdentity>,
    ) -> Result<InstanceLease, ConnectError> {
        let mut state = lock(&self.0);
        let id = match state.pool.admit(key, Instant::now()) {
            Admission::Refused(limit) => return Err(ConnectError::TooManyInstances(limit)),
            Admission::Existing(id) => id,
            Admission::New { id, replaced } => {
                let predecessor = replaced.and_then(|replaced| state.ended(replaced.id));
                if let Some(replaced) = replaced.filter(|replaced| replaced.must_stop) {
                    self.spawn_stop(&state, replaced.id, "to make room for another one");
                }
                let server = ManagedServer::private_instance(shared, identity, predecessor);
                let ended = watch::Sender::new(false);
                state.servers.insert(id, PrivateServer { server, ended });
                self.watch_idle(&mut state);
                id
            }
        };
        let server = state.servers.get(&id).map(|instance| Arc::clone(&instance.server));
        let in_use = InstanceUse { instances: Arc::clone(self), id };
        drop(state);
        server.iter().for_each(|server| server.renew_owner(identity));
        // The pool and the servers change together.
        server.map(|server| InstanceLease { server, _use: Some(in_use) }).ok_or(ConnectError::Cancelled)
    }

    /// Stops an instance that is stopping according to the pool.
    fn spawn_stop(self: &Arc<Self>, state: &InstancesState, id: InstanceId, reason: &'static str) {
        let Some(instance) = state.servers.get(&id) else { return };
        let (instances, server) = (Arc::clone(self), Arc::clone(&instance.server));
        tokio::spawn(async move {
            tracing::info!(server = %server.config.id, reason, "private instance stopped");
            server.end().await;
            let mut state = lock(&instances.0);
            state.pool.finish_stop(id);
            if let Some(instance) = state.servers.remove(&id) {
                instance.ended.send_replace(true);
            }
        });
    }

    /// Stops idle instances as long as there are any.
    fn watch_idle(self: &Arc<Self>, state: &mut InstancesState) {
        if std::mem::replace(&mut state.has_idle_task, true) {
            return;
        }
        let instances: Weak<Self> = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(next_check) = instances.upgrade().and_then(|instances| instances.stop_idle()) {
                sleep_until(next_check).await;
            }
        });
    }

    /// Stops the instances that are idle for too long. Returns when to look again.
    fn stop_idle(self: &Arc<Self>) -> Option<Instant> {
        let (mut state, now) = (lock(&self.0), Instant::now());
        for id in state.pool.stop_idle(now) {
            self.spawn_stop(&state, id, "idle");
        }
        let next_check = state.pool.next_idle_check(now);
        state.has_idle_task = next_check.is_some();
        next_check.map(|at| at.min(now + MAX_IDLE_CHECK_INTERVAL))
    }

    /// Stops all instances of a server and waits until they have ended.
    pub(super) async fn stop_server(self: &Arc<Self>, server: u64) {
        let ended: Vec<_> = {
            let mut state = lock(&self.0);
            for id in state.pool.stop_server(server) {
                self.spawn_stop(&state, id, "its server was stopped");
            }
            state.pool.ids_of(server).into_iter().filter_map(|id| state.ended(id)).collect()
        };
        // An error means that the runtime is shutting down.
        join_all(
            ended.into_iter().map(|mut ended| async move { drop(ended.wait_for(|ended| *ended).await) }),
        )
        .await;
    }

    pub(super) fn active_count(&self, server: u64) -> usize {
        lock(&self.0).pool.active_count(server)
    }

    pub(super) fn has_calls(&self, server: u64) -> bool {
        lock(&self.0).pool.has_calls(server)
    }

    /// The live sessions of all private instances.
    pub(in crate::lifecycle) fn live_sessions(&self) -> Vec<Arc<Session>> {
        lock(&self.0).servers.values().filter_map(|instance| instance.server.live_session()).collect()
    }
}

impl InstancesState {
    /// Becomes true when the instance has ended.
    fn ended(&self, id: InstanceId) -> Option<watch::Receiver<bool>> {
        self.servers.get(&id).map(|instance| instance.ended.subscribe())
    }
}
