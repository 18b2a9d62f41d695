//! Searching a hub whose sources come and go.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use toolyard_core::{
    BoxFuture, CallContext, Embedder, EmbeddingError, SourceId, SourceInfo, SourceKind, Tool,
    ToolCallRequest, ToolError, ToolOutput, ToolSpec,
};

use crate::HubConfig;

use super::*;

struct SpecOnlyTool(ToolSpec);

impl Tool for SpecOnlyTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _: &'a ToolCallRequest,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Ok(ToolOutput::text("done")) })
    }
}

fn tool(name: &str, description: &str) -> Arc<dyn Tool> {
    Arc::new(SpecOnlyTool(ToolSpec::new(name, description)))
}

fn server(id: &str) -> SourceInfo {
    SourceInfo::new(id, SourceKind::Mcp)
}

fn found_names(hub: &ToolHub, request: &str) -> Vec<String> {
    hub.search(request, 10)
        .iter()
        .map(|found| format!("{}@{}", found.tool.name, found.tool.source_id()))
        .collect()
}

#[test]
fn added_and_removed_sources_change_the_results_at_once() {
    let hub = ToolHub::default();
    assert!(found_names(&hub, "send mail").is_empty());
    hub.register(server("post"), vec![tool("send_mail", "Sends a mail")]);
    assert_eq!(found_names(&hub, "send mail"), ["send_mail@post"]);
    hub.register(server("post"), vec![tool("read_mail", "Reads a mail")]);
    assert_eq!(found_names(&hub, "send mail"), ["read_mail@post"]);
    hub.remove(&SourceId::from("post"));
    assert!(found_names(&hub, "send mail").is_empty());
}

#[test]
fn of_identical_tools_the_one_that_a_call_reaches_is_shown() {
    let hub = ToolHub::default();
    hub.register(server("b"), vec![tool("send_mail", "Sends a mail")]);
    hub.register(server("a"), vec![tool("send_mail", "Sends a mail")]);
    let found = hub.search("send mail", 10);
    assert_eq!(found.len(), 1);
    assert!(found[0].reachable_by_name);
    assert_eq!(found[0].tool.source_id().as_str(), "b", "the source registered first is called");
    assert_eq!(found[0].duplicates.len(), 1);
}

#[test]
fn a_tool_that_a_call_by_name_does_not_reach_is_marked() {
    let hub = ToolHub::default();
    hub.register(
        server("a"),
        vec![tool("search", "Looks for hotels near an airport, with prices and ratings")],
    );
    hub.register(
        server("b"),
        vec![tool("search", "Full-text lookup across scientific papers and their authors")],
    );
    let found = hub.search("find scientific papers by author", 10);
    assert_eq!(found[0].tool.source_id().as_str(), "b");
    assert!(!found[0].reachable_by_name);
}

#[test]
fn a_request_in_chinese_finds_tools_described_in_english() {
    let hub = ToolHub::default();
    hub.register(server("git"), vec![tool("delete_branch", "Delete a branch"), tool("log", "Show the log")]);
    assert_eq!(found_names(&hub, "删除这个分支")[0], "delete_branch@git");
}

/// Knows that `omega` means `alpha`.
#[derive(Debug, Default)]
struct FakeEmbedder {
    calls: AtomicUsize,
    fails: bool,
    /// The text that it refuses, together with all that are sent with it.
    refused: Option<&'static str>,
    /// Vectors that are missing in every answer.
    missing: usize,
    delay: Duration,
}

impl Embedder for FakeEmbedder {
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbeddingError>> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(self.delay).await;
            let vector = |text: &String| match text.contains("alpha") || text.contains("omega") {
                true => vec![1.0, 0.0],
                false => vec![0.0, 1.0],
            };
            if self.fails {
                return Err(EmbeddingError { message: "no server".to_owned(), is_unreachable: true });
            }
            if self.refused.is_some_and(|refused| texts.iter().any(|text| text.contains(refused))) {
                return Err(EmbeddingError { message: "refused".to_owned(), is_unreachable: false });
            }
            Ok(texts.iter().skip(self.missing).map(vector).collect())
        })
    }
}

fn hub_with(embedder: FakeEmbedder) -> (ToolHub, Arc<FakeEmbedder>) {
    let embedder = Arc::new(embedder);
    let known = Arc::clone(&embedder);
    let hub = ToolHub::new(HubConfig { embedder: Some(known), ..HubConfig::default() });
    hub.register(server("post"), vec![tool("quux", "alpha"), tool("read_file", "Reads a file")]);
    (hub, embedder)
}

/// Searches as clients do, after what runs in the background had time.
async fn search(hub: &ToolHub, request: &str) -> Vec<String> {
    hub.wait_until_searchable(&[request]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    found_names(hub, request)
}

#[tokio::test(start_paused = true)]
async fn tools_without_a_word_of_the_request_are_found_by_embeddings() {
    let (hub, embedder) = hub_with(FakeEmbedder::default());
    hub.prepare_search();
    assert_eq!(search(&hub, "omega").await, ["quux@post"]);
    assert_eq!(search(&hub, "omega").await, ["quux@post"]);
    assert_eq!(embedder.calls.load(Ordering::Relaxed), 2, "the tools once, and the request once");
    hub.register(server("later"), vec![tool("frobnicate", "alpha")]);
    assert_eq!(search(&hub, "omega").await, ["quux@post"], "the new tool is not embedded yet");
    assert_eq!(search(&hub, "omega").await, ["frobnicate@later", "quux@post"]);
}

#[tokio::test(start_paused = true)]
async fn a_failing_embedder_leaves_the_search_to_words_and_is_not_asked_at_every_search() {
    let (hub, embedder) = hub_with(FakeEmbedder { fails: true, ..FakeEmbedder::default() });
    for _ in 0..5 {
        assert_eq!(search(&hub, "read a file").await, ["read_file@post"]);
    }
    assert_eq!(embedder.calls.load(Ordering::Relaxed), 1);
    tokio::time::sleep(Duration::from_secs(61)).await;
    search(&hub, "read a file").await;
    assert!(embedder.calls.load(Ordering::Relaxed) > 1, "asked again after a minute");
}

#[tokio::test(start_paused = true)]
async fn a_refused_text_leaves_the_others_their_embeddings() {
    let (hub, embedder) = hub_with(FakeEmbedder { refused: Some("Reads"), ..FakeEmbedder::default() });
    hub.prepare_search();
    assert_eq!(search(&hub, "omega").await, ["quux@post"]);
    let asked = embedder.calls.load(Ordering::Relaxed);
    assert_eq!(search(&hub, "omega").await, ["quux@post"]);
    search(&hub, " ").await;
    assert_eq!(embedder.calls.load(Ordering::Relaxed), asked, "neither a refused text nor a blank one");
    search(&hub, "Reads what").await;
    assert_eq!(search(&hub, "Reads what").await, ["read_file@post"]);
    assert_eq!(embedder.calls.load(Ordering::Relaxed), asked + 3, "the request, alone, and a plain text");
}

#[tokio::test(start_paused = true)]
async fn answers_with_too_few_vectors_are_a_failure() {
    let (hub, embedder) = hub_with(FakeEmbedder { missing: 1, ..FakeEmbedder::default() });
    hub.prepare_search();
    for _ in 0..5 {
        assert_eq!(search(&hub, "read a file").await, ["read_file@post"]);
    }
    let asked = embedder.calls.load(Ordering::Relaxed);
    assert!(asked <= 6, "{asked}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_embedder_delays_a_search_for_a_moment_only() {
    let (hub, _) = hub_with(FakeEmbedder { delay: Duration::from_secs(30), ..FakeEmbedder::default() });
    hub.prepare_search();
    let started = Instant::now();
    hub.wait_until_searchable(&["read a file"]).await;
    assert!(started.elapsed() <= Duration::from_millis(600), "{:?}", started.elapsed());
    assert_eq!(found_names(&hub, "read a file"), ["read_file@post"]);
    let started = Instant::now();
    hub.wait_until_searchable(&["omega"]).await;
    assert!(started.elapsed() < Duration::from_millis(100), "no search waits in vain again");
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(found_names(&hub, "omega"), ["quux@post"], "the embedding arrived later");
}
