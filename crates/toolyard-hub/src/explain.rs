//! Puts decisions into words, for hints and for whoever wants a call explained.

use std::sync::Arc;

use toolyard_core::{Capability, ErrorKind, SourceId, ToolError};

use crate::{
    candidate::ToolCandidate,
    router::{MOST_NAMED, Route, RouteCase},
    suggest::listed,
};

/// Who may answer, who was passed over, and who does not take the arguments.
pub(crate) fn route_words(
    case: RouteCase,
    fit: &[Arc<ToolCandidate>],
    unfit: &[Arc<ToolCandidate>],
    passed_over: Option<String>,
) -> String {
    let named: Vec<String> = fit.iter().map(ToString::to_string).collect();
    let word = if named.len() == 1 { "candidate" } else { "candidates" };
    let separator = if named.is_empty() { "" } else { ": " };
    let mut words = vec![format!("{} {word}{separator}{}", named.len(), named.join(", "))];
    words.push(case.words().to_owned());
    if !unfit.is_empty() {
        let unfit: Vec<String> = unfit.iter().map(|candidate| format!("{candidate:?}")).collect();
        words.push(format!("arguments do not fit: {}", unfit.join(", ")));
    }
    words.extend(passed_over.map(|sources| format!("passed over: {sources}")));
    words.join("; ")
}

/// The sources that were passed over, the first of them by name.
pub(crate) fn passed_over(route: &Route) -> Option<String> {
    let first: Vec<&str> = route.passed_over.iter().take(MOST_NAMED).map(SourceId::as_str).collect();
    let more = route.passed_over.len().saturating_sub(MOST_NAMED) + route.passed_over_more;
    match (first.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(listed(&first).replace(" or ", " and ")),
        (false, more) => Some(format!("{} and {more} more", listed(&first).replace(" or ", ", "))),
    }
}

/// Who was not asked and how to have it asked. A word that only hints cannot be named as the source.
pub(crate) fn not_asked(route: &Route) -> Option<String> {
    let sources = passed_over(route)?;
    let (hints, nameable): (Vec<&SourceId>, Vec<&SourceId>) =
        route.passed_over.iter().partition(|source| SourceId::is_native_hint(source.as_str()));
    let name = match nameable.as_slice() {
        [] => String::new(),
        [one] => format!("; name `{one}` as the source to use it"),
        _ => "; name one as the source to use it".to_owned(),
    };
    let pin = match hints.first() {
        Some(native) => format!("; pin `{native}` for this name to use it: as a source it is only a hint"),
        None => String::new(),
    };
    Some(format!("not asked, because not known to be equivalent: {sources}{name}{pin}"))
}

/// Several tools could answer, and none of them may stand in for another.
pub(crate) fn name_one(capability: &Capability, several: &[Arc<ToolCandidate>]) -> ToolError {
    let names: Vec<String> =
        several.iter().map(|tool| format!("{} ({})", tool.name, tool.source_id())).collect();
    let why = match several.first() {
        Some(first) if first.source.info.trusted => "none of them is known to be read-only",
        _ => "none of them is trusted",
    };
    let message = format!("several tools with the capability `{capability}` take these arguments, and {why}");
    ToolError::new(ErrorKind::Refused, message).with_hint(format!("name one of: {}", names.join(", ")))
}
