//! All private instances of a manager's servers: starts and stops what the pool decides.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{oneshot, watch},
    time::{Instant, sleep_until, timeout_at},
};

use toolyard_core::{CallerIdentity, ContentHash};

use super::pool::{Admission, InstanceId, InstanceKey, InstancePool, IsolationLimits, NewInstance, WaiterId};
use crate::{
    lifecycle::{connect_error::ConnectError, server::ManagedServer},
    session::handle::Session,
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
    waiting: HashMap<WaiterId, WaitingCall>,
    /// The runtime of the calls: a lease may be dropped outside of it.
    runtime: Option<Handle>,
    has_idle_task: bool,
}

#[derive(Debug)]
struct PrivateServer {
    server: Arc<ManagedServer>,
    /// Becomes true when the instance has ended.
    ended: watch::Sender<bool>,
}

/// A call that waits for a place.
#[derive(Debug)]
struct WaitingCall {
    shared: Arc<ManagedServer>,
    identity: Arc<CallerIdentity>,
    sender: oneshot::Sender<InstanceLease>,
}

/// Ends the waiting of a call that is served or given up.
struct Waiter {
    instances: Arc<PrivateInstances>,
    id: WaiterId,
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut state = self.instances.0.lock();
        state.pool.stop_waiting(self.id);
        state.waiting.remove(&self.id);
    }
}

/// The instance that serves a call. A private one is not stopped while this exists.
#[derive(Debug)]
pub(in crate::lifecycle) struct InstanceLease {
    pub(in crate::lifecycle) server: Arc<ManagedServer>,
    in_use: Option<InstanceUse>,
}

#[derive(Debug)]
struct InstanceUse {
    /// `None` if the use has ended already.
    instances: Option<Arc<PrivateInstances>>,
    id: InstanceId,
}

impl Drop for InstanceUse {
    fn drop(&mut self) {
        let Some(instances) = &self.instances else { return };
        let mut state = instances.0.lock();
        if state.pool.release(self.id, Instant::now()) {
            instances.serve_waiting(&mut state);
        }
    }
}

impl InstanceLease {
    pub(super) fn shared(server: &Arc<ManagedServer>) -> Self {
        Self { server: Arc::clone(server), in_use: None }
    }

    /// Ends the use under the lock, which dropping the lease would need.
    fn end(mut self, state: &mut InstancesState) {
        if let Some(mut in_use) = self.in_use.take() {
            in_use.instances = None;
            state.pool.release(in_use.id, Instant::now());
        }
    }
}

impl PrivateInstances {
    pub(in crate::lifecycle) fn set_limits(self: &Arc<Self>, limits: IsolationLimits) {
        let mut state = self.0.lock();
        state.pool.set_limits(limits);
        self.serve_waiting(&mut state);
    }

    /// The instance of a key, when there is a place for it. Nothing is started: that is up to the call.
    pub(super) async fn lease(
        self: &Arc<Self>,
        key: &InstanceKey,
        shared: &Arc<ManagedServer>,
        identity: &Arc<CallerIdentity>,
        deadline: Instant,
    ) -> Result<InstanceLease, ConnectError> {
        let (receiver, limit, _waiter) = {
            let mut state = self.0.lock();
            state.runtime.get_or_insert_with(Handle::current);
            let mut admission = state.pool.admit(key, Instant::now());
            if matches!(admission, Admission::Displaced(_)) && !shared.loses_state() {
                admission = state.pool.admit(key, Instant::now());
            }
            let limit = match admission {
                Admission::Refused(limit) => limit,
                Admission::Displaced(limit) => return Err(ConnectError::Displaced(limit)),
                admission => {
                    let lease = self.grant(&mut state, admission, shared, identity);
                    return lease.ok_or(ConnectError::Cancelled);
                }
            };
            let (sender, receiver) = oneshot::channel();
            let id = state.pool.wait(key);
            let (shared, identity) = (Arc::clone(shared), Arc::clone(identity));
            state.waiting.insert(id, WaitingCall { shared, identity, sender });
            (receiver, limit, Waiter { instances: Arc::clone(self), id })
        };
        match timeout_at(deadline, receiver).await {
            Ok(Ok(lease)) => Ok(lease),
            Ok(Err(_server_was_stopped)) => Err(ConnectError::Cancelled),
            Err(_elapsed) => Err(ConnectError::TooManyInstances(limit)),
        }
    }

    /// Carries out an admission.
    fn grant(
        self: &Arc<Self>,
        state: &mut InstancesState,
        admission: Admission,
        shared: &Arc<ManagedServer>,
        identity: &Arc<CallerIdentity>,
    ) -> Option<InstanceLease> {
        let id = match admission {
            Admission::Refused(_) | Admission::Displaced(_) => return None,
            Admission::Existing(id) => id,
            Admission::New(NewInstance { id, must_stop, starts_after }) => {
                let predecessors = starts_after.into_iter().filter_map(|id| state.ended(id)).collect();
                if let Some(replaced) = must_stop {
                    let (active, displaced) = state.pool.counts();
                    // Not each time: callers beyond the limit displace each other with every call.
                    if displaced.is_power_of_two() {
                        tracing::warn!(
                            target: "toolyard::servers",
                            active,
                            displaced,
                            hint = "raise `[isolation] max_instances`",
                            "private instance stopped to make room for another"
                        );
                    }
                    self.spawn_stop(state, replaced, "to make room for another one");
                }
                let server = ManagedServer::private_instance(shared, identity, predecessors);
                let ended = watch::Sender::new(false);
                state.servers.insert(id, PrivateServer { server, ended });
                self.watch_idle(state);
                id
            }
        };
        // The pool and the servers change together.
        let server = Arc::clone(&state.servers.get(&id)?.server);
        server.renew_owner(identity);
        let in_use = InstanceUse { instances: Some(Arc::clone(self)), id };
        Some(InstanceLease { server, in_use: Some(in_use) })
    }

    /// Gives free places to waiting calls. Must follow every event that may free one.
    fn serve_waiting(self: &Arc<Self>, state: &mut InstancesState) {
        while state.pool.has_waiting() {
            let mut has_unused = false;
            for (id, admission) in state.pool.admit_waiting(Instant::now()) {
                let Some(WaitingCall { shared, identity, sender }) = state.waiting.remove(&id) else {
                    continue;
                };
                let lease = self.grant(state, admission, &shared, &identity);
                // A call that was given up meanwhile leaves its place to the next one.
                if let Some(unused) = lease.and_then(|lease| sender.send(lease).err()) {
                    unused.end(state);
                    has_unused = true;
                }
            }
            if !has_unused {
                return;
            }
        }
    }

    /// Stops an instance that is stopping according to the pool.
    fn spawn_stop(self: &Arc<Self>, state: &InstancesState, id: InstanceId, reason: &'static str) {
        let Some(instance) = state.servers.get(&id) else { return };
        let (instances, server) = (Arc::clone(self), Arc::clone(&instance.server));
        state.spawn(async move {
            tracing::info!(server = %server.config.id, reason, "private instance stopped");
            server.end().await;
            let mut state = instances.0.lock();
            state.pool.finish_stop(id);
            if let Some(instance) = state.servers.remove(&id) {
                instance.ended.send_replace(true);
            }
            instances.serve_waiting(&mut state);
        });
    }

    /// Stops idle instances as long as there are any.
    fn watch_idle(self: &Arc<Self>, state: &mut InstancesState) {
        if std::mem::replace(&mut state.has_idle_task, true) {
            return;
        }
        let instances: Weak<Self> = Arc::downgrade(self);
        state.spawn(async move {
            while let Some(next_check) = instances.upgrade().and_then(|instances| instances.stop_idle()) {
                sleep_until(next_check).await;
            }
        });
    }

    /// Stops the instances that are idle for too long. Returns when to look again.
    fn stop_idle(self: &Arc<Self>) -> Option<Instant> {
        let (mut state, now) = (self.0.lock(), Instant::now());
        for id in state.pool.stop_idle(now) {
            self.spawn_stop(&state, id, "idle");
        }
        self.serve_waiting(&mut state);
        let next_check = state.pool.next_idle_check(now);
        state.has_idle_task = next_check.is_some();
        next_check.map(|at| at.min(now + MAX_IDLE_CHECK_INTERVAL))
    }

    /// Stops the instances of a server that no call uses, after its retirement.
    pub(super) fn stop_unused(self: &Arc<Self>, server: u64) {
        let mut state = self.0.lock();
        for id in state.pool.stop_unused(server) {
            self.spawn_stop(&state, id, "its server was removed");
        }
        self.serve_waiting(&mut state);
    }

    /// Stops the instances of one caller of a server and waits until they have ended.
    pub(super) async fn stop_owner(self: &Arc<Self>, server: u64, owner: &ContentHash) {
        let ended: Vec<_> = {
            let mut state = self.0.lock();
            let stopped = state.pool.stop_owner(server, owner);
            for id in &stopped {
                self.spawn_stop(&state, *id, "another process of the cluster has the session");
            }
            self.serve_waiting(&mut state);
            stopped.into_iter().filter_map(|id| state.ended(id)).collect()
        };
        // An error means that the runtime is shutting down.
        join_all(
            ended.into_iter().map(|mut ended| async move { drop(ended.wait_for(|ended| *ended).await) }),
        )
        .await;
    }

    /// Stops all instances of a server and waits until they have ended.
    pub(super) async fn stop_server(self: &Arc<Self>, server: u64) {
        let ended: Vec<_> = {
            let mut state = self.0.lock();
            for id in state.pool.stop_server(server) {
                self.spawn_stop(&state, id, "its server was stopped");
            }
            // Without its sender, a waiting call gives up.
            state.waiting.retain(|_, call| !call.shared.is_numbered(server));
            self.serve_waiting(&mut state);
            state.pool.ids_of(server).into_iter().filter_map(|id| state.ended(id)).collect()
        };
        // An error means that the runtime is shutting down.
        join_all(
            ended.into_iter().map(|mut ended| async move { drop(ended.wait_for(|ended| *ended).await) }),
        )
        .await;
    }

    pub(super) fn active_count(&self, server: u64) -> usize {
        self.0.lock().pool.active_count(server)
    }

    pub(super) fn has_calls(&self, server: u64) -> bool {
        self.0.lock().pool.has_calls(server)
    }

    /// The number of active instances, and of those that were stopped to make room since the start.
    pub(in crate::lifecycle) fn counts(&self) -> (usize, u64) {
        self.0.lock().pool.counts()
    }

    /// The live sessions of all private instances.
    pub(in crate::lifecycle) fn live_sessions(&self) -> Vec<Arc<Session>> {
        self.0.lock().servers.values().filter_map(|instance| instance.server.live_session()).collect()
    }
}

impl InstancesState {
    /// Runs a task; does nothing if there has never been a call.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(task);
        }
    }

    /// Becomes true when the instance has ended.
    fn ended(&self, id: InstanceId) -> Option<watch::Receiver<bool>> {
        self.servers.get(&id).map(|instance| instance.ended.subscribe())
    }
}
