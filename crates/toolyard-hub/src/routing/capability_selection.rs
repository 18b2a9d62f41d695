//! Selects, among all tools with a capability, those that may serve one call.

use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc};

use serde_json::Value;
use toolyard_core::ToolError;

use crate::{registry::candidate::ToolCandidate, routing::order::SortKey};

/// Tools selected per call.
const MAX_SELECTED: usize = 8;
/// Tools whose schema is checked per call. Schemas are compiled once, so this only bounds the time for huge catalogues.
const MAX_EXAMINED: usize = 10_000;

/// The selected tools, in call order.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub(crate) candidates: Vec<Arc<ToolCandidate>>,
    /// Some preferred tools whose schema rejects the arguments.
    pub(crate) unfit: Vec<Arc<ToolCandidate>>,
}

/// Why no tool was selected.
#[derive(Debug)]
pub(crate) enum SelectionError {
    /// No tool has the capability.
    Nobody,
    /// No tool accepts the arguments; the validation error of the preferred tool.
    Unfit(ToolError),
    /// Several tools match and they are not interchangeable.
    Several(Vec<Arc<ToolCandidate>>),
}

/// Tools that share only a capability are not equivalent; only read-only ones are interchangeable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SelectionTier {
    /// Trusted and read-only: interchangeable.
    ReadOnly,
    /// Trusted and not read-only: called only as the single match.
    Writes,
    /// Not trusted: called only as the single match, if no trusted tool accepts the arguments.
    Untrusted,
}

impl SelectionTier {
    fn of(candidate: &ToolCandidate) -> Self {
        match (candidate.source.info.trusted, candidate.hints.read_only) {
            (true, true) => Self::ReadOnly,
            (true, false) => Self::Writes,
            (false, _) => Self::Untrusted,
        }
    }
}

/// The matching tools of the best tier: all read-only ones, or the single other one.
pub(crate) fn pick(found: &[Arc<ToolCandidate>], arguments: &Value) -> Result<Selection, SelectionError> {
    let place = |(at, candidate): (usize, &Arc<ToolCandidate>)| {
        Reverse((SelectionTier::of(candidate), SortKey::by_capability(candidate), at))
    };
    // A heap, because most calls need only the first few.
    let mut in_order: BinaryHeap<_> = found.iter().enumerate().map(place).collect();
    let (mut picked, mut objection, mut best) = (Selection::default(), None, None);
    for _ in 0..MAX_EXAMINED {
        let Some(Reverse((group, _, at))) = in_order.pop() else { break };
        let Some(candidate) = found.get(at) else { break };
        if best.is_some_and(|best| best != group) || picked.candidates.len() >= MAX_SELECTED {
            break;
        }
        match candidate.check(arguments) {
            Ok(()) => {
                best = Some(group);
                picked.candidates.push(Arc::clone(candidate));
            }
            Err(error) => {
                objection.get_or_insert(error);
                if picked.unfit.len() < MAX_SELECTED {
                    picked.unfit.push(Arc::clone(candidate));
                }
            }
        }
    }
    match (best, objection) {
        (Some(SelectionTier::ReadOnly), _) => Ok(picked),
        (Some(_), _) if picked.candidates.len() > 1 => Err(SelectionError::Several(picked.candidates)),
        (Some(_), _) => Ok(picked),
        (None, Some(objection)) => Err(SelectionError::Unfit(objection)),
        (None, None) => Err(SelectionError::Nobody),
    }
}
