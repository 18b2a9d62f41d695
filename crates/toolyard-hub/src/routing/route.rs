//! Routes a call to its candidates. The request names no source, a native hint, or a source (see docs/specification.md).

use std::sync::Arc;

use toolyard_core::{ErrorKind, SourceId, ToolCallRequest, ToolError};

use crate::{
    registry::{
        candidate::ToolCandidate, name_entry::NameMatches, name_suggestions::join_names, snapshot::Snapshot,
    },
    routing::{
        argument_fit::only_fit,
        explain::ambiguous_name,
        names::{NameTarget, contenders},
        profile::Profile,
    },
};

/// Candidates named in a hint or an explanation.
pub(crate) const MAX_NAMED_CANDIDATES: usize = 8;

/// The candidates of a call.
#[derive(Debug)]
pub struct Route {
    /// How the request named its source.
    pub case: RouteCase,
    /// Equivalent candidates; never empty.
    pub candidates: Vec<Arc<ToolCandidate>>,
    /// Sources of the same name that are not equivalent and are not called; limited in number.
    pub skipped: Vec<SourceId>,
    /// Number of further skipped sources.
    pub more_skipped_count: usize,
}

impl Route {
    fn to_one(case: RouteCase, selected: &Arc<ToolCandidate>) -> Self {
        Self { case, candidates: vec![Arc::clone(selected)], skipped: Vec::new(), more_skipped_count: 0 }
    }
}

/// How a request named its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteCase {
    /// No source: the normal case.
    Automatic,
    /// `native` or `appflowy`, which is only a hint and does not restrict the candidates.
    NativeHint,
    /// A source id.
    Named,
    /// No source, and several sources have the name: the folder of the arguments selected one.
    ByArguments,
}

impl RouteCase {
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Automatic => "source not given: automatic",
            Self::NativeHint => "source is only a hint: automatic",
            Self::Named => "source named by the caller",
            Self::ByArguments => "the only source with the folder of the arguments",
        }
    }
}

/// Routes a request on a snapshot.
pub fn route(snapshot: &Snapshot, request: &ToolCallRequest) -> Result<Route, ToolError> {
    route_within(snapshot, request, None)
}

/// Routes a request within a profile: tools that it does not offer do not exist.
pub fn route_within(
    snapshot: &Snapshot,
    request: &ToolCallRequest,
    profile: Option<&Profile>,
) -> Result<Route, ToolError> {
    let profile = profile.filter(|profile| !profile.allows_everything());
    match request.source.as_deref() {
        None => automatic(snapshot, request, RouteCase::Automatic, profile),
        Some(source) if SourceId::is_native_hint(source) => {
            automatic(snapshot, request, RouteCase::NativeHint, profile)
        }
        Some(source) => named(snapshot, request, source, profile),
    }
}

fn automatic(
    snapshot: &Snapshot,
    request: &ToolCallRequest,
    case: RouteCase,
    profile: Option<&Profile>,
) -> Result<Route, ToolError> {
    let unknown = || unknown_tool(snapshot, &request.tool_name, profile);
    let qualified = || {
        let selected = snapshot.find_qualified(&request.tool_name, profile)?;
        Some(Route::to_one(RouteCase::Named, selected))
    };
    let Some(found) = snapshot.find(&request.tool_name) else { return qualified().ok_or_else(unknown) };
    let contenders = contenders(found, profile);
    if !contenders.is_empty() {
        let arguments = request.arguments.to_value();
        return match only_fit(&contenders, &arguments) {
            Some(selected) => Ok(Route::to_one(RouteCase::ByArguments, selected)),
            None => Err(ambiguous_name(snapshot, &contenders, profile)),
        };
    }
    if let Some(profile) = profile {
        let candidates = profile.candidates_to_call(found);
        if candidates.is_empty() {
            let error = || name_not_owned(snapshot, found, Some(profile)).unwrap_or_else(unknown);
            return qualified().ok_or_else(error);
        }
        return Ok(Route { case, candidates, skipped: Vec::new(), more_skipped_count: 0 });
    }
    if found.equivalents.is_empty() {
        let error = || name_not_owned(snapshot, found, None).unwrap_or_else(unknown);
        return qualified().ok_or_else(error);
    }
    Ok(Route {
        case,
        candidates: found.equivalents.to_vec(),
        skipped: found.others.iter().map(|other| other.source_id().clone()).collect(),
        more_skipped_count: found.uncompared_count(),
    })
}

fn named(
    snapshot: &Snapshot,
    request: &ToolCallRequest,
    source: &str,
    profile: Option<&Profile>,
) -> Result<Route, ToolError> {
    let is_offered =
        |candidate: &&Arc<ToolCandidate>| profile.is_none_or(|profile| profile.offers(candidate));
    let candidate = snapshot.find_in(&request.tool_name, source);
    if candidate.is_none()
        && let Some(error) = quarantined(snapshot, &request.tool_name, Some(source), profile)
    {
        return Err(error);
    }
    if profile.is_some() && candidate.filter(is_offered).is_none() {
        return Err(unknown_tool(snapshot, &request.tool_name, profile));
    }
    if !snapshot.has_source(source) {
        return Err(unknown_source(snapshot, request, source));
    }
    if let Some(selected) = candidate {
        return Ok(Route::to_one(RouteCase::Named, selected));
    }
    let Some(found) = snapshot.find(&request.tool_name) else {
        return Err(unknown_tool(snapshot, &request.tool_name, None));
    };
    let source_ids: Vec<&str> =
        found.all().take(MAX_NAMED_CANDIDATES).map(|candidate| candidate.source_id().as_str()).collect();
    let more = match found.count().saturating_sub(source_ids.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let error = ToolError::new(ErrorKind::UnknownSource, format!("source `{source}` has no such tool"));
    Err(error.on_tool(&request.tool_name).with_hint(format!(
        "the tool is in {}{more}; omit the source to route automatically",
        join_names(&source_ids)
    )))
}

/// The error for a name whose owner does not offer it now, if the profile offers another tool of that name.
fn name_not_owned(
    snapshot: &Snapshot,
    found: NameMatches<'_>,
    profile: Option<&Profile>,
) -> Option<ToolError> {
    let is_offered =
        |candidate: &&Arc<ToolCandidate>| profile.is_none_or(|profile| profile.offers(candidate));
    let others: Vec<&Arc<ToolCandidate>> = found.non_equivalents().filter(is_offered).collect();
    let first = others.first()?;
    let owner = first.yields_to.as_ref()?;
    if let Some(error) = quarantined(snapshot, &first.name, Some(owner.as_str()), profile) {
        return Some(error);
    }
    let names: Vec<Arc<str>> = others
        .iter()
        .take(MAX_NAMED_CANDIDATES)
        .filter_map(|other| snapshot.callable_name(other, profile))
        .collect();
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let message = format!("the name belongs to source `{owner}`, which does not offer this tool now");
    let hint = format!("another tool of this name is {}", join_names(&names));
    Some(ToolError::new(ErrorKind::Refused, message).on_tool(&first.name).with_hint(hint))
}

/// The error for a tool that awaits approval, in this source or in any.
fn quarantined(
    snapshot: &Snapshot,
    name: &str,
    source: Option<&str>,
    profile: Option<&Profile>,
) -> Option<ToolError> {
    let may_show = |id: &SourceId| profile.is_none_or(|profile| profile.allows(name, id.as_str()));
    let notices = snapshot.quarantined(name).into_iter();
    let mut notices =
        notices.filter(|(id, _)| source.is_none_or(|source| id.as_str() == source) && may_show(id));
    let (id, notice) = notices.next()?;
    let error = ToolError::new(ErrorKind::Quarantined, notice.reason.clone());
    let hint = format!("review the change: toolyard servers show {id}");
    let error = error.on_tool(name).on_source(id).with_operator_hint(hint);
    Some(error.with_caller_hint("only the operator can approve it"))
}

/// Suggests only tools that the profile offers.
fn unknown_tool(snapshot: &Snapshot, name: &str, profile: Option<&Profile>) -> ToolError {
    if let Some(error) = quarantined(snapshot, name, None, profile) {
        return error;
    }
    let error = ToolError::new(ErrorKind::UnknownTool, format!("tool `{name}` does not exist"));
    let similar = similar_callable_names(snapshot, name, profile);
    let similar: Vec<&str> = similar.iter().map(AsRef::as_ref).collect();
    if similar.is_empty() {
        error
    } else {
        error.with_hint(format!("did you mean {}?", join_names(&similar)))
    }
}

/// The names by which tools with a similar name are called.
fn similar_callable_names(snapshot: &Snapshot, name: &str, profile: Option<&Profile>) -> Vec<Arc<str>> {
    let mut names: Vec<Arc<str>> = Vec::new();
    for similar in snapshot.similar_names(name) {
        let Some(found) = snapshot.find(similar) else { continue };
        if let NameTarget::Callable(_) = snapshot.resolve_name(similar, profile) {
            names.push(similar.into());
            continue;
        }
        let offered = found.all().filter(|tool| profile.is_none_or(|profile| profile.offers(tool)));
        names.extend(
            offered.take(MAX_NAMED_CANDIDATES).filter_map(|tool| snapshot.callable_name(tool, profile)),
        );
    }
    names.truncate(MAX_NAMED_CANDIDATES);
    names
}

fn unknown_source(snapshot: &Snapshot, request: &ToolCallRequest, source: &str) -> ToolError {
    let error = ToolError::new(ErrorKind::UnknownSource, format!("source `{source}` does not exist"))
        .on_tool(&request.tool_name);
    let similar = snapshot.similar_sources(source);
    if !similar.is_empty() {
        return error.with_hint(format!("did you mean {}?", join_names(&similar)));
    }
    error.with_hint("omit the source to route automatically")
}
