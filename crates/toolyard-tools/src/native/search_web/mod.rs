//! `search_web`: web search through the configured engine.
//!
//! - `engine`: the trait and its errors
//! - `settings`: the choice of an engine
//! - `searxng`, `brave`, `tavily`: the engines
//! - `http`: one HTTP exchange, limited in time and size

mod brave;
mod engine;
mod http;
mod searxng;
mod settings;
mod tavily;

use std::{fmt, sync::Arc};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolyard_core::{
    BoxFuture, CallContext, ErrorKind, RawJson, Tool, ToolCallRequest, ToolError, ToolHints, ToolOutput,
    ToolSpec,
};

pub use brave::Brave;
pub use engine::{SearchEngine, SearchError, SearchHit};
pub use searxng::Searxng;
pub use settings::SearchSettings;
pub use tavily::Tavily;

use crate::arguments::{read_arguments, schema_of};

const DEFAULT_RESULTS: usize = 3;
const MAX_RESULTS: usize = 20;
const MAX_QUERY_CHARS: usize = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchWebArguments {
    /// What to search for
    query: String,
    /// How many results, 1 to 20; the default is 3
    limit: Option<usize>,
}

/// The tool `search_web`.
pub struct SearchWeb {
    spec: ToolSpec,
    engine: Option<Arc<dyn SearchEngine>>,
}

impl SearchWeb {
    /// Creates the tool. Without an engine, every call fails with a hint how to configure one.
    pub fn new(engine: Option<Arc<dyn SearchEngine>>) -> Self {
        let spec =
            ToolSpec::new("search_web", "Search the web and list the best results with their addresses")
                .with_input_schema(schema_of::<SearchWebArguments>())
                .with_hints(ToolHints { open_world: Some(true), ..ToolHints::READ_ONLY })
                .with_capability("search");
        Self { spec, engine }
    }

    async fn search(&self, arguments: SearchWebArguments) -> Result<ToolOutput, ToolError> {
        let Some(engine) = &self.engine else {
            return Err(ToolError::new(ErrorKind::Unavailable, "no search engine is configured")
                .with_retryable(false)
                .with_operator_hint("set `engine = \"searxng\"` and `url = \"…\"` under [web_search] (or brave or tavily, with `key`)"));
        };
        let query = arguments.query.trim();
        if query.is_empty() || query.chars().count() > MAX_QUERY_CHARS {
            return Err(ToolError::failed(format!("the query must have 1 to {MAX_QUERY_CHARS} characters")));
        }
        let limit = arguments.limit.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS);
        let hits = engine.search(query, limit).await.map_err(|error| error.into_tool_error(engine.name()))?;
        Ok(list_hits(&hits))
    }
}

fn list_hits(hits: &[SearchHit]) -> ToolOutput {
    let entry = |(index, hit): (usize, &SearchHit)| {
        let mut entry = format!("{}. {}\n   {}", index + 1, hit.title, hit.url);
        if !hit.snippet.is_empty() {
            entry.push_str("\n   ");
            entry.push_str(&hit.snippet);
        }
        entry
    };
    let entries: Vec<String> = hits.iter().enumerate().map(entry).collect();
    let text = if entries.is_empty() { "nothing was found".to_owned() } else { entries.join("\n") };
    let mut output = ToolOutput::text(text);
    output.structured = Some(RawJson::from_value(&json!({"results": hits})));
    output
}

impl Tool for SearchWeb {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { self.search(read_arguments(&request.arguments)?).await })
    }
}

impl fmt::Debug for SearchWeb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine = self.engine.as_ref().map(|engine| engine.name());
        f.debug_struct("SearchWeb").field("engine", &engine).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "search_web_tests.rs"]
mod tests;
