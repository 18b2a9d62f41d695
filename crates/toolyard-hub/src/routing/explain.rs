//! Describes routing decisions, for hints and for `--explain`.

use std::sync::Arc;

use toolyard_core::{Capability, ErrorKind, SourceId, ToolError};

use crate::{
    registry::{candidate::ToolCandidate, name_suggestions::join_names, snapshot::Snapshot},
    routing::{
        profile::Profile,
        route::{MAX_NAMED_CANDIDATES, Route, RouteCase},
    },
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
pub(crate) fn other_sources_hint(snapshot: &Snapshot, route: &Route, tool: &str) -> Option<String> {
    let sources = describe_skipped(route)?;
    let (native_hints, selectable): (Vec<&SourceId>, Vec<&SourceId>) =
        route.skipped.iter().partition(|source| SourceId::is_native_hint(source.as_str()));
    let callable = |source: &SourceId| {
        let other = snapshot.find_in(tool, source.as_str())?;
        snapshot.callable_name(other, None)
    };
    let name = match (selectable.len(), selectable.first().and_then(|first| callable(first))) {
        (_, None) => String::new(),
        (1, Some(name)) => format!("; to use it, call `{name}`"),
        (_, Some(name)) => format!("; to use one, name its source: `{name}`"),
    };
    let pin = match native_hints.first() {
        Some(native) => format!("; to use the tool of `{native}`, pin it for this name"),
        None => String::new(),
    };
    Some(format!("not called, because not known to be equivalent: {sources}{name}{pin}"))
}

/// Error for a bare name that several sources offer and no setting assigns to one of them.
pub(crate) fn ambiguous_name(
    snapshot: &Snapshot,
    candidates: &[Arc<ToolCandidate>],
    profile: Option<&Profile>,
) -> ToolError {
    let describe = |tool: &Arc<ToolCandidate>| {
        let name = snapshot.callable_name(tool, profile)?;
        Some(match snapshot.distinction(tool, profile) {
            Some(distinction) => format!("`{name}` ({distinction})"),
            None => format!("`{name}`"),
        })
    };
    let mut callable: Vec<String> =
        candidates.iter().filter(|tool| !tool.denied).filter_map(describe).collect();
    // Which server was seen first is chance.
    callable.sort();
    let (shown, rest) = callable.split_at_checked(MAX_NAMED_CANDIDATES).unwrap_or((&callable, &[]));
    let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    let message = format!("{} servers have a tool of this name; none was called", candidates.len());
    let error = ToolError::new(ErrorKind::Refused, message);
    let error = candidates.iter().take(1).fold(error, |error, tool| error.on_tool(&tool.name));
    error.with_hint(format!("call one of {}{more}", shown.join(", ")))
}

/// Error for several matching tools that are not interchangeable.
pub(crate) fn ambiguous_capability(capability: &Capability, candidates: &[Arc<ToolCandidate>]) -> ToolError {
    let mut names: Vec<String> =
        candidates.iter().map(|tool| format!("{} ({})", tool.name, tool.source_id())).collect();
    // The order of the candidates depends on which server was seen first.
    names.sort();
    let reason = match candidates.first() {
        Some(first) if first.source.info.trusted => "none of them is known to be read-only",
        _ => "none of them is trusted",
    };
    let message =
        format!("several tools with the capability `{capability}` take these arguments, and {reason}");
    ToolError::new(ErrorKind::Refused, message).with_hint(format!("name one of: {}", names.join(", ")))
}
