//! `/api/v1/tools`: the tools of all sources.

use std::sync::Arc;

use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard_core::{CallerIdentity, DataOwner, RawJson};
use toolyard_hub::{NameTarget, Snapshot, ToolCandidate, ToolHub};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    admin::CallStatistics,
    agents::ApiError,
    api::{
        ApiState,
        error_code::ErrorCode,
        extract::{ApiPath, ApiQuery, AuthenticatedCaller},
        openapi::ErrorBody,
        pagination::{cut_page, page_limit},
        queries::{SourceQuery, ToolQuery},
        response::{ApiResult, json_of},
    },
    surface::VisibleTools,
};

/// A tool.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolView {
    /// Its name.
    pub name: String,
    /// The source that it comes from.
    pub source: String,
    /// `native`, `skill` or `mcp`.
    #[schema(value_type = String)]
    pub kind: toolyard_core::SourceKind,
    /// A name for people.
    pub title: Option<String>,
    /// What it does.
    pub description: String,
    /// `read-only`, `writes`, `idempotent` or `destructive`; `unverified` if neither a trusted source nor the operator declared it.
    pub effect: String,
    /// Whether it changes nothing.
    pub read_only: bool,
    /// Whether it may destroy something.
    pub destructive: bool,
    /// Whether calls can be repeated safely.
    pub idempotent: bool,
    /// Whether it passes its arguments to systems outside; null if nothing believable was declared.
    pub open_world: Option<bool>,
    /// Whether the operator denies its calls.
    pub denied: bool,
    /// The name by which `POST /tools/NAME/call` and clients of the main endpoint call it; null if they cannot.
    pub call_as: Option<String>,
    /// Relevance, with `query` only; comparable within one response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f32>,
}

/// A page of tools.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolList {
    /// By name and source, or the most relevant one first.
    pub tools: Vec<ToolView>,
    /// To be given back as `after`; null if this is the last page.
    pub next: Option<String>,
}

/// A tool with its schemas and statistics.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolDetails {
    #[serde(flatten)]
    /// As in the list.
    pub tool: ToolView,
    /// JSON Schema of the arguments.
    #[schema(value_type = Object)]
    pub input_schema: Value,
    /// JSON Schema of structured results.
    #[schema(value_type = Option<Object>)]
    pub output_schema: Option<Value>,
    /// What it can be used for, in words of the hub.
    pub capabilities: Vec<String>,
    /// Null if the tool was never called, if there is no store, or for callers with credentials of their own: it is of all callers.
    pub statistics: Option<CallStatistics>,
}

pub(in crate::api) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(list_tools)).routes(routes!(show_tool))
}

/// Lists tools, or searches them.
#[utoipa::path(get, path = "/tools", tag = "tools", params(ToolQuery), responses((status = 200, body = ToolList)))]
async fn list_tools(
    State(state): State<ApiState>,
    caller: AuthenticatedCaller,
    ApiQuery(query): ApiQuery<ToolQuery>,
) -> ApiResult {
    let limit = page_limit(query.limit)?;
    let Some(hub) = &state.hub else {
        return Ok(json_of(StatusCode::OK, &ToolList { tools: Vec::new(), next: None }));
    };
    let shown = ShownTools::new(&state, hub, &caller.0);
    if let Some(source) = &query.source
        && !shown.has_source(source)
    {
        return Err(ApiError::not_found(
            ErrorCode::SourceNotFound,
            format!("source `{source}` does not exist"),
        ));
    }
    let source = query.source.as_deref();
    let list = match &query.query {
        Some(words) => search(&shown, hub, words, source, limit).await,
        None => list(&shown, source, query.after.as_deref(), limit),
    };
    Ok(json_of(StatusCode::OK, &list))
}

async fn search(
    shown: &ShownTools,
    hub: &ToolHub,
    words: &str,
    source: Option<&str>,
    limit: usize,
) -> ToolList {
    hub.wait_until_searchable(&[words]).await;
    // Neither source nor caller is part of the search, so that their tools may be behind others.
    let is_limited = source.is_some() || shown.owner != DataOwner::Operator;
    let found = hub.search_for(shown.owner, words, if is_limited { usize::MAX } else { limit });
    let is_selected = |tool: &ToolCandidate| {
        source.is_none_or(|source| tool.source_id().as_str() == source) && shown.contains(tool)
    };
    let found = found.iter().filter(|found| is_selected(&found.tool)).take(limit);
    let view = |found: &toolyard_hub::ToolMatch| ToolView {
        score: Some(found.score),
        ..ToolView::of(shown, &found.tool)
    };
    ToolList { tools: found.map(view).collect(), next: None }
}

fn list(shown: &ShownTools, source: Option<&str>, after: Option<&str>, limit: usize) -> ToolList {
    let sources = shown.snapshot.sources();
    let selected = sources.iter().filter(|entry| source.is_none_or(|id| entry.source.info.id.as_str() == id));
    let mut tools: Vec<(String, &Arc<ToolCandidate>)> =
        selected.flat_map(|entry| entry.tools.iter()).map(|tool| (cursor(tool), tool)).collect();
    tools.retain(|(_, tool)| shown.contains(tool));
    tools.sort_by(|(one, _), (other, _)| one.cmp(other));
    tools.retain(|(cursor, _)| after.is_none_or(|after| cursor.as_str() > after));
    tools.truncate(limit.saturating_add(1));
    let next = cut_page(&mut tools, limit, |(cursor, _)| cursor.clone());
    ToolList { tools: tools.iter().map(|(_, tool)| ToolView::of(shown, tool)).collect(), next }
}

/// Identifies a tool in the order of the list.
fn cursor(tool: &ToolCandidate) -> String {
    format!("{}@{}", tool.name, tool.source_id())
}

/// Shows a tool.
#[utoipa::path(get, path = "/tools/{name}", tag = "tools", params(("name" = String, Path), SourceQuery),
    responses((status = 200, body = ToolDetails), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "several sources have a tool of this name")))]
async fn show_tool(
    State(state): State<ApiState>,
    caller: AuthenticatedCaller,
    ApiPath(name): ApiPath<String>,
    ApiQuery(query): ApiQuery<SourceQuery>,
) -> ApiResult {
    let unknown = || ApiError::not_found(ErrorCode::ToolNotFound, format!("tool `{name}` does not exist"));
    let shown = ShownTools::new(&state, state.hub.as_ref().ok_or_else(unknown)?, &caller.0);
    let snapshot = &shown.snapshot;
    let tool = match &query.source {
        Some(source) => snapshot.find_in(&name, source).map(Arc::clone).ok_or_else(unknown)?,
        None => match snapshot.resolve_name(&name, None) {
            NameTarget::Qualified(tool) => tool,
            NameTarget::Callable(tools) => {
                tools.into_iter().find(|tool| shown.contains(tool)).ok_or_else(unknown)?
            }
            NameTarget::Ambiguous(mut tools) => {
                tools.retain(|tool| shown.contains(tool));
                if tools.is_empty() {
                    return Err(unknown());
                }
                let sources: Vec<&str> = tools.iter().map(|tool| tool.source_id().as_str()).collect();
                let message =
                    format!("tool `{name}` is ambiguous: set `source` to one of {}", sources.join(", "));
                let error = ApiError {
                    code: Some(ErrorCode::ToolAmbiguous),
                    ..ApiError::invalid_param("source", message)
                };
                return Err(ApiError { status: StatusCode::CONFLICT, ..error });
            }
            NameTarget::Unknown => snapshot
                .find(&name)
                .and_then(|found| found.all().next().map(Arc::clone))
                .ok_or_else(unknown)?,
        },
    };
    if !shown.contains(&tool) {
        return Err(unknown());
    }
    let is_operator = shown.owner == DataOwner::Operator;
    let statistics =
        state.admin.as_ref().filter(|_| is_operator).map(|admin| admin.statistics()).unwrap_or_default();
    let is_of_tool =
        |entry: &CallStatistics| entry.tool == *tool.name && entry.source == tool.source_id().as_str();
    let details = ToolDetails {
        tool: ToolView::of(&shown, &tool),
        input_schema: tool.spec().input_schema.to_value(),
        output_schema: tool.spec().output_schema.as_ref().map(RawJson::to_value),
        capabilities: tool.capabilities.iter().map(|capability| capability.as_str().to_owned()).collect(),
        statistics: statistics.into_iter().find(is_of_tool),
    };
    Ok(json_of(StatusCode::OK, &details))
}

/// The tools that a caller is shown, and the names by which they are called: those of the main endpoint, or of the hub if there is
/// none. The operator is shown all tools of all sources, others those that they can call.
struct ShownTools {
    snapshot: Arc<Snapshot>,
    main: Option<VisibleTools>,
    owner: DataOwner,
}

impl ShownTools {
    fn new(state: &ApiState, hub: &ToolHub, identity: &Arc<CallerIdentity>) -> Self {
        let main = state.main_tools.as_ref().map(|tools| tools.service().visible_to(Some(identity)));
        // Both of the same moment.
        let snapshot =
            main.as_ref().map_or_else(|| hub.snapshot(), |main| Arc::clone(&main.exposed().snapshot));
        Self { snapshot, main, owner: DataOwner::of(Some(identity)) }
    }

    fn contains(&self, tool: &ToolCandidate) -> bool {
        self.owner == DataOwner::Operator || self.main.as_ref().is_some_and(|main| main.contains(tool))
    }

    fn has_source(&self, source: &str) -> bool {
        let found = self.snapshot.source(source);
        found.is_some_and(|entry| {
            self.owner == DataOwner::Operator || entry.tools.iter().any(|tool| self.contains(tool))
        })
    }

    fn call_name(&self, tool: &ToolCandidate) -> Option<Arc<str>> {
        match &self.main {
            Some(main) => main.exposed().find_candidate(tool).map(|tool| Arc::clone(&tool.name)),
            None => self.snapshot.callable_name(tool, None),
        }
    }
}

impl ToolView {
    fn of(shown: &ShownTools, tool: &ToolCandidate) -> Self {
        let (spec, hints) = (tool.spec(), &tool.hints);
        Self {
            name: tool.name.to_string(),
            source: tool.source_id().to_string(),
            kind: tool.source.info.kind,
            title: spec.title.clone(),
            description: spec.description.clone(),
            effect: hints.label().to_owned(),
            read_only: hints.read_only,
            destructive: hints.destructive,
            idempotent: hints.idempotent,
            open_world: hints.open_world,
            denied: tool.denied,
            call_as: shown.call_name(tool).map(|name| name.to_string()),
            score: None,
        }
    }
}
