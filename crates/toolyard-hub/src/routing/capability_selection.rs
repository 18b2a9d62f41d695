//! Selects, among all tools with a capability, those that may serve one call.

use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc};

use serde_json::Value;
use toolyard_core::ToolError;

use crate::{registry::candidate::ToolCandidate, routing::order::SortKey};

const MAX_SELECTED_TOOLS: usize = 8;
/// Tools whose schema is checked per call. Schemas are compiled once, so this only bounds the time for huge catalogues.
const MAX_CHECKED_TOOLS: usize = 10_000;

/// The selected tools, in call order.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub(crate) candidates: Vec<Arc<ToolCandidate>>,
    /// The first tools whose schema rejects the arguments; limited in number.
    pub(crate) rejecting: Vec<Arc<ToolCandidate>>,
}

#[derive(Debug)]
pub(crate) enum SelectionError {
    /// No tool has the capability.
    NoTool,
    /// No tool accepts the arguments; the validation error of the preferred tool.
    InvalidArguments(ToolError),
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
pub(crate) fn select(found: &[Arc<ToolCandidate>], arguments: &Value) -> Result<Selection, SelectionError> {
    let rank = |(index, candidate): (usize, &Arc<ToolCandidate>)| {
        Reverse((SelectionTier::of(candidate), SortKey::by_capability(candidate), index))
    };
    // A heap, because most calls need only the first few.
    let mut ranked: BinaryHeap<_> = found.iter().enumerate().map(rank).collect();
    let (mut selection, mut first_error, mut best_tier) = (Selection::default(), None, None);
    for _ in 0..MAX_CHECKED_TOOLS {
        let Some(Reverse((tier, _, index))) = ranked.pop() else { break };
        let Some(candidate) = found.get(index) else { break };
        if best_tier.is_some_and(|best_tier| best_tier != tier)
            || selection.candidates.len() >= MAX_SELECTED_TOOLS
        {
            break;
        }
        match candidate.check(arguments) {
            Ok(()) => {
                best_tier = Some(tier);
                selection.candidates.push(Arc::clone(candidate));
            }
            Err(error) => {
                first_error.get_or_insert(error);
                if selection.rejecting.len() < MAX_SELECTED_TOOLS {
                    selection.rejecting.push(Arc::clone(candidate));
                }
            }
        }
    }
    match (best_tier, first_error) {
        (Some(SelectionTier::ReadOnly), _) => Ok(selection),
        (Some(_), _) if selection.candidates.len() > 1 => Err(SelectionError::Several(selection.candidates)),
        (Some(_), _) => Ok(selection),
        (None, Some(first_error)) => Err(SelectionError::InvalidArguments(first_error)),
        (None, None) => Err(SelectionError::NoTool),
    }
}
