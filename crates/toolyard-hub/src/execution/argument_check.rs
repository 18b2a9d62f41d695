//! Partitions candidates by whether their schema accepts the arguments of a call.

use std::sync::Arc;

use toolyard_core::{RawJson, ToolError};

use crate::{execution::validate::parse_arguments, registry::candidate::ToolCandidate};

/// Candidates partitioned by whether their schema accepts the arguments.
pub(crate) struct CheckedCandidates {
    pub(crate) accepting: Vec<Arc<ToolCandidate>>,
    pub(crate) rejecting: Vec<Arc<ToolCandidate>>,
    /// Validation error of the first candidate that rejects the arguments.
    pub(crate) first_error: Option<ToolError>,
}

pub(crate) fn check_arguments(candidates: Vec<Arc<ToolCandidate>>, arguments: &RawJson) -> CheckedCandidates {
    let arguments = parse_arguments(arguments);
    let (mut accepting, mut rejecting, mut first_error) = (candidates, Vec::new(), None);
    accepting.retain(|candidate| {
        let checked = match &arguments {
            Ok(arguments) => candidate.check(arguments),
            // Adds the tool and its source to the error.
            Err(unreadable) => Err(candidate.locate(unreadable.clone())),
        };
        let Err(error) = checked else { return true };
        first_error.get_or_insert_with(|| {
            error.with_operator_hint(format!("show its parameters: toolyard tools show {}", candidate.name))
        });
        rejecting.push(Arc::clone(candidate));
        false
    });
    CheckedCandidates { accepting, rejecting, first_error }
}
