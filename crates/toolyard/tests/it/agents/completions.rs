//! OpenAI's chat completions, as raw HTTP.

use serde_json::{Value, json};

use super::Fixture;
use crate::{client::HttpGateway, test_home::wait_until};

/// A request for a completion.
fn request(gateway: &HttpGateway, body: &Value) -> reqwest::RequestBuilder {
    let url = gateway.url.replace("/mcp", "/v1/chat/completions");
    let request = gateway.http.post(url).json(body);
    match &gateway.token {
        Some(token) => request.bearer_auth(token),
        None => request,
    }
}

fn completion(text: &str) -> Value {
    completion_with_stream(text, false)
}

fn completion_with_stream(text: &str, stream: bool) -> Value {
    json!({"model": "assistant", "stream": stream, "messages": [{"role": "user", "content": text}]})
}

async fn send_json(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn an_answer_is_returned_at_once_or_streamed() {
    let fixture = Fixture::new();
    fixture.script_note();
    fixture.append_settings("[approvals]\nallow = [\"write_note\"]\n");
    let gateway = HttpGateway::start(&fixture.home, &[]);
    let (status, answer) = send_json(request(&gateway, &completion("note it"))).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["choices"][0]["message"]["content"], "I wrote it down.");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(answer["usage"]["prompt_tokens"], 200, "{answer}");

    let mut body = completion_with_stream("note it", true);
    body["stream_options"] = json!({"include_usage": true});
    let response = request(&gateway, &body).send().await.unwrap();
    assert_eq!(response.headers().get_all("content-type").iter().count(), 1);
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream"));
    let text = response.text().await.unwrap();
    let data: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert_eq!(data.last(), Some(&"[DONE]"), "{text}");
    let chunks: Vec<Value> = data.iter().filter_map(|data| serde_json::from_str(data).ok()).collect();
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    let content = |chunk: &Value| chunk["choices"][0]["delta"]["content"].as_str().unwrap_or("").to_owned();
    assert_eq!(chunks.iter().map(content).collect::<String>(), "I wrote it down.");
    assert!(chunks.iter().filter(|chunk| !content(chunk).is_empty()).count() > 1, "in pieces: {text}");
    assert!(text.contains("reasoning_content") && text.contains("write: done"), "{text}");
    assert_eq!(chunks.last().unwrap()["usage"]["total_tokens"], 240, "{text}");
    let ending = chunks.iter().find(|chunk| chunk["choices"][0]["finish_reason"] == "stop").unwrap();
    assert_eq!(ending["toolyard"]["partial"], false, "{ending}");
    assert_eq!(ending["toolyard"]["awaits_approval"], false, "{ending}");
    assert_eq!(fixture.notes().len(), 2);
}

#[tokio::test]
async fn agents_are_listed_as_models() {
    let fixture = Fixture::new();
    fixture.append_settings("[agents.clerk]\ndescription = \"Writes\"\n");
    let gateway = HttpGateway::start(&fixture.home, &[]);
    let get = |path: &str| {
        gateway.http.get(gateway.url.replace("/mcp", path)).bearer_auth(gateway.token.as_ref().unwrap())
    };
    let (_, list) = send_json(get("/v1/models")).await;
    let tool_names: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(tool_names, ["clerk", "assistant"]);
    assert_eq!(send_json(get("/v1/models/clerk")).await.0, 200);
    assert_eq!(send_json(get("/v1/models/nobody")).await.0, 404);
    assert_eq!(send_json(get("/v1/nothing")).await.0, 404);
}

#[tokio::test]
async fn errors_have_openais_format_and_ask_not_to_be_retried() {
    let fixture = Fixture::new();
    let mut gateway = HttpGateway::start(&fixture.home, &[]);
    let (status, error) = send_json(request(
        &gateway,
        &json!({"model": "nobody", "messages": [{"role": "user", "content": "x"}]}),
    ))
    .await;
    assert_eq!((status, error["error"]["code"].as_str()), (404, Some("model_not_found")), "{error}");
    let (status, error) = send_json(request(&gateway, &json!({"model": "assistant"}))).await;
    assert_eq!((status, error["error"]["param"].as_str()), (400, Some("messages")), "{error}");
    // No rule of the scripted model fits, so the run fails.
    let response = request(&gateway, &completion("what nobody knows")).send().await.unwrap();
    assert_eq!(response.headers()["x-should-retry"], "false");
    assert_eq!(response.status(), 422);
    let repeated = request(&gateway, &completion("what nobody knows")).header("x-stainless-retry-count", "1");
    let (status, error) = send_json(repeated).await;
    assert_eq!((status, error["error"]["code"].as_str()), (422, Some("already_started")), "{error}");
    gateway.token = None;
    assert_eq!(send_json(request(&gateway, &completion("x"))).await.0, 401);
    let cross_origin = request(&gateway, &completion("x")).header("Origin", "https://evil.example");
    assert_eq!(send_json(cross_origin).await.0, 403);
}

#[tokio::test]
async fn hints_for_the_operator_are_logged_and_not_sent_to_clients() {
    let fixture = Fixture::new();
    let settings = "[models.local]\nurl = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n\
                    [models.keyless]\nurl = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\nkey = \"${UNSET_KEY}\"\n\
                    [agents.clerk]\nmodel = \"keyless\"\n[agents.assistant]\nmodel = \"local\"\n";
    std::fs::write(fixture.home.path("config/toolyard/toolyard.toml"), settings).unwrap();
    let gateway = HttpGateway::start(&fixture.home, &[]);
    let (status, error) = send_json(request(&gateway, &completion("hello"))).await;
    assert_eq!((status, error["error"]["code"].as_str()), (503, Some("model_unavailable")), "{error}");
    assert!(!error.to_string().contains("check that a server is running"), "{error}");
    let mut body = completion("hello");
    body["model"] = json!("clerk");
    let (status, error) = send_json(request(&gateway, &body)).await;
    assert_eq!((status, error["error"]["code"].as_str()), (422, Some("agent_unavailable")), "{error}");
    assert_eq!(error["error"]["message"], "the model of this agent is not available");
    let log = gateway.stop().await;
    assert!(log.contains("check that a server is running") && log.contains("UNSET_KEY"), "{log}");
}

#[tokio::test]
async fn an_agent_without_a_default_model_says_what_the_operator_sets() {
    let fixture = Fixture::new();
    let settings = ["one", "two"]
        .map(|name| format!("[models.{name}]\nurl = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n"));
    std::fs::write(fixture.home.path("config/toolyard/toolyard.toml"), settings.concat()).unwrap();
    let gateway = HttpGateway::start(&fixture.home, &[]);
    let (status, error) = send_json(request(&gateway, &completion("hello"))).await;
    assert_eq!((status, error["error"]["code"].as_str()), (422, Some("agent_unavailable")), "{error}");
    assert!(error["error"]["hint"].as_str().unwrap().contains("`default_model`"), "{error}");
    let params = json!({"name": "ask_agent", "arguments": {"question": "hello"}});
    let result = gateway.send_request("", "tools/call", params).await["result"].clone();
    assert_eq!(result["isError"], true, "{result}");
    assert!(result["content"][0]["text"].as_str().unwrap().contains("`default_model`"), "{result}");
}

#[tokio::test]
async fn a_suspended_run_says_so_and_resumes_once_approved() {
    let fixture = Fixture::new();
    fixture.script_note();
    let gateway = HttpGateway::start(&fixture.home, &[]);
    let (status, answer) = send_json(request(&gateway, &completion("note it"))).await;
    assert_eq!(status, 200, "{answer}");
    let run = answer["toolyard"]["run"].as_str().unwrap();
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(text.starts_with("Waiting for approval: ") && text.contains(run), "{text}");
    assert!(!text.contains("approve"), "a model that reads this must not learn how to approve: {text}");
    assert_eq!(answer["toolyard"]["awaits_approval"], true);
    assert!(fixture.notes().is_empty());
    // The note about the approval is not sent to the model as a message of the agent; the answer is, once there is one.
    fixture.model.script_direct_answer("and now", "Now what?");
    let next = json!({"model": "assistant", "messages": [
        {"role": "user", "content": "note it"},
        {"role": "assistant", "content": text},
        {"role": "user", "content": "and now?"},
    ]});
    for is_answered in [false, true] {
        assert_eq!(send_json(request(&gateway, &next)).await.0, 200);
        let last_request = fixture.model.requests().last().unwrap().to_string();
        assert!(
            last_request.contains("and now?") && !last_request.contains("Waiting for approval"),
            "{last_request}"
        );
        assert_eq!(last_request.contains("I wrote it down."), is_answered, "{last_request}");
        if !is_answered {
            let output = fixture.run(&["runs", "approve", run, "--yes"]);
            assert!(output.starts_with("I wrote it down."), "{output}");
        }
    }
    assert_eq!(fixture.notes().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disconnecting_cancels_the_run() {
    let fixture = Fixture::new();
    fixture
        .model
        .script_plan("slowly", &json!([{"id": "slow", "tool_type": "slow_note", "arguments": {"text": 1}}]));
    fixture.append_settings("[approvals]\nallow = [\"slow_note\"]\n");
    let gateway = HttpGateway::start(&fixture.home, &[]);
    for stream in [true, false] {
        let call_started = fixture.home.path("call_started");
        let _ = std::fs::remove_file(&call_started);
        let request = request(&gateway, &completion_with_stream("slowly", stream));
        let client = tokio::spawn(async move { request.send().await.unwrap().text().await });
        while !call_started.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        client.abort();
        let run = fixture.last_run();
        let is_cancelled = || fixture.home.run(&["runs", "show", &run]).contains("cancelled");
        assert!(
            wait_until(10_000, is_cancelled),
            "stream: {stream}: {}",
            fixture.home.run(&["runs", "show", &run])
        );
    }
}

#[tokio::test]
async fn refusals_before_a_handler_have_openais_format_too() {
    let fixture = Fixture::new();
    let gateway = HttpGateway::start(&fixture.home, &[]);
    let url = gateway.url.replace("/mcp", "/v1/chat/completions");
    let (status, error) = send_json(gateway.http.post(&url).json(&completion("hello"))).await;
    assert_eq!((status, &error["error"]["code"]), (401, &json!("invalid_api_key")), "{error}");
    let (status, error) = send_json(gateway.http.post(&url).header("Host", "evil.example").body("{}")).await;
    assert_eq!((status, &error["error"]["code"]), (403, &json!("forbidden")), "{error}");
    let long = "x".repeat(40 << 20);
    let (status, error) = send_json(request(&gateway, &completion(&long))).await;
    assert_eq!((status, &error["error"]["code"]), (413, &json!("request_too_large")), "{error}");
}

#[tokio::test]
async fn a_limit_of_tokens_shortens_the_answer() {
    let fixture = Fixture::new();
    fixture.script_note();
    fixture.append_settings("[approvals]\nallow = [\"write_note\"]\n");
    let gateway = HttpGateway::start(&fixture.home, &[]);
    let mut body = completion("note it");
    body["max_tokens"] = json!(2);
    body["temperature"] = json!(0.5);
    let (status, answer) = send_json(request(&gateway, &body)).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["choices"][0]["message"]["content"], "I wrote");
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    let requests = fixture.model.requests();
    assert_eq!(requests.last().unwrap()["temperature"], 0.5, "of the answer: {requests:?}");
    assert_eq!(requests.first().unwrap()["temperature"], 0.0, "of the plan: {requests:?}");
    body["stream"] = json!(true);
    let text = request(&gateway, &body).send().await.unwrap().text().await.unwrap();
    let chunks =
        text.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    let chunks: Vec<Value> = chunks.collect();
    let content = |chunk: &Value| chunk["choices"][0]["delta"]["content"].as_str().unwrap_or("").to_owned();
    assert_eq!(chunks.iter().map(content).collect::<String>(), "I wrote", "{text}");
    assert!(text.contains("\"finish_reason\":\"length\""), "{text}");
    body["tools"] = json!([{"type": "function", "function": {"name": "x"}}]);
    let (status, error) = send_json(request(&gateway, &body)).await;
    assert_eq!((status, &error["error"]["param"]), (400, &json!("tools")), "{error}");
}
