//! What earlier calls taught is used where agents plan: success rates, arguments, past requests.

use serde_json::{Value, json};

use super::Fixture;
use crate::client::HttpGateway;

/// The system prompt of the last request for a plan.
fn last_prompt(fixture: &Fixture) -> String {
    let requests = fixture.model.requests();
    let plan = requests.iter().rev().find(|request| request.get("response_format").is_some()).unwrap();
    plan["messages"][0]["content"].as_str().unwrap().to_owned()
}

/// The lines of a tool in a prompt with signatures.
fn signature_of(prompt: &str, tool: &str) -> String {
    let lines = prompt.lines().skip_while(|line| !line.starts_with(&format!("- {tool}(")));
    let (first, rest) = (lines.clone().take(1), lines.skip(1).take_while(|line| line.starts_with("  ")));
    first.chain(rest).collect::<Vec<_>>().join("\n")
}

fn script_call(fixture: &Fixture, words: &str, tool: &str, arguments: &Value) {
    fixture.model.script_plan(words, &json!([{"id": "only", "tool_type": tool, "arguments": arguments}]));
    fixture.model.script_answer(words, "It is done.");
}

async fn complete(gateway: &HttpGateway, question: &str) -> Value {
    let url = gateway.url.replace("/mcp", "/v1/chat/completions");
    let body = json!({"model": "assistant", "messages": [{"role": "user", "content": question}]});
    let request = gateway.http.post(url).bearer_auth(gateway.token.as_ref().unwrap()).json(&body);
    request.send().await.unwrap().json().await.unwrap()
}

/// A skill program that fails while the file `broken` exists.
fn fixture_with_flaky_note() -> Fixture {
    let fixture = Fixture::new();
    fixture.append_settings("[approvals]\nallow = [\"*\"]\n");
    let body = r#"if [ -e "$HOME/broken" ]; then echo 'out of ink' >&2; exit 1; fi; echo '{"written":true}'"#;
    fixture.add_program("flaky_note", body);
    fixture
}

#[tokio::test]
async fn a_planner_learns_from_the_calls_of_its_own_user() {
    let fixture = fixture_with_flaky_note();
    script_call(&fixture, "note the milk", "flaky_note", &json!({"text": "milk"}));
    fixture.run(&["ask", "note the milk"]);
    fixture.home.write("broken", "");
    for _ in 0..5 {
        fixture.run(&["call", "flaky_note", "--args", r#"{"text":"bread"}"#]);
    }
    std::fs::remove_file(fixture.home.path("broken")).unwrap();
    // A secret is neither stored nor shown.
    let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    script_call(&fixture, "note the token", "flaky_note", &json!({"text": secret}));
    fixture.run(&["ask", "note the token"]);
    insta::assert_snapshot!(signature_of(&last_prompt(&fixture), "flaky_note"), @r#"
    - flaky_note(text: any)
      Write a note into the notebook
      Returns: {"written":true}
      Often fails: about 20 % of its calls succeed, for example with {"text": "milk"}
    "#);

    let shown = fixture.home.run(&["tools", "show", "flaky_note"]);
    let shown = shown.split_once("About ").unwrap().1;
    let (calls, rest) = shown.split_once("; median ").unwrap();
    assert_eq!(calls, "7 recent calls: 29 % succeeded; errors: failed");
    insta::assert_snapshot!(rest.split_once('\n').unwrap().1, @r#"
      Last successful arguments of an agent: {"text":"milk"}
      Results look like: {"written":true}
      Was used for:
        - note the token
        - note the milk
    "#);

    // Another user is told how often the tool fails, but not what the first one wrote.
    let gateway = HttpGateway::start(&fixture.home, &[]);
    complete(&gateway, "note the milk").await;
    let signature = signature_of(&last_prompt(&fixture), "flaky_note");
    assert!(signature.contains("Often fails") && !signature.contains("milk"), "{signature}");
    complete(&gateway, "now note the milk").await;
    let signature = signature_of(&last_prompt(&fixture), "flaky_note");
    assert!(signature.contains(r#"for example with {"text": "milk"}"#), "its own: {signature}");
}

#[tokio::test]
async fn past_requests_find_tools_for_agents_of_a_gateway() {
    let fixture = fixture_with_flaky_note();
    script_call(&fixture, "gumboots", "flaky_note", &json!({"text": "x"}));
    let gateway = HttpGateway::start(&fixture.home, &[]);
    complete(&gateway, "gumboots please").await;
    assert!(!last_prompt(&fixture).contains("flaky_note"), "no word of the request is about notes");
    complete(&gateway, "more gumboots please").await;
    assert!(last_prompt(&fixture).contains("flaky_note"), "the same process has learned it");
    gateway.stop().await;
    let restarted = HttpGateway::start(&fixture.home, &[]);
    complete(&restarted, "yellow gumboots").await;
    assert!(last_prompt(&fixture).contains("flaky_note"), "so has the next one");
}
