//! Chooses, among all tools with a capability, those that may answer one call together.

use std::sync::Arc;

use toolyard_core::{History, RawJson, ToolError};

use crate::{
    candidate::ToolCandidate,
    order::{Place, Ties},
};

/// No more tools than this are looked at for one call, however many have the capability.
const LOOKED_AT: usize = 32;

/// Those that take the arguments, in the order in which they are asked: trusted ones first, the same priority shuffled.
/// Trusted ones stand in for one another; one that is not trusted is asked alone. Nobody: the first objection, if any.
pub(crate) fn pick(
    found: Vec<Arc<ToolCandidate>>,
    arguments: &RawJson,
    history: &dyn History,
) -> Result<Vec<Arc<ToolCandidate>>, Option<ToolError>> {
    let mut objection = None;
    let mut picked: Vec<Arc<ToolCandidate>> = Vec::new();
    for candidate in in_order(found, history) {
        match candidate.check(arguments) {
            Ok(()) => picked.push(candidate),
            Err(error) => {
                objection.get_or_insert(error);
            }
        }
    }
    let preferred_is_trusted = picked.first().is_some_and(|preferred| preferred.source.info.trusted);
    if preferred_is_trusted {
        picked.retain(|candidate| candidate.source.info.trusted);
    } else {
        picked.truncate(1);
    }
    if picked.is_empty() { Err(objection) } else { Ok(picked) }
}

fn in_order(
    found: Vec<Arc<ToolCandidate>>,
    history: &dyn History,
) -> impl Iterator<Item = Arc<ToolCandidate>> {
    let place = |candidate: &Arc<ToolCandidate>| {
        (!candidate.source.info.trusted, Place::of(candidate, history, Ties::Shuffled))
    };
    let mut placed: Vec<_> = found.into_iter().map(|candidate| (place(&candidate), candidate)).collect();
    if placed.len() > LOOKED_AT {
        placed.select_nth_unstable_by_key(LOOKED_AT, |(place, _)| *place);
        placed.truncate(LOOKED_AT);
    }
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, candidate)| candidate)
}
