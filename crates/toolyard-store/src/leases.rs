//! What this process knows of the runs it holds, so that a step that is certainly new needs no look at the database.
//!
//! Only the holder of a lease makes steps of its run: a step that was not there when the lease was taken, and was not
//! begun since, is new.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use toolyard_core::{Intent, Lease, RunId};

/// The runs this process holds.
#[derive(Debug, Default)]
pub(crate) struct Leases(Mutex<HashMap<(RunId, i64), Held>>);

#[derive(Debug, Default)]
struct Held {
    steps: HashSet<String>,
    /// Steps that were begun and are not in the database yet: they may be repeated, so nothing depends on their intent.
    pending: HashMap<String, Begun>,
}

/// An intent that stands in memory only.
#[derive(Debug, Clone)]
pub(crate) struct Begun {
    pub(crate) intent: Intent,
    pub(crate) at: i64,
}

impl Leases {
    /// A lease was taken; these steps are there already.
    pub(crate) fn taken(&self, lease: &Lease, steps: HashSet<String>) {
        self.lock().insert(key(lease), Held { steps, pending: HashMap::new() });
    }

    /// A lease is over.
    pub(crate) fn over(&self, lease: &Lease) {
        self.lock().remove(&key(lease));
    }

    /// Begins a step in memory if it is certainly new; whether it is.
    pub(crate) fn begin(&self, lease: &Lease, intent: &Intent, at: i64) -> bool {
        let mut leases = self.lock();
        let Some(held) = leases.get_mut(&key(lease)) else { return false };
        let new = held.steps.insert(intent.step.clone());
        if new {
            held.pending.insert(intent.step.clone(), Begun { intent: intent.clone(), at });
        }
        new
    }

    /// A step is in the database now.
    pub(crate) fn written(&self, lease: &Lease, step: &str) {
        if let Some(held) = self.lock().get_mut(&key(lease)) {
            held.steps.insert(step.to_owned());
        }
    }

    /// The intent of a step that is only in memory.
    pub(crate) fn pending(&self, lease: &Lease, step: &str) -> Option<Begun> {
        self.lock().get(&key(lease))?.pending.get(step).cloned()
    }

    /// A step ended: its intent is no longer needed.
    pub(crate) fn ended(&self, lease: &Lease, step: &str) {
        if let Some(held) = self.lock().get_mut(&key(lease)) {
            held.pending.remove(step);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(RunId, i64), Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(lease: &Lease) -> (RunId, i64) {
    (lease.run.clone(), lease.fence)
}
