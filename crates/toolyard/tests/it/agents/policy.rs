//! Policies hold at every entry point: what one entry point refuses, no other entry point lets through.

use serde_json::{Value, json};

use super::Fixture;
use crate::client::{HttpGateway, StdioGateway, modern_params, send, tool_names};

const POLICIES: &str = r#"
@id("no-notes") @reason("notes are closed")
forbid (principal, action, resource)
when { resource.name == "write_note" && context.arguments has text && !(context.arguments.text like "draft*") };

@id("no-slow-notes")
forbid (principal, action, resource) when { resource.name == "slow_note" };
"#;

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.home.write("config/toolyard/notes.cedar", POLICIES);
    fixture.append_settings("[policy]\nfiles = [\"notes.cedar\"]\n[approvals]\nallow = [\"write_note\"]\n[serve.profiles.found]\nsurface = \"search\"\n[serve.profiles.listed]\nsurface = \"full\"\n");
    fixture
}

/// A plan that writes this text.
fn script_plan(fixture: &Fixture, question: &str, text: &str) {
    fixture.model.script_plan(
        question,
        &json!([{"id": "write", "tool_type": "write_note", "arguments": {"text": text}, "description": "note it down"}]),
    );
    fixture.model.script_answer(question, "That is all.");
}

/// The answer of one entry point to a call of `write_note` with this text, or to a question that leads to one.
async fn call_through(entry_point: &str, fixture: &Fixture, gateway: &HttpGateway, text: &str) -> Value {
    let arguments = json!({"text": text});
    let question = if text.starts_with("draft") { "write the draft" } else { "write the secret" };
    let mcp = |path: &'static str, params: Value| gateway.send_request(path, "tools/call", params);
    match entry_point {
        "MCP, full surface" => mcp("/listed", json!({"name": "write_note", "arguments": arguments})).await,
        "MCP, search surface" => {
            let inner = json!({"name": "write_note", "arguments": arguments});
            mcp("/found", json!({"name": "call_tool", "arguments": inner})).await
        }
        "MCP on stdio" => {
            let mut stdio = StdioGateway::new(&fixture.home, &[]);
            let params = modern_params(json!({"name": "write_note", "arguments": arguments}));
            stdio.send_request("tools/call", params)
        }
        "HTTP tool call" => {
            let url = gateway.url.replace("/mcp", "/api/v1/tools/write_note/call");
            let request = gateway.http.post(url).bearer_auth(gateway.token.as_ref().unwrap());
            request.json(&json!({"arguments": arguments})).send().await.unwrap().json().await.unwrap()
        }
        "toolyard call" => {
            let output =
                fixture.home.command(&["call", "write_note", &arguments.to_string()]).output().unwrap();
            json!(format!("{output:?}"))
        }
        "toolyard ask" => json!(format!("{:?}", fixture.home.command(&["ask", question]).output().unwrap())),
        "ask_agent" => mcp("", json!({"name": "ask_agent", "arguments": {"question": question}})).await,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_denied_call_is_denied_at_every_entry_point_and_an_allowed_one_passes() {
    let fixture = fixture();
    script_plan(&fixture, "write the secret", "secret");
    script_plan(&fixture, "write the draft", "draft");
    let gateway = HttpGateway::start(&fixture.home, &[]);
    let entry_points = [
        "MCP, full surface",
        "MCP, search surface",
        "MCP on stdio",
        "HTTP tool call",
        "toolyard call",
        "toolyard ask",
        "ask_agent",
    ];
    for (number, entry_point) in entry_points.into_iter().enumerate() {
        let denied = call_through(entry_point, &fixture, &gateway, "secret").await;
        assert_eq!(fixture.notes().len(), number, "{entry_point} let the call through: {denied}");
        if !entry_point.contains("ask") {
            assert!(denied.to_string().contains("notes are closed"), "{entry_point}: {denied}");
        }
        let allowed = call_through(entry_point, &fixture, &gateway, "draft").await;
        assert_eq!(fixture.notes().len(), number + 1, "{entry_point} refused an allowed call: {allowed}");
    }
}

#[tokio::test]
async fn only_tools_that_the_caller_may_call_are_listed_found_and_described() {
    let fixture = fixture();
    let gateway = HttpGateway::start(&fixture.home, &[]);
    let listed = gateway.send_request("/listed", "tools/list", json!({})).await;
    let names = tool_names(&listed);
    assert!(names.contains(&"write_note"), "some arguments are allowed: {names:?}");
    assert!(!names.contains(&"slow_note"), "{names:?}");
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let found = call("search_tools", json!({"query": "write a note into the notebook"}));
    let found = gateway.send_request("/found", "tools/call", found).await.to_string();
    assert!(found.contains("write_note(") && !found.contains("slow_note"), "{found}");
    let described = call("describe_tool", json!({"name": "slow_note"}));
    let described = gateway.send_request("/found", "tools/call", described).await.to_string();
    assert!(!described.contains("inputSchema"), "{described}");
    let similar = call("describe_tool", json!({"name": "slow_notes"}));
    let similar = gateway.send_request("/found", "tools/call", similar).await.to_string();
    assert!(similar.contains("does not exist") && !similar.contains("did you mean slow_note"), "{similar}");
    let called =
        gateway.send_request("/listed", "tools/call", call("slow_notes", json!({}))).await.to_string();
    assert!(called.contains("does not exist") && !called.contains("`slow_note`"), "{called}");
    let described = send(gateway.build_request(
        "/listed",
        "tools/describe",
        &modern_params(json!({"name": "slow_note"})),
    ));
    let described = described.await.body.to_string();
    assert!(described.contains("does not exist") && !described.contains("inputSchema"), "{described}");
    let described = gateway.send_request("/listed", "tools/describe", json!({"name": "write_note"})).await;
    assert_eq!(described["result"]["tool"]["name"], "write_note", "{described}");
}

/// Adds a caller with an API key; returns the key.
fn add_caller(fixture: &Fixture, name: &str) -> String {
    let added = fixture.home.command(&["--json", "callers", "add", name]).output().unwrap();
    let added: Value = serde_json::from_slice(&added.stdout).unwrap();
    added["api_key"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_http_api_shows_callers_the_tools_that_they_may_call() {
    let fixture = fixture();
    fixture.home.write(
        "config/toolyard/notes.cedar",
        r#"forbid (principal == Caller::"toolyard:api-key#eve", action, resource) when { resource.name == "write_note" };"#,
    );
    let gateway = HttpGateway::start(&fixture.home, &[]);
    let (ada, eve) = (add_caller(&fixture, "ada"), add_caller(&fixture, "eve"));
    let get = async |path: &str, key: &str| {
        let (status, body) = gateway.get(path, Some(key)).await;
        (status, body.to_string())
    };
    let token = gateway.token.clone().unwrap();
    for (key, is_shown) in [(&ada, true), (&token, true), (&eve, false)] {
        for path in
            ["/api/v1/tools", "/api/v1/tools?query=write%20a%20note", "/api/v1/tools?source=skill:notebook"]
        {
            let (status, body) = get(path, key).await;
            assert_eq!((status, body.contains("write_note")), (200, is_shown), "{path}: {body}");
            assert!(body.contains("slow_note"), "{path}: {body}");
        }
        for path in ["/api/v1/tools/write_note", "/api/v1/tools/write_note?source=skill:notebook"] {
            let (status, body) = get(path, key).await;
            assert_eq!(status, if is_shown { 200 } else { 404 }, "{path}: {body}");
        }
    }
    gateway
        .send_request("", "tools/call", json!({"name": "calculate", "arguments": {"expression": "6*7"}}))
        .await;
    let (_, of_all) = get("/api/v1/tools/calculate", &ada).await;
    assert!(of_all.contains("\"statistics\":null"), "how often others call a tool: {of_all}");
}

#[tokio::test]
async fn a_planner_is_offered_only_tools_that_the_caller_may_call() {
    let fixture = fixture();
    fixture.home.write(
        "config/toolyard/notes.cedar",
        r#"forbid (principal == Caller::"toolyard:api-key#eve", action, resource) when { resource.name == "write_note" };"#,
    );
    script_plan(&fixture, "write the draft", "draft");
    let gateway = HttpGateway::start(&fixture.home, &[]);
    // A gateway reads callers at most once a second.
    let keys = ["ada", "eve"].map(|name| add_caller(&fixture, name));
    for (name, key, is_offered) in [("ada", &keys[0], true), ("eve", &keys[1], false)] {
        let url = gateway.url.replace("/mcp", "/v1/chat/completions");
        let messages = json!([{"role": "user", "content": "write the draft into the notebook"}]);
        let request = gateway.http.post(url).bearer_auth(key);
        let answer = request.json(&json!({"model": "assistant", "messages": messages})).send().await.unwrap();
        // The plan that the model makes in any case has a tool that does not exist for eve.
        assert_eq!(answer.status(), if is_offered { 200 } else { 422 }, "{name}");
        let requests = fixture.model.requests();
        let prompt = requests.iter().rev().find(|request| request.get("response_format").is_some()).unwrap();
        let prompt = prompt.to_string();
        assert_eq!(prompt.contains("- write_note("), is_offered, "{name}: {prompt}");
        assert!(prompt.contains("- slow_note("), "{name}: {prompt}");
    }
}

#[tokio::test]
async fn policies_are_reloaded_and_invalid_ones_leave_the_previous_in_effect() {
    let fixture = fixture();
    let gateway = HttpGateway::start(&fixture.home, &[]);
    let call = || call_through("HTTP tool call", &fixture, &gateway, "secret");
    assert!(call().await.to_string().contains("notes are closed"));
    fixture.home.write(
        "config/toolyard/notes.cedar",
        "forbid (principal, action, resource) when { resource.nam == \"x\" };",
    );
    gateway.hang_up("nam").await;
    assert!(call().await.to_string().contains("notes are closed"));
    fixture.home.write("config/toolyard/notes.cedar", "permit (principal, action, resource);");
    gateway.hang_up("settings reloaded").await;
    call().await;
    assert_eq!(fixture.notes().len(), 1);
}

#[test]
fn a_gateway_with_invalid_policies_does_not_start() {
    let fixture = fixture();
    fixture.home.write("config/toolyard/notes.cedar", "forbid (principal, action, resource) when { oops };");
    let output = fixture.home.command(&["call", "calculate", "{\"expression\":\"1\"}"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("notes.cedar:1"), "{stderr}");
    assert!(stderr.contains("hint: check them: toolyard policy check"), "{stderr}");
}

#[test]
fn policies_are_checked_at_the_command_line() {
    let fixture = fixture();
    let run = |args: &[&str]| {
        let output = fixture.home.command(args).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, checked) = run(&["policy", "check"]);
    assert_eq!((code, checked.trim()), (0, "2 policies in 1 file, all valid"));
    let file = fixture.home.path("bad.cedar");
    std::fs::write(
        &file,
        "\n@id(\"x\")\nforbid (principal, action, resource)\nwhen { resource.nam == \"x\" };",
    )
    .unwrap();
    let (code, checked) = run(&["policy", "check", file.to_str().unwrap(), "--json"]);
    let problems: Value = serde_json::from_str(&checked).unwrap();
    assert_eq!(
        (code, &problems["problems"][0]["line"], &problems["problems"][0]["policy"]),
        (1, &json!(4), &json!("x"))
    );
}
