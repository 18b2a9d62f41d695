//! A client that follows a surface: what its model is sent and writes, turn by turn.

use std::ops::AddAssign;

use serde_json::{Value, json};
use toolyard::agent::{O200k, TokenCounter as _};

use crate::{catalogue::Yard, task_set::Task};

/// What the last answer to the person costs.
const LAST_WORDS: usize = 150;
/// What is read from a prompt cache costs this part of what is read anew.
const CACHED: f64 = 0.1;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Full,
    Search,
}

/// What one or more tasks cost.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) turns: usize,
    /// Everything that was sent and written, each turn in full.
    pub(crate) sent: f64,
    /// The same where what was sent before is read from a cache.
    pub(crate) cached: f64,
    /// Tools that no search brought.
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

/// One conversation.
struct Conversation<'a> {
    yard: &'a Yard,
    kind: Kind,
    /// How much was sent at the last turn, all of which is in the cache now.
    before: usize,
    /// Everything so far.
    length: usize,
    cost: Cost,
    /// What searches have shown.
    seen: String,
}

/// Carries out a task with a surface.
pub(crate) async fn follow(yard: &Yard, task: &Task, kind: Kind, instructions: usize) -> Cost {
    let length = instructions + yard.list_tokens(kind) + O200k.count(&task.text);
    let mut talk = Conversation { yard, kind, before: 0, length, cost: Cost::default(), seen: String::new() };
    let mut steps = task.steps.iter();
    if kind == Kind::Search {
        talk.search(&task.text).await;
    }
    for (server, tool) in &task.needs {
        let Some((name, definition)) = yard.offered(server, tool) else { continue };
        if kind == Kind::Search {
            talk.find(&name, &definition, &mut steps).await;
        }
        let arguments = arguments(&definition);
        match kind {
            Kind::Full => talk.turn(&name, &arguments).await,
            Kind::Search => talk.turn("call_tool", &json!({"name": name, "arguments": arguments})).await,
        };
    }
    talk.say(LAST_WORDS);
    talk.cost
}

impl Conversation<'_> {
    /// Searches until a tool was seen: with the next steps of the task, then with what the tool says of itself.
    async fn find(&mut self, name: &str, definition: &Value, steps: &mut std::slice::Iter<'_, String>) {
        while !self.has_seen(name) {
            match steps.next() {
                Some(step) => self.search(step).await,
                None => {
                    let described = definition.get("description").and_then(Value::as_str).unwrap_or(name);
                    let words: Vec<&str> = described.split_whitespace().take(8).collect();
                    self.search(&words.join(" ")).await;
                    if !self.has_seen(name) {
                        self.cost.not_found += 1;
                    }
                    break;
                }
            }
        }
        let is_object = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "object");
        let nested = |param: &Value| is_object(param) || param.get("items").is_some_and(is_object);
        if properties(definition).is_some_and(|all| all.values().any(nested)) {
            self.turn("describe_tool", &json!({ "name": name })).await;
        }
    }

    fn has_seen(&self, name: &str) -> bool {
        let begins = format!("{name}(");
        self.seen.lines().any(|line| line.starts_with(&begins))
    }

    async fn search(&mut self, query: &str) {
        let found = self.turn("search_tools", &json!({ "query": query })).await;
        self.seen.push_str(&found);
        self.seen.push('\n');
    }

    /// The model calls a tool, and its result joins the conversation.
    async fn turn(&mut self, tool: &str, arguments: &Value) -> String {
        self.say(O200k.count(&json!({"name": tool, "arguments": arguments}).to_string()));
        let answer = self.yard.answer(self.kind, tool, arguments).await;
        self.length += O200k.count(&answer);
        answer
    }

    /// The model reads everything and writes so many tokens.
    fn say(&mut self, written: usize) {
        let (all, known, written) = (self.length, self.before, written);
        self.cost.turns += 1;
        self.cost.sent += (all + written) as f64;
        self.cost.cached += known as f64 * CACHED + (all - known + written) as f64;
        self.before = all;
        self.length += written;
    }
}

/// Arguments as a model may write them.
fn arguments(definition: &Value) -> Value {
    let properties = properties(definition).into_iter().flatten();
    let values = properties.take(3).map(|(name, _)| (name.clone(), json!(format!("some {name}"))));
    Value::Object(values.collect())
}

fn properties(definition: &Value) -> Option<&serde_json::Map<String, Value>> {
    definition.get("inputSchema")?.get("properties")?.as_object()
}
