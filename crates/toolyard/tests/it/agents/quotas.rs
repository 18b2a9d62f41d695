//! Quotas hold at every door, together, and each door says when to come back.

use serde_json::{Value, json};

use super::Fixture;
use crate::client::{HttpGateway, StdioGateway, modern_params};

const HOURLY_NOTES: &str = "[[quotas]]\nname = \"notes\"\ntools = [\"write_note\"]\n\
                            calls = { limit = 3, window = \"1h\" }\n[approvals]\nallow = [\"write_note\"]\n";

fn fixture(settings: &str) -> Fixture {
    let fixture = Fixture::new();
    fixture.append_settings(settings);
    fixture
}

async fn http_call(gateway: &HttpGateway) -> (u16, Option<u64>, Value) {
    let url = gateway.url.replace("/mcp", "/api/v1/tools/write_note/call");
    let request = gateway.http.post(url).bearer_auth(gateway.token.as_ref().unwrap());
    let response = request.json(&json!({"arguments": {"text": "by HTTP"}})).send().await.unwrap();
    let retry_after = response.headers().get("retry-after");
    let retry_after = retry_after.map(|seconds| seconds.to_str().unwrap().parse().unwrap());
    (response.status().as_u16(), retry_after, response.json().await.unwrap())
}

#[tokio::test]
async fn all_doors_of_all_processes_share_one_quota_and_say_when_it_is_free_again() {
    let fixture = fixture(HOURLY_NOTES);
    fixture.model.script_plan(
        "note it",
        &json!([{"id": "write", "tool_type": "write_note", "arguments": {"text": "by an agent"}, "description": "note it down"}]),
    );
    fixture.model.script_answer("note it", "Noted.");
    let gateway = HttpGateway::start(&fixture.home, &[]);
    assert_eq!(http_call(&gateway).await.0, 200);
    let call = json!({"name": "write_note", "arguments": {"text": "by MCP"}});
    gateway.send_request("", "tools/call", call.clone()).await;
    // Another process with the same store.
    assert!(
        fixture
            .home
            .command(&["call", "--local", "write_note", r#"{"text":"by hand"}"#])
            .output()
            .unwrap()
            .status
            .success()
    );
    assert_eq!(fixture.notes().len(), 3);

    let (status, retry_after, error) = http_call(&gateway).await;
    assert_eq!((status, error["error"]["code"].as_str()), (429, Some("quota_exceeded")), "{error}");
    assert!(retry_after.is_some_and(|seconds| (3_000..=3_700).contains(&seconds)), "{retry_after:?}");
    let refused = gateway.send_request("", "tools/call", call.clone()).await;
    let result = &refused["result"];
    assert_eq!(result["isError"], true, "{refused}");
    let meta = &result["_meta"]["toolyard/error"];
    assert_eq!((&meta["kind"], &meta["retryable"]), (&json!("quota_exceeded"), &json!(true)), "{refused}");
    assert!(meta["retry_after_ms"].as_u64().is_some_and(|delay| delay > 3_000_000), "{refused}");
    let stdio = StdioGateway::new(&fixture.home, &[]).send_request("tools/call", modern_params(call));
    assert!(stdio.to_string().contains("quota `notes` is used up"), "{stdio}");
    let by_hand =
        fixture.home.command(&["call", "--local", "write_note", r#"{"text":"by hand"}"#]).output().unwrap();
    let text = String::from_utf8_lossy(&by_hand.stderr);
    assert!(
        !by_hand.status.success() && text.contains("quota `notes` is used up (3 calls per 3600s)"),
        "{text}"
    );
    let asked = fixture.home.command(&["ask", "note it"]).output().unwrap();
    let text = format!("{asked:?}");
    assert!(!asked.status.success() && text.contains("quota `notes` is used up"), "{text}");
    assert_eq!(fixture.notes().len(), 3, "nothing was called");

    let request = gateway.http.get(gateway.url.replace("/mcp", "/metrics"));
    let metrics =
        request.bearer_auth(gateway.token.as_ref().unwrap()).send().await.unwrap().text().await.unwrap();
    assert!(metrics.contains("toolyard_quota_refusals_total{quota=\"notes\"} 2"), "{metrics}");
    let listed = fixture.home.command(&["quotas", "--json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let budget = &listed[0];
    assert_eq!(
        (&budget["quota"], &budget["used"], &budget["limit"]),
        (&json!("notes"), &json!(3), &json!(3))
    );
    let audit = fixture.home.command(&["audit", "tail", "--json"]).output().unwrap();
    assert!(String::from_utf8_lossy(&audit.stdout).contains("quota_exceeded"));
}

#[tokio::test]
async fn a_run_is_not_started_when_the_tokens_are_used_up() {
    let quota = "[[quotas]]\nname = \"tokens\"\nper = [\"agent\"]\ntokens = { limit = 1, window = \"1h\" }\n";
    let fixture = fixture(quota);
    fixture.model.script_direct_answer("hello", "Hello.");
    let gateway = HttpGateway::start(&fixture.home, &[]);
    let post = |path: &str, body: Value| {
        let url = gateway.url.replace("/mcp", path);
        gateway.http.post(url).bearer_auth(gateway.token.as_ref().unwrap()).json(&body).send()
    };
    let chat = json!({"model": "assistant", "messages": [{"role": "user", "content": "hello"}]});
    // The first reply uses more than is left.
    let _ = post("/v1/chat/completions", chat.clone()).await.unwrap();
    let refused = post("/v1/chat/completions", chat).await.unwrap();
    assert_eq!(refused.status().as_u16(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    let error: Value = refused.json().await.unwrap();
    assert_eq!(error["error"]["code"], "quota_exceeded", "{error}");
    let refused = post("/api/v1/runs", json!({"question": "hello"})).await.unwrap();
    assert_eq!(refused.status().as_u16(), 429);
}
