//! A planner asks for tools that its prompt does not show.

use serde_json::json;

use super::fixture::{Behavior, Fixture, TestTool, replying, request, tool};
use crate::{RunEnd, RunEvent};

/// More tools for documents than a prompt shows, and one about something else.
fn tools() -> Vec<TestTool> {
    let name =
        |number: usize| -> &'static str { Box::leak(format!("sort_documents_{number}").into_boxed_str()) };
    let mut tools: Vec<TestTool> = (0..30).map(|number| tool(name(number), Behavior::Echo)).collect();
    tools.push(tool("tide_table", Behavior::Echo).with_description("High and low water of a harbour"));
    tools
}

fn search(words: &str) -> String {
    json!({"call": {"tool_type": "search_tools", "arguments": {"query": words}}}).to_string()
}

/// The lines about `search_tools` in the system prompt of each request, and whether it shows `tide_table`.
fn prompts(fixture: &Fixture) -> Vec<(Option<String>, bool)> {
    let prompt = |text: &str| {
        let lines: Vec<&str> = text.lines().collect();
        let search = lines.windows(2).find(|pair| pair[0].starts_with("- search_tools("));
        (search.map(|pair| pair.join("\n")), text.contains("tide_table"))
    };
    fixture.model.requests().iter().map(|request| prompt(&request.messages[0].text)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_planner_searches_the_tools_that_it_is_not_shown() {
    let call = json!({"call": {"tool_type": "tide_table", "arguments": {"harbour": "Husum"}}}).to_string();
    let replies = [search("high water of a harbour"), call, "High water is at noon.".to_owned()];
    let fixture = Fixture::new(replying(replies), &tools());
    let (run, end) = fixture.ask(request("Sort the documents")).await;
    assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
    assert_eq!(fixture.arguments_of("tide_table"), [json!({"harbour": "Husum"})]);
    let prompts = prompts(&fixture);
    insta::assert_snapshot!(prompts[0].0.as_ref().unwrap(), @r"
    - search_tools(query: string)
      Find other tools by what they do: 21 more are not listed here.
    ");
    assert_eq!(prompts.iter().map(|(_, has_tides)| *has_tides).collect::<Vec<_>>(), [false, true, false]);
    let searched = RunEvent::ToolsSearched { words: "high water of a harbour".to_owned() };
    assert!(fixture.events(&run).await.contains(&searched));
}

#[tokio::test(start_paused = true)]
async fn a_planner_searches_at_most_twice() {
    let replies = [search("one"), search("two"), search("three"), json!({"answer": "I cannot."}).to_string()];
    let fixture = Fixture::new(replying(replies), &tools());
    let (_, end) = fixture.ask(request("Sort the documents")).await;
    assert_eq!(end.answer(), Some("I cannot."));
    let offered: Vec<bool> = prompts(&fixture).iter().map(|(search, _)| search.is_some()).collect();
    assert_eq!(offered, [true, true, false, false], "the third search is a plan with an unknown tool");
}

#[tokio::test(start_paused = true)]
async fn no_search_is_offered_where_all_tools_are_shown() {
    let answer = json!({"answer": "Nothing to do."}).to_string();
    let fixture = Fixture::new(replying([answer]), &[tool("sort_documents", Behavior::Echo)]);
    fixture.ask(request("Sort the documents")).await;
    assert_eq!(prompts(&fixture), [(None, false)]);
}
