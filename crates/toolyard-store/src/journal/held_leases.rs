//! The runs that this process holds and their steps, so that beginning a new step needs no query.
//!
//! Only the holder of a lease adds steps to its run. A step that did not exist when the lease was claimed, and was not
//! begun since, is therefore new.

use std::collections::{HashMap, HashSet};

use parking_lot::{Mutex, MutexGuard};
use toolyard_core::{Lease, RunId, StepIntent};

/// The leases of this process, by run and fencing number.
#[derive(Debug, Default)]
pub(crate) struct HeldLeases(Mutex<HashMap<(RunId, i64), HeldRun>>);

#[derive(Debug, Default)]
struct HeldRun {
    steps: HashSet<String>,
    /// Intents of repeatable steps that are not in the database yet.
    pending: HashMap<String, PendingIntent>,
}

/// An intent that exists in memory only.
#[derive(Debug, Clone)]
pub(crate) struct PendingIntent {
    pub(crate) intent: StepIntent,
    pub(crate) started_at: i64,
}

impl HeldLeases {
    /// Adds a lease and the steps that its run already has.
    pub(crate) fn insert(&self, lease: &Lease, steps: HashSet<String>) {
        self.lock().insert(key(lease), HeldRun { steps, pending: HashMap::new() });
    }

    pub(crate) fn remove(&self, lease: &Lease) {
        self.lock().remove(&key(lease));
    }

    /// Begins a step in memory; returns `false` if it may exist already.
    pub(crate) fn begin_step(&self, lease: &Lease, intent: &StepIntent, started_at: i64) -> bool {
        let mut leases = self.lock();
        let Some(run) = leases.get_mut(&key(lease)) else { return false };
        let is_new = run.steps.insert(intent.step.clone());
        if is_new {
            run.pending.insert(intent.step.clone(), PendingIntent { intent: intent.clone(), started_at });
        }
        is_new
    }

    /// Adds a step that is in the database.
    pub(crate) fn add_step(&self, lease: &Lease, step: &str) {
        if let Some(run) = self.lock().get_mut(&key(lease)) {
            run.steps.insert(step.to_owned());
        }
    }

    /// The intent of a step that is only in memory.
    pub(crate) fn pending_intent(&self, lease: &Lease, step: &str) -> Option<PendingIntent> {
        self.lock().get(&key(lease))?.pending.get(step).cloned()
    }

    /// Drops the intent of a finished step.
    pub(crate) fn finish_step(&self, lease: &Lease, step: &str) {
        if let Some(run) = self.lock().get_mut(&key(lease)) {
            run.pending.remove(step);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(RunId, i64), HeldRun>> {
        self.0.lock()
    }
}

fn key(lease: &Lease) -> (RunId, i64) {
    (lease.run.clone(), lease.fence)
}
