//! Describes routing decisions, for hints and for `--explain`.

use std::sync::Arc;

use toolyard_core::{Capability, ErrorKind, SourceId, ToolError};

use crate::{
    registry::{candidate::ToolCandidate, name_suggestions::join_names},
    routing::route::{MAX_NAMED_CANDIDATES, Route, RouteCase},
};

/// Candidates, skipped sources, and candidates that reject the arguments.
pub(crate) fn describe_route(
    case: RouteCase,
    accepting: &[Arc<ToolCandidate>],
    rejecting: &[Arc<ToolCandidate>],
    skipped: Option<String>,
) -> String {
    let named: Vec<String> = accepting.iter().map(ToString::to_string).collect();
    let word = if named.len() == 1 { "candidate" } else { "candidates" };
    let separator = if named.is_empty() { "" } else { ": " };
    let mut parts = vec![format!("{} {word}{separator}{}", named.len(), named.join(", "))];
    parts.push(case.description().to_owned());
    if !rejecting.is_empty() {
        let rejecting: Vec<String> = rejecting.iter().map(|candidate| format!("{candidate:?}")).collect();
        parts.push(format!("arguments do not fit: {}", rejecting.join(", ")));
    }
    parts.extend(skipped.map(|sources| format!("skipped: {sources}")));
    parts.join("; ")
}

/// The skipped sources; the first ones by name.
pub(crate) fn describe_skipped(route: &Route) -> Option<String> {
    let first: Vec<&str> = route.skipped.iter().take(MAX_NAMED_CANDIDATES).map(SourceId::as_str).collect();
    let more = route.skipped.len().saturating_sub(MAX_NAMED_CANDIDATES) + route.more_skipped_count;
    match (first.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(join_names(&first).replace(" or ", " and ")),
        (false, more) => Some(format!("{} and {more} more", join_names(&first).replace(" or ", ", "))),
    }
}

/// Hint about sources that were not called and how to select them. `native` is only a hint and cannot be selected.
pub(crate) fn other_sources_hint(route: &Route) -> Option<String> {
    let sources = describe_skipped(route)?;
    let (native_hints, selectable): (Vec<&SourceId>, Vec<&SourceId>) =
        route.skipped.iter().partition(|source| SourceId::is_native_hint(source.as_str()));
    let name = match selectable.as_slice() {
        [] => String::new(),
        [one] => format!("; to use it, name the source `{one}`"),
        _ => "; to use one, name its source".to_owned(),
    };
    let pin = match native_hints.first() {
        Some(native) => format!("; to use the tool of `{native}`, pin it for this name"),
        None => String::new(),
    };
    Some(format!("not called, because not known to be equivalent: {sources}{name}{pin}"))
}

/// Error for several matching tools that are not interchangeable.
pub(crate) fn ambiguous_capability(capability: &Capability, candidates: &[Arc<ToolCandidate>]) -> ToolError {
    let names: Vec<String> =
        candidates.iter().map(|tool| format!("{} ({})", tool.name, tool.source_id())).collect();
    let reason = match candidates.first() {
        Some(first) if first.source.info.trusted => "none of them is known to be read-only",
        _ => "none of them is trusted",
    };
    let message =
        format!("several tools with the capability `{capability}` take these arguments, and {reason}");
    ToolError::new(ErrorKind::Refused, message).with_hint(format!("name one of: {}", names.join(", ")))
}
