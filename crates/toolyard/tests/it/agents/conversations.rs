//! Conversations over `/v1`, `/runs` and `ask_agent`: kept in the store, owned by their caller, recalled by
//! `get_conversation_history`.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Fixture, chat::chat};
use crate::{
    client::{HttpGateway, modern_meta, send},
    test_home::wait_until,
};

const HISTORY_TOOL: &str = "get_conversation_history";
const TOKENS: [&str; 2] = ["the-first-tenant-has-this-token", "the-second-tenant-has-this-token"];

/// Scripts a plan that recalls the conversation, and the answers of two messages.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.model.script_direct_answer("I am Ada", "Hello, Ada.");
    fixture
        .model
        .script_plan("look back", &json!([{"id": "back", "tool_type": HISTORY_TOOL, "arguments": {}}]));
    fixture.model.script_answer("look back", "I looked.");
    fixture.append_settings("[serve]\ntoken = \"${TENANT_TOKEN}\"\n");
    fixture
}

/// A gateway on the store of the fixture, with the token of a tenant.
fn gateway(fixture: &Fixture, tenant: usize) -> HttpGateway {
    let mut command = fixture.home.command(&["serve", "--http", "127.0.0.1:0"]);
    command.env("TENANT_TOKEN", TOKENS[tenant]);
    let mut gateway = HttpGateway::spawn(&fixture.home, command);
    gateway.token = Some(TOKENS[tenant].to_owned());
    gateway
}

/// Posts a body, again as long as the store of a busy machine did not accept the run in time.
async fn post(gateway: &HttpGateway, path: &str, body: &Value) -> (u16, Value) {
    let url = gateway.url.replace("/mcp", path);
    let request = gateway.http.post(url).bearer_auth(gateway.token.as_ref().unwrap()).json(body);
    loop {
        let response = request.try_clone().unwrap().send().await.unwrap();
        if response.status() != 503 {
            return (response.status().as_u16(), response.json().await.unwrap());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

fn message(text: &str, conversation: Option<&str>) -> Value {
    let messages = json!([{"role": "user", "content": text}]);
    let mut body = json!({"model": "assistant", "messages": messages});
    if let Some(conversation) = conversation {
        body["conversation"] = json!(conversation);
    }
    body
}

/// Sends a message to `/v1` and returns what the model was sent for it: all messages of the request for a plan, and the last
/// one of the request for an answer, which contains the results.
async fn complete(
    fixture: &Fixture,
    gateway: &HttpGateway,
    text: &str,
    conversation: Option<&str>,
) -> (String, String) {
    let before = fixture.model.requests().len();
    let (status, answer) = post(gateway, "/v1/chat/completions", &message(text, conversation)).await;
    assert_eq!(status, 200, "{answer}");
    (fixture.model.requests()[before].to_string(), last_results(fixture))
}

/// The last message that the model was sent.
fn last_results(fixture: &Fixture) -> String {
    let requests = fixture.model.requests();
    let messages = requests.last().unwrap()["messages"].as_array().unwrap();
    messages.last().unwrap()["content"].as_str().unwrap().to_owned()
}

/// Whether the result of the history tool, as the model sees it, is exactly these messages: a table, or JSON if there is one.
fn recalls(results: &str, messages: &[(&str, &str)]) -> bool {
    let expected = match messages {
        [(role, text)] => json!({"messages": [{"role": role, "text": text}]}).to_string(),
        _ => {
            let rows: String = messages.iter().map(|(role, text)| format!("\n> {role} | {text}")).collect();
            format!("> role | text{rows}")
        }
    };
    results.trim_end().ends_with(&expected)
}

#[tokio::test]
async fn a_conversation_over_v1_outlives_the_gateway_and_is_recalled() {
    let fixture = fixture();
    let first = gateway(&fixture, 0);
    complete(&fixture, &first, "I am Ada", Some("names")).await;
    first.stop().await;
    let second = gateway(&fixture, 0);
    let (prompt, results) = complete(&fixture, &second, "look back", Some("names")).await;
    assert!(prompt.contains("I am Ada") && prompt.contains("Hello, Ada."), "{prompt}");
    assert!(prompt.contains(HISTORY_TOOL), "the tool is offered: {prompt}");
    let messages = [("user", "I am Ada"), ("assistant", "Hello, Ada.")];
    assert!(recalls(&results, &messages), "only what was said before: {results}");
    let (status, error) = post(&second, "/v1/chat/completions", &message("x", Some("a\nb"))).await;
    assert_eq!((status, error["error"]["param"].as_str()), (400, Some("conversation")), "{error}");
}

#[tokio::test]
async fn without_a_conversation_nothing_is_kept_and_the_tool_is_not_offered() {
    let fixture = fixture();
    fixture.model.script_direct_answer("look back", "I cannot.");
    let gateway = gateway(&fixture, 0);
    complete(&fixture, &gateway, "I am Ada", None).await;
    let (prompt, _) = complete(&fixture, &gateway, "look back", None).await;
    assert!(!prompt.contains("I am Ada") && !prompt.contains(HISTORY_TOOL), "{prompt}");
    let tools = gateway.send_request("", "tools/list", json!({})).await.to_string();
    assert!(tools.contains("get_time") && !tools.contains(HISTORY_TOOL), "{tools}");
    let output = fixture.run(&["ask", "look back"]);
    assert!(output.starts_with("I cannot."), "{output}");
    assert!(!fixture.model.requests().last().unwrap().to_string().contains(HISTORY_TOOL));
}

#[tokio::test]
async fn no_caller_reads_the_conversation_of_another() {
    let fixture = fixture();
    let (first, second) = (gateway(&fixture, 0), gateway(&fixture, 1));
    complete(&fixture, &first, "I am Ada", Some("names")).await;
    let (prompt, results) = complete(&fixture, &second, "look back", Some("names")).await;
    assert!(!prompt.contains("I am Ada"), "{prompt}");
    assert!(results.contains(r#"{"messages":[]}"#), "{results}");
    // An MCP client with the same token has conversations of its own, and so has every other client name.
    ask_agent(&first, "one", "I am Ada").await;
    for (client, is_remembered) in [("two", false), ("one", true)] {
        ask_agent(&first, client, "look back").await;
        let results = last_results(&fixture);
        assert_eq!(results.contains("> user | I am Ada"), is_remembered, "{client}: {results}");
    }
    // The user of this machine has the conversations of `toolyard chat`, which are apart from those of clients.
    let output = chat(&fixture, &["--conversation", "names"], "/history\n");
    assert!(!output.contains("Ada"), "{output}");
}

/// Asks the agent as an MCP client of this name, in the conversation `names`.
async fn ask_agent(gateway: &HttpGateway, client: &str, question: &str) {
    let arguments = json!({"question": question, "conversation": "names"});
    let mut params = json!({"name": "ask_agent", "arguments": arguments});
    params["_meta"] = modern_meta(client);
    loop {
        let answer = send(gateway.build_request("", "tools/call", &params)).await.body.to_string();
        if !answer.contains("the run was not started") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

#[tokio::test]
async fn a_run_and_a_completion_share_a_conversation() {
    let fixture = fixture();
    fixture.script_note();
    let gateway = gateway(&fixture, 0);
    let body = json!({"question": "note it", "conversation": "notes"});
    let (status, started) = post(&gateway, "/runs", &body).await;
    assert_eq!(status, 202, "{started}");
    let run = started["run"].as_str().unwrap();
    let show = || fixture.home.run(&["runs", "show", run]);
    assert!(wait_until(10_000, || show().contains("approve")), "{}", show());
    // The question is in the conversation at once, the answer as soon as there is one, whoever drives the run to its end.
    let (_, results) = complete(&fixture, &gateway, "look back", Some("notes")).await;
    assert!(recalls(&results, &[("user", "note it")]), "{results}");
    let output = fixture.run(&["runs", "approve", run, "--yes"]);
    assert!(output.starts_with("I wrote it down."), "{output}");
    let (_, results) = complete(&fixture, &gateway, "look back", Some("notes")).await;
    assert!(results.contains("> user | note it\n> assistant | I wrote it down."), "{results}");
    let shown = gateway.get(&format!("/runs/{run}"), gateway.token.as_deref()).await.1;
    assert!(shown.contains(r#""conversation":"notes""#), "{shown}");
}

#[tokio::test]
async fn limits_and_judge_of_an_agent_hold_over_v1_and_in_chat() {
    let fixture = fixture();
    let steps = json!([{"id": "sum", "tool_type": "calculate", "arguments": {"expression": "1+1"}}]);
    fixture.model.script_plan("add up", &steps);
    fixture.model.script_answer("add up", "It is 2.");
    // Without the judge, the plan and the answer are two requests to the model; with it, the answer is the third.
    fixture.append_settings("[agents.assistant]\njudge = true\nlimits = { model_calls = 2 }\n");
    let expected = "the run reached its limit of 2 model requests";
    let gateway = gateway(&fixture, 0);
    let (status, answer) = post(&gateway, "/v1/chat/completions", &message("add up", Some("sums"))).await;
    assert_eq!((status, &answer["choices"][0]["finish_reason"]), (200, &json!("length")), "{answer}");
    assert!(answer.to_string().contains(expected), "{answer}");
    let output = chat(&fixture, &["--conversation", "sums"], "add up\n");
    assert!(output.contains(expected), "{output}");
}
