//! Which private instance a call uses, and which one is stopped to make room: a state machine without I/O.
//!
//! An instance is absent, active or stopping. An active one has calls or is idle; whether its session is starting, ready or
//! down is the [lifecycle](crate::lifecycle::state) of the instance itself. A stopping instance has its place until it has
//! ended, unless another instance takes the place over and starts as soon as the first has ended. So there are never more
//! processes than places.
//!
//! A call for which there is no place waits. Places go to waiting calls in their order, as soon as they are free: an instance
//! whose last call ends makes room at once, so that a busy caller cannot keep its place for ever.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    time::Duration,
};

use tokio::time::Instant;
use toolyard_core::ContentHash;

/// Displacements that are remembered. Beyond this, the oldest are dropped, and their callers are not told.
const MAX_PENDING_DISPLACEMENTS: usize = 4_096;

/// How many private instances there may be, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IsolationLimits {
    /// Private instances of all servers and callers.
    pub max_instances: usize,
    /// Private instances of one caller.
    pub max_instances_per_caller: usize,
    /// An instance without a call for this long is stopped.
    pub idle_timeout: Duration,
}

impl Default for IsolationLimits {
    fn default() -> Self {
        Self { max_instances: 200, max_instances_per_caller: 20, idle_timeout: Duration::from_mins(10) }
    }
}

/// Whose instance of which server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::lifecycle) struct InstanceKey {
    /// The number of the shared instance; a changed configuration has another one.
    pub(in crate::lifecycle) server: u64,
    /// The caller.
    pub(in crate::lifecycle) owner: ContentHash,
    /// The session of the caller, if each has an instance of its own.
    pub(in crate::lifecycle) session: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct InstanceId(u64);

/// Which limit leaves no room for another instance, because all instances that could be stopped have calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstanceLimit {
    /// Each identified caller has an instance of its own of a stateful server, and there is no room for another one.
    ///
    /// Remedy: raise `[isolation] max_instances`, lower `[isolation] idle_timeout`, or share the server: `isolation =
    /// "shared"`.
    #[error("all {0} private server instances of this gateway are in use")]
    Total(usize),
    /// The caller uses as many servers with instances of their own as one caller may.
    ///
    /// Remedy: raise `[isolation] max_instances`, of which a caller may have a tenth, lower `[isolation] idle_timeout`, or
    /// share servers: `isolation = "shared"`.
    #[error("all {0} private server instances of this caller are in use")]
    Caller(usize),
}

/// Which instance serves a call, which counts as one of its calls until [`InstancePool::release`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Admission {
    Existing(InstanceId),
    New(NewInstance),
    /// There is no place now.
    Refused(InstanceLimit),
    /// The caller had an instance that was stopped to make room. It is told so, once, instead of meeting a new one without the state
    /// that it left.
    Displaced(InstanceLimit),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewInstance {
    pub(super) id: InstanceId,
    /// The instance that must be stopped to make room.
    pub(super) must_stop: Option<InstanceId>,
    /// The instances that must have ended before this one starts: the one whose place it takes, and earlier ones of its key,
    /// because two instances of one key could conflict.
    pub(super) starts_after: Vec<InstanceId>,
}

/// A call that waits for a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct WaiterId(u64);

#[derive(Debug)]
struct Instance {
    key: InstanceKey,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Active {
        calls: usize,
        last_used: Instant,
    },
    Stopping {
        /// The caller whose instance has taken its place over.
        successor: Option<ContentHash>,
    },
}

impl Instance {
    /// Whether it counts among all instances.
    fn has_place(&self) -> bool {
        !matches!(self.phase, Phase::Stopping { successor: Some(_) })
    }

    /// Whether it counts among the instances of a caller. It does until it has ended, unless its place went to another
    /// instance of the same caller.
    fn has_place_of(&self, owner: &ContentHash) -> bool {
        self.key.owner == *owner && self.phase != Phase::Stopping { successor: Some(*owner) }
    }

    fn is_of(&self, server: u64) -> bool {
        self.key.server == server
    }
}

/// An instance that was stopped to make room, until its caller is told.
#[derive(Debug)]
struct Displacement {
    key: InstanceKey,
    limit: InstanceLimit,
    at: Instant,
}

#[derive(Debug, Default)]
pub(super) struct InstancePool {
    limits: IsolationLimits,
    instances: BTreeMap<InstanceId, Instance>,
    /// The active instance of each key.
    active: HashMap<InstanceKey, InstanceId>,
    /// The calls that wait for a place, in their order.
    waiting: BTreeMap<WaiterId, InstanceKey>,
    /// Those who are not told yet, the oldest first.
    displaced: VecDeque<Displacement>,
    /// How many there were since the start.
    displacements: u64,
    last_id: u64,
}

impl InstancePool {
    /// Sets the limits. Instances beyond them stay until they are idle for too long.
    pub(super) fn set_limits(&mut self, limits: IsolationLimits) {
        self.limits = limits;
    }

    /// The instance for a call: the active one of the key, or a new one if there is room or if the least recently used idle
    /// instance can make room.
    pub(super) fn admit(&mut self, key: &InstanceKey, now: Instant) -> Admission {
        if let Some(id) = self.active.get(key).copied()
            && let Some(Instance { phase: Phase::Active { calls, last_used }, .. }) =
                self.instances.get_mut(&id)
        {
            *calls += 1;
            *last_used = now;
            return Admission::Existing(id);
        }
        // An instance that was not used for so long would have ended all the same.
        let is_old = |oldest: &Displacement| now.duration_since(oldest.at) >= self.limits.idle_timeout;
        while self.displaced.front().is_some_and(is_old) {
            self.displaced.pop_front();
        }
        if let Some(at) = self.displaced.iter().position(|displaced| displaced.key == *key)
            && let Some(displaced) = self.displaced.remove(at)
        {
            return Admission::Displaced(displaced.limit);
        }
        let (replaced, limit) = match self.place_for(key) {
            Ok(place) => place,
            Err(limit) => return Admission::Refused(limit),
        };
        let must_stop = replaced.filter(|id| self.begin_stop(*id, Some(key.owner)));
        if let (Some(limit), Some(stopped)) = (limit, must_stop.and_then(|id| self.instances.get(&id))) {
            self.displacements += 1;
            self.displaced.push_back(Displacement { key: stopped.key.clone(), limit, at: now });
            if self.displaced.len() > MAX_PENDING_DISPLACEMENTS {
                self.displaced.pop_front();
            }
        }
        let is_earlier =
            |(id, instance): &(&InstanceId, &Instance)| Some(**id) == replaced || instance.key == *key;
        let starts_after = self.instances.iter().filter(is_earlier).map(|(id, _)| *id).collect();
        self.last_id += 1;
        let id = InstanceId(self.last_id);
        let phase = Phase::Active { calls: 1, last_used: now };
        self.instances.insert(id, Instance { key: key.clone(), phase });
        self.active.insert(key.clone(), id);
        Admission::New(NewInstance { id, must_stop, starts_after })
    }

    /// Lets a call that was refused wait for a place.
    pub(super) fn wait(&mut self, key: &InstanceKey) -> WaiterId {
        self.last_id += 1;
        let id = WaiterId(self.last_id);
        self.waiting.insert(id, key.clone());
        id
    }

    /// A call does not wait any more.
    pub(super) fn stop_waiting(&mut self, id: WaiterId) {
        self.waiting.remove(&id);
    }

    /// Admits the waiting calls for which there is a place now. Must follow every event that may free a place, so that no
    /// later call overtakes them.
    pub(super) fn admit_waiting(&mut self, now: Instant) -> Vec<(WaiterId, Admission)> {
        let (mut admitted, mut is_full, mut full_owners) = (Vec::new(), false, HashSet::new());
        let waiting: Vec<(WaiterId, InstanceKey)> =
            self.waiting.iter().map(|(id, key)| (*id, key.clone())).collect();
        for (id, key) in waiting {
            // When no place is left at all, or none for this caller, only instances that exist can serve more calls.
            if (is_full || full_owners.contains(&key.owner)) && !self.active.contains_key(&key) {
                continue;
            }
            match self.admit(&key, now) {
                Admission::Refused(InstanceLimit::Total(_)) => is_full = true,
                Admission::Refused(InstanceLimit::Caller(_)) => {
                    full_owners.insert(key.owner);
                }
                admission => {
                    self.waiting.remove(&id);
                    admitted.push((id, admission));
                }
            }
        }
        admitted
    }

    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The instance whose place a new one takes over, and the limit because of which it must; none if there is room.
    fn place_for(
        &self,
        key: &InstanceKey,
    ) -> Result<(Option<InstanceId>, Option<InstanceLimit>), InstanceLimit> {
        let is_own = |instance: &Instance| instance.key.owner == key.owner;
        // The previous instance of the key has to end first anyway.
        if let Some(previous) = self.stopping(|instance| instance.key == *key) {
            return Ok((Some(previous), None));
        }
        let replace = |replaced: Option<InstanceId>, limit: InstanceLimit| match replaced {
            Some(id) => Ok((Some(id), Some(limit))),
            None => Err(limit),
        };
        let IsolationLimits { max_instances, max_instances_per_caller, .. } = self.limits;
        let own = self.instances.values().filter(|instance| instance.has_place_of(&key.owner)).count();
        if own >= max_instances_per_caller {
            let limit = InstanceLimit::Caller(max_instances_per_caller);
            return replace(self.replaceable(is_own), limit);
        }
        if self.instances.values().filter(|instance| instance.has_place()).count() >= max_instances {
            return replace(self.replaceable(|_| true), InstanceLimit::Total(max_instances));
        }
        Ok((None, None))
    }

    /// An instance whose place is about to become free.
    fn stopping(&self, is_selected: impl Fn(&Instance) -> bool) -> Option<InstanceId> {
        let is_free = |instance: &Instance| {
            instance.phase == Phase::Stopping { successor: None } && is_selected(instance)
        };
        self.instances.iter().find(|(_, instance)| is_free(instance)).map(|(id, _)| *id)
    }

    /// An instance that is stopping, or the least recently used one without calls.
    fn replaceable(&self, is_selected: impl Fn(&Instance) -> bool + Copy) -> Option<InstanceId> {
        let idle = self.instances.iter().filter_map(|(id, instance)| match instance.phase {
            Phase::Active { calls: 0, last_used } if is_selected(instance) => Some((last_used, *id)),
            _ => None,
        });
        self.stopping(is_selected).or_else(|| idle.min().map(|(_, id)| id))
    }

    /// Begins to stop an instance. Returns false if it was stopping already.
    fn begin_stop(&mut self, id: InstanceId, successor: Option<ContentHash>) -> bool {
        let Some(instance) = self.instances.get_mut(&id) else { return false };
        let was_active = matches!(instance.phase, Phase::Active { .. });
        instance.phase = Phase::Stopping { successor };
        if was_active {
            self.active.remove(&instance.key);
        }
        was_active
    }

    /// Ends a call. Returns whether it was the last one of its instance.
    pub(super) fn release(&mut self, id: InstanceId, now: Instant) -> bool {
        // Without an active instance, the server was stopped meanwhile.
        let Some(Instance { phase: Phase::Active { calls, last_used }, .. }) = self.instances.get_mut(&id)
        else {
            return false;
        };
        *calls = calls.saturating_sub(1);
        *last_used = now;
        *calls == 0
    }

    /// An instance has ended.
    pub(super) fn finish_stop(&mut self, id: InstanceId) {
        self.begin_stop(id, None);
        self.instances.remove(&id);
    }

    /// Begins to stop the instances that are idle for too long.
    pub(super) fn stop_idle(&mut self, now: Instant) -> Vec<InstanceId> {
        let limit = self.limits.idle_timeout;
        let is_expired = |instance: &Instance| match instance.phase {
            Phase::Active { calls, last_used } => calls == 0 && now.duration_since(last_used) >= limit,
            Phase::Stopping { .. } => false,
        };
        self.stop_all(is_expired)
    }

    /// Begins to stop all instances of a server, even those with calls. Waiting calls give up.
    pub(super) fn stop_server(&mut self, server: u64) -> Vec<InstanceId> {
        self.waiting.retain(|_, key| key.server != server);
        self.displaced.retain(|displaced| displaced.key.server != server);
        self.stop_all(|instance| instance.is_of(server))
    }

    /// Begins to stop the instances of one caller of a server.
    pub(super) fn stop_owner(&mut self, server: u64, owner: &ContentHash) -> Vec<InstanceId> {
        self.stop_all(|instance| instance.is_of(server) && instance.key.owner == *owner)
    }

    /// Begins to stop the instances of a server without calls.
    pub(super) fn stop_unused(&mut self, server: u64) -> Vec<InstanceId> {
        let is_unused = |instance: &Instance| matches!(instance.phase, Phase::Active { calls: 0, .. });
        self.stop_all(|instance| instance.is_of(server) && is_unused(instance))
    }

    fn stop_all(&mut self, is_selected: impl Fn(&Instance) -> bool) -> Vec<InstanceId> {
        let active = self.active.values().filter_map(|id| self.instances.get_key_value(id));
        let selected = active.filter(|(_, instance)| is_selected(instance));
        let selected: Vec<InstanceId> = selected.map(|(id, _)| *id).collect();
        for id in &selected {
            self.begin_stop(*id, None);
        }
        selected
    }

    /// When an instance may be idle for too long; none if no instance is active.
    pub(super) fn next_idle_check(&self, now: Instant) -> Option<Instant> {
        let idle_at = self.instances.values().filter_map(|instance| match instance.phase {
            // A timeout that is too long for the clock never ends.
            Phase::Active { calls: 0, last_used } => last_used.checked_add(self.limits.idle_timeout),
            Phase::Active { .. } => now.checked_add(self.limits.idle_timeout),
            Phase::Stopping { .. } => None,
        });
        idle_at.min()
    }

    /// The instances of a server that have not ended.
    pub(super) fn ids_of(&self, server: u64) -> Vec<InstanceId> {
        let of_server = self.instances.iter().filter(|(_, instance)| instance.is_of(server));
        of_server.map(|(id, _)| *id).collect()
    }

    /// The number of active instances of a server.
    pub(super) fn active_count(&self, server: u64) -> usize {
        self.active.keys().filter(|key| key.server == server).count()
    }

    /// The number of active instances of all servers, and of those that were stopped to make room since the start.
    pub(super) fn counts(&self) -> (usize, u64) {
        (self.active.len(), self.displacements)
    }

    /// Whether a private instance of a server has calls.
    pub(super) fn has_calls(&self, server: u64) -> bool {
        let has_calls = |instance: &Instance| matches!(instance.phase, Phase::Active { calls: 1.., .. });
        self.instances.values().any(|instance| instance.is_of(server) && has_calls(instance))
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
