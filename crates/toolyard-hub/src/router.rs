//! Finds out who may answer a call: the three cases of the seeds, under the house's rule on substitutes.

use std::sync::Arc;

use toolyard_core::{ErrorKind, SourceId, ToolCallRequest, ToolError};

use crate::{candidate::ToolCandidate, registry::Snapshot, suggest::listed};

/// Who may answer a call.
#[derive(Debug)]
pub struct Route {
    /// How the request named its source.
    pub case: RouteCase,
    /// Equals, any of which may answer; never empty.
    pub candidates: Vec<Arc<ToolCandidate>>,
    /// Others of the same name that must not be asked in their place.
    pub passed_over: Vec<SourceId>,
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
    match request.source.as_deref() {
        None => automatic(snapshot, request, RouteCase::Automatic),
        Some(source) if SourceId::is_native_hint(source) => {
            automatic(snapshot, request, RouteCase::NativeHint)
        }
        Some(source) => named(snapshot, request, source),
    }
}

fn automatic(snapshot: &Snapshot, request: &ToolCallRequest, case: RouteCase) -> Result<Route, ToolError> {
    let Some((candidates, equals)) = snapshot.find(&request.tool_name) else {
        return Err(unknown_tool(snapshot, &request.tool_name));
    };
    let (used, others) = candidates.split_at_checked(equals).unwrap_or((candidates, &[]));
    Ok(Route {
        case,
        candidates: used.to_vec(),
        passed_over: others.iter().map(|other| other.source_id().clone()).collect(),
    })
}

fn named(snapshot: &Snapshot, request: &ToolCallRequest, source: &str) -> Result<Route, ToolError> {
    if !snapshot.has_source(source) {
        return Err(unknown_source(snapshot, request, source));
    }
    let Some((candidates, _)) = snapshot.find(&request.tool_name) else {
        return Err(unknown_tool(snapshot, &request.tool_name));
    };
    match candidates.iter().find(|candidate| candidate.source_id().as_str() == source) {
        Some(selected) => Ok(Route {
            case: RouteCase::Named,
            candidates: vec![Arc::clone(selected)],
            passed_over: Vec::new(),
        }),
        None => {
            let having: Vec<&str> =
                candidates.iter().map(|candidate| candidate.source_id().as_str()).collect();
            Err(ToolError::new(ErrorKind::UnknownSource, format!("source `{source}` has no such tool"))
                .on_tool(&request.tool_name)
                .with_hint(format!("it is in {}; leave the source out to let it be found", listed(&having))))
        }
    }
}

fn unknown_tool(snapshot: &Snapshot, name: &str) -> ToolError {
    let error = ToolError::new(ErrorKind::UnknownTool, format!("tool `{name}` does not exist"));
    let near = snapshot.names_near(name);
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
