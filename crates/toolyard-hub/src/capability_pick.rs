//! Chooses, among all tools with a capability, those that may answer one call together.

use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc};

use serde_json::Value;
use toolyard_core::ToolError;

use crate::{candidate::ToolCandidate, order::Place};

/// No more than this many are picked for one call.
const MOST_PICKED: usize = 8;
/// No more than this many are held against the arguments for one call. Schemas are compiled once, so that this is
/// only a bound on the time, met by no catalogue that is known.
const MOST_EXAMINED: usize = 10_000;

/// Who may answer, in the order in which they are asked.
#[derive(Debug, Default)]
pub(crate) struct Picked {
    pub(crate) candidates: Vec<Arc<ToolCandidate>>,
    /// Some of those that would have come first and do not take the arguments.
    pub(crate) unfit: Vec<Arc<ToolCandidate>>,
}

/// Why nobody is asked.
#[derive(Debug)]
pub(crate) enum NotPicked {
    /// Nobody has the capability.
    Nobody,
    /// Nobody takes the arguments; the objection of whoever was preferred.
    Unfit(ToolError),
    /// Several could, none may stand in for another, and chance must not decide between them.
    Several(Vec<Arc<ToolCandidate>>),
}

/// Tools that share no more than a capability are no equals. Only what reads may be asked in place of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    /// Trusted and effectively read-only: any of them may answer for the others.
    ReadOnly,
    /// Trusted and not read-only: asked alone.
    Writes,
    /// Not trusted: asked alone, and only where no trusted tool takes the arguments.
    Untrusted,
}

impl Group {
    fn of(candidate: &ToolCandidate) -> Self {
        match (candidate.source.info.trusted, candidate.hints.read_only) {
            (true, true) => Self::ReadOnly,
            (true, false) => Self::Writes,
            (false, _) => Self::Untrusted,
        }
    }
}

/// Those of the first group that take the arguments: all that read, or the only one of the others.
pub(crate) fn pick(found: &[Arc<ToolCandidate>], arguments: &Value) -> Result<Picked, NotPicked> {
    let place = |(at, candidate): (usize, &Arc<ToolCandidate>)| {
        Reverse((Group::of(candidate), Place::by_capability(candidate), at))
    };
    // A heap, because most calls need only the first few in order.
    let mut in_order: BinaryHeap<_> = found.iter().enumerate().map(place).collect();
    let (mut picked, mut objection, mut best) = (Picked::default(), None, None);
    for _ in 0..MOST_EXAMINED {
        let Some(Reverse((group, _, at))) = in_order.pop() else { break };
        let Some(candidate) = found.get(at) else { break };
        if best.is_some_and(|best| best != group) || picked.candidates.len() >= MOST_PICKED {
            break;
        }
        match candidate.check(arguments) {
            Ok(()) => {
                best = Some(group);
                picked.candidates.push(Arc::clone(candidate));
            }
            Err(error) => {
                objection.get_or_insert(error);
                if picked.unfit.len() < MOST_PICKED {
                    picked.unfit.push(Arc::clone(candidate));
                }
            }
        }
    }
    match (best, objection) {
        (Some(Group::ReadOnly), _) => Ok(picked),
        (Some(_), _) if picked.candidates.len() > 1 => Err(NotPicked::Several(picked.candidates)),
        (Some(_), _) => Ok(picked),
        (None, Some(objection)) => Err(NotPicked::Unfit(objection)),
        (None, None) => Err(NotPicked::Nobody),
    }
}
