//! Arguments of successful calls are examples for later plans of the same owner.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolyard_core::{ArgumentExample, ArgumentExamples, BoxFuture};

use super::fixture::{Behavior, Fixture, plan, replying, request, tool};
use crate::RunRequest;

#[derive(Default)]
struct MemoryExamples(Mutex<Vec<ArgumentExample>>);

impl ArgumentExamples for MemoryExamples {
    fn of_owner<'a>(&'a self, owner: &'a str, _limit: usize) -> BoxFuture<'a, Vec<ArgumentExample>> {
        let all = self.0.lock();
        let found = all.iter().filter(|example| example.owner == owner).cloned().collect();
        Box::pin(std::future::ready(found))
    }

    fn record_example<'a>(&'a self, example: &'a ArgumentExample) -> BoxFuture<'a, ()> {
        self.0.lock().push(example.clone());
        Box::pin(std::future::ready(()))
    }
}

/// The arguments that a run of these steps leaves as examples.
async fn learned(steps: &[(&str, &str, Value, &[&str])], request: RunRequest) -> Vec<(String, Value)> {
    let examples = Arc::new(MemoryExamples::default());
    let tools = [tool("echo", Behavior::Echo), tool("picky", Behavior::Require("right"))];
    let replies = [plan(steps), json!({"right": 1}).to_string(), "Done.".to_owned()];
    let fixture = Fixture::new(replying(replies), &tools)
        .with_parts(|parts| parts.argument_examples = Some(Arc::clone(&examples) as _));
    fixture.ask(request).await;
    let all = examples.0.lock();
    all.iter().map(|example| (example.tool.clone(), example.arguments.to_value())).collect()
}

#[tokio::test(start_paused = true)]
async fn only_arguments_that_no_result_influenced_are_examples() {
    let written = json!({"text": "milk"});
    let echoed = |arguments: &Value| [("a", "echo", arguments.clone(), &[] as &[&str])];
    assert_eq!(learned(&echoed(&written), request("?")).await, [("echo".to_owned(), written.clone())]);
    let steps =
        [("a", "echo", written.clone(), &[] as &[&str]), ("b", "echo", json!({"copy": "$a.text"}), &["a"])];
    assert_eq!(
        learned(&steps, request("?")).await,
        [("echo".to_owned(), written.clone())],
        "a reference may bring anything"
    );
    let repaired = [("a", "picky", json!({"wrong": 1}), &[] as &[&str])];
    assert_eq!(learned(&repaired, request("?")).await, [], "a repair has seen an error");
    let secret = json!({"password": "hunter2"});
    assert_eq!(learned(&echoed(&secret), request("?")).await, []);
    let history = vec![toolyard_model::ModelMessage::assistant("The code is 4711.")];
    let after_answer = RunRequest { history, ..request("?") };
    assert_eq!(learned(&echoed(&written), after_answer).await, [], "an answer may quote private data");
}
