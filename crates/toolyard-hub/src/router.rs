//! Finds out who may answer a call: the three cases of the seeds, under the house's rule on substitutes.

use std::sync::Arc;

use toolyard_core::{ErrorKind, SourceId, ToolCallRequest, ToolError};

use crate::{candidate::ToolCandidate, registry::Snapshot, suggest::listed, surface::Profile};

/// More sources than this are not listed in a hint.
pub(crate) const MOST_NAMED: usize = 8;

/// Who may answer a call.
#[derive(Debug)]
pub struct Route {
    /// How the request named its source.
    pub case: RouteCase,
    /// Equals, any of which may answer; never empty.
    pub candidates: Vec<Arc<ToolCandidate>>,
    /// Others of the same name that must not be asked in their place; at most some dozens, in order.
    pub passed_over: Vec<SourceId>,
    /// How many more there are behind those.
    pub passed_over_more: usize,
}

/// How a request named its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteCase {
    /// Not at all, which is the normal way.
    Automatic,
    /// `native` or `appflowy`: only a hint, so everything is looked at as if nothing had been said.
    NativeHint,
    /// By its id.
    Named,
}

impl RouteCase {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Automatic => "source not given: automatic",
            Self::NativeHint => "source is only a hint: automatic",
            Self::Named => "source named by the caller",
        }
    }
}

/// Decides by the snapshot alone who may answer.
pub fn route(snapshot: &Snapshot, request: &ToolCallRequest) -> Result<Route, ToolError> {
    route_within(snapshot, request, None)
}

/// The same where only a part of the tools is offered: whatever is not might as well not exist.
pub fn route_within(
    snapshot: &Snapshot,
    request: &ToolCallRequest,
    profile: Option<&Profile>,
) -> Result<Route, ToolError> {
    let profile = profile.filter(|profile| !profile.is_open());
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
    let found = snapshot.find(&request.tool_name).ok_or_else(unknown)?;
    if let Some(profile) = profile {
        let candidates = profile.chosen(found);
        if candidates.is_empty() {
            return Err(unknown());
        }
        return Ok(Route { case, candidates, passed_over: Vec::new(), passed_over_more: 0 });
    }
    Ok(Route {
        case,
        candidates: found.used.to_vec(),
        passed_over: found.passed_over.iter().map(|other| other.source_id().clone()).collect(),
        passed_over_more: found.beyond(),
    })
}

fn named(
    snapshot: &Snapshot,
    request: &ToolCallRequest,
    source: &str,
    profile: Option<&Profile>,
) -> Result<Route, ToolError> {
    let offered = |candidate: &&Arc<ToolCandidate>| profile.is_none_or(|profile| profile.offers(candidate));
    let known = snapshot.find_in(&request.tool_name, source);
    if profile.is_some() && known.filter(offered).is_none() {
        return Err(unknown_tool(snapshot, &request.tool_name, profile));
    }
    if !snapshot.has_source(source) {
        return Err(unknown_source(snapshot, request, source));
    }
    if let Some(selected) = known {
        let candidates = vec![Arc::clone(selected)];
        return Ok(Route {
            case: RouteCase::Named,
            candidates,
            passed_over: Vec::new(),
            passed_over_more: 0,
        });
    }
    let Some(found) = snapshot.find(&request.tool_name) else {
        return Err(unknown_tool(snapshot, &request.tool_name, None));
    };
    let having: Vec<&str> =
        found.all().take(MOST_NAMED).map(|candidate| candidate.source_id().as_str()).collect();
    let more = match found.count().saturating_sub(having.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let error = ToolError::new(ErrorKind::UnknownSource, format!("source `{source}` has no such tool"));
    Err(error
        .on_tool(&request.tool_name)
        .with_hint(format!("it is in {}{more}; leave the source out to let it be found", listed(&having))))
}

/// Nobody is told of tools that are not offered.
fn unknown_tool(snapshot: &Snapshot, name: &str, profile: Option<&Profile>) -> ToolError {
    let error = ToolError::new(ErrorKind::UnknownTool, format!("tool `{name}` does not exist"));
    let mut near = snapshot.names_near(name);
    if let Some(profile) = profile {
        near.retain(|name| snapshot.find(name).is_some_and(|found| !profile.chosen(found).is_empty()));
    }
    if near.is_empty() { error } else { error.with_hint(format!("did you mean {}?", listed(&near))) }
}

fn unknown_source(snapshot: &Snapshot, request: &ToolCallRequest, source: &str) -> ToolError {
    let error = ToolError::new(ErrorKind::UnknownSource, format!("source `{source}` does not exist"))
        .on_tool(&request.tool_name);
    let near = snapshot.sources_near(source);
    if !near.is_empty() {
        return error.with_hint(format!("did you mean {}?", listed(&near)));
    }
    error.with_hint("leave the source out to let the tool be found")
}
