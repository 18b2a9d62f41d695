//! The list of tools, with search and statistics.

use std::collections::HashMap;

use askama::Template;
use axum::{Router, extract::State, response::Response, routing::get};

use crate::{
    api::{CallStatistics, ServerList, StatisticsList, ToolList, ToolView},
    form_fields::FormFields,
    format::{percent, shorten, url_encode, with_query},
    page::{Notice, Page, Pager, PartFailures, Section, render, render_failure},
    request_context::Visitor,
    router::ConsoleState,
    text::{ToolsText, fill},
};

const TOOLS_PER_PAGE: usize = 50;
const MAX_DESCRIPTION_CHARS: usize = 160;

#[derive(Template)]
#[template(path = "tools.html")]
struct ToolsPage {
    page: Page,
    text: &'static ToolsText,
    query: String,
    source: String,
    sources: Vec<String>,
    heading: Option<String>,
    rows: Vec<ToolRow>,
    pager: Pager,
    notice: Option<Notice>,
}

struct ToolRow {
    tool: ToolView,
    path: String,
    /// The name by which it is called, if that is another one.
    call_as: Option<String>,
    description: String,
    /// Rounded, because older calls count less.
    calls: Option<String>,
    success: Option<String>,
}

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new().route("/console/tools", get(list))
}

/// The path of a tool's page.
pub(super) fn tool_path(name: &str, source: &str) -> String {
    format!("/console/tools/{}?source={}", url_encode(name), url_encode(source))
}

async fn list(State(state): State<ConsoleState>, visitor: Visitor) -> Response {
    let text = ToolsText::of(visitor.language());
    let parameters = FormFields::parse(visitor.context.query.as_bytes());
    let query = parameters.get("query").trim().to_owned();
    let source = parameters.get("source").to_owned();
    let after = if query.is_empty() { parameters.get("after") } else { "" };
    let path = with_query(
        &format!("/tools?limit={TOOLS_PER_PAGE}"),
        [("query", query.as_str()), ("source", &source), ("after", after)],
    );
    let tools: ToolList = match state.api.get(visitor.role(), &path).await {
        Ok(tools) => tools,
        Err(failure) => return render_failure(&visitor, Section::Tools, &failure),
    };
    let mut failures = PartFailures::default();
    let statistics: StatisticsList = failures.keep(state.api.get(visitor.role(), "/statistics").await);
    let servers: ServerList = failures.keep(state.api.get(visitor.role(), "/servers").await);
    let mut sources: Vec<String> = servers.servers.into_iter().map(|server| server.name).collect();
    sources.extend(tools.tools.iter().map(|tool| tool.source.clone()));
    sources.push("native".to_owned());
    sources.extend(Some(source.clone()).filter(|source| !source.is_empty()));
    sources.sort();
    sources.dedup();
    let by_tool: HashMap<(&str, &str), &CallStatistics> = statistics
        .statistics
        .iter()
        .map(|entry| ((entry.tool.as_str(), entry.source.as_str()), entry))
        .collect();
    let rows = tools.tools.into_iter().map(|tool| {
        let calls = by_tool.get(&(tool.name.as_str(), tool.source.as_str()));
        let calls = calls.filter(|calls| calls.weighted_calls >= 0.5);
        ToolRow {
            path: tool_path(&tool.name, &tool.source),
            call_as: tool.call_as.clone().filter(|name| *name != tool.name),
            description: shorten(first_paragraph(&tool.description), MAX_DESCRIPTION_CHARS).into_owned(),
            calls: calls.map(|calls| format!("{:.0}", calls.weighted_calls)),
            success: calls.map(|calls| percent(calls.success_rate)),
            tool,
        }
    });
    let page = Page::new(&visitor, Section::Tools, text.title);
    let pager = Pager::new(&page, "after", tools.next.as_deref());
    let heading = (!query.is_empty()).then(|| fill(text.results_for, &query));
    render(&ToolsPage {
        rows: rows.collect(),
        page,
        text,
        query,
        source,
        sources,
        heading,
        pager,
        notice: failures.notice(visitor.language()),
    })
}

fn first_paragraph(text: &str) -> &str {
    text.trim().split("\n\n").next().unwrap_or_default()
}
