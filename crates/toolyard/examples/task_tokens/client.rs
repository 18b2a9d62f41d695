//! A simulated client of one surface: counts what its model reads and writes, turn by turn.

use std::ops::AddAssign;

use serde_json::{Value, json};
use toolyard_agent::{O200k, TokenCounter as _};

use crate::{catalogue::ServedTools, task_set::Task};

/// Tokens of the final answer to the user.
const FINAL_ANSWER_TOKENS: usize = 150;
/// Price of a token read from the prompt cache, relative to a token that is not cached.
const CACHED_TOKEN_PRICE: f64 = 0.1;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SurfaceKind {
    Full,
    Search,
}

/// Tokens and turns of one or more tasks.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) turns: usize,
    /// Tokens read and written, if every turn is read in full.
    pub(crate) sent: f64,
    /// The same, with tokens of earlier turns at the price of cached ones.
    pub(crate) cached: f64,
    /// Tools that no search found.
    pub(crate) not_found: usize,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.turns += other.turns;
        self.sent += other.sent;
        self.cached += other.cached;
        self.not_found += other.not_found;
    }
}

struct Conversation<'a> {
    tools: &'a ServedTools,
    kind: SurfaceKind,
    /// Tokens that were sent in the last turn: all of them are in the prompt cache.
    cached_tokens: usize,
    /// Tokens of the whole conversation so far.
    total_tokens: usize,
    cost: Cost,
    /// The results of all searches.
    search_results: String,
}

/// Simulates a task with a surface.
pub(crate) async fn run_task(
    tools: &ServedTools,
    task: &Task,
    kind: SurfaceKind,
    instruction_tokens: usize,
) -> Cost {
    let total_tokens = instruction_tokens + tools.list_tokens(kind) + O200k.count(&task.text);
    let mut conversation = Conversation {
        tools,
        kind,
        cached_tokens: 0,
        total_tokens,
        cost: Cost::default(),
        search_results: String::new(),
    };
    let mut steps = task.steps.iter();
    if kind == SurfaceKind::Search {
        conversation.search(&task.text).await;
    }
    for (server, tool) in &task.needed_tools {
        let Some((name, definition)) = tools.listed_tool(server, tool) else { continue };
        if kind == SurfaceKind::Search {
            conversation.find(&name, &definition, &mut steps).await;
        }
        let arguments = arguments(&definition);
        match kind {
            SurfaceKind::Full => conversation.call_tool(&name, &arguments).await,
            SurfaceKind::Search => {
                conversation.call_tool("call_tool", &json!({"name": name, "arguments": arguments})).await
            }
        };
    }
    conversation.complete_turn(FINAL_ANSWER_TOKENS);
    conversation.cost
}

impl Conversation<'_> {
    /// Searches until a tool is found: for the next steps of the task, then for the tool's own description. Describes a tool
    /// whose parameters are nested or that was found in the short form, because the search results do not show those.
    async fn find(&mut self, name: &str, definition: &Value, steps: &mut std::slice::Iter<'_, String>) {
        while !self.has_found(name) {
            match steps.next() {
                Some(step) => self.search(step).await,
                None => {
                    let description = definition.get("description").and_then(Value::as_str).unwrap_or(name);
                    let words: Vec<&str> = description.split_whitespace().take(8).collect();
                    self.search(&words.join(" ")).await;
                    if !self.has_found(name) {
                        self.cost.not_found += 1;
                    }
                    break;
                }
            }
        }
        let is_object = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "object");
        let is_nested = |param: &Value| is_object(param) || param.get("items").is_some_and(is_object);
        let is_nested = properties(definition).is_some_and(|all| all.values().any(is_nested));
        if is_nested || (self.has_found(name) && !self.has_parameters(name)) {
            self.call_tool("describe_tool", &json!({ "name": name })).await;
        }
    }

    /// Whether a search result names the tool, with its parameters or in the short form: `name, other_name: description`.
    fn has_found(&self, name: &str) -> bool {
        let is_short = |line: &str| {
            line.split_once(": ").is_some_and(|(names, _)| names.split(", ").any(|found| found == name))
        };
        self.has_parameters(name) || self.search_results.lines().any(is_short)
    }

    fn has_parameters(&self, name: &str) -> bool {
        let signature_start = format!("{name}(");
        self.search_results.lines().any(|line| line.starts_with(&signature_start))
    }

    async fn search(&mut self, query: &str) {
        let found = self.call_tool("search_tools", &json!({ "query": query })).await;
        self.search_results.push_str(&found);
        self.search_results.push('\n');
    }

    /// The model calls a tool, and its result joins the conversation.
    async fn call_tool(&mut self, tool: &str, arguments: &Value) -> String {
        self.complete_turn(O200k.count(&json!({"name": tool, "arguments": arguments}).to_string()));
        let answer = self.tools.call_tool(self.kind, tool, arguments).await;
        self.total_tokens += O200k.count(&answer);
        answer
    }

    /// The model reads the whole conversation and writes this many tokens.
    fn complete_turn(&mut self, written: usize) {
        let (all, cached) = (self.total_tokens, self.cached_tokens);
        self.cost.turns += 1;
        self.cost.sent += (all + written) as f64;
        self.cost.cached += cached as f64 * CACHED_TOKEN_PRICE + (all - cached + written) as f64;
        self.cached_tokens = all;
        self.total_tokens += written;
    }
}

/// Plausible arguments: a short text for each of the first three parameters.
fn arguments(definition: &Value) -> Value {
    let properties = properties(definition).into_iter().flatten();
    let values = properties.take(3).map(|(name, _)| (name.clone(), json!(format!("some {name}"))));
    Value::Object(values.collect())
}

fn properties(definition: &Value) -> Option<&serde_json::Map<String, Value>> {
    definition.get("inputSchema")?.get("properties")?.as_object()
}
