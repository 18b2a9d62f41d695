//! OpenAI's chat completions, as raw HTTP.

use serde_json::{Value, json};

use crate::{Fixture, client::HttpGateway, test_home::wait_until};

/// A request for a completion.
fn request(hub: &HttpGateway, body: &Value) -> reqwest::RequestBuilder {
    let url = hub.url.replace("/mcp", "/v1/chat/completions");
    let request = hub.http.post(url).json(body);
    match &hub.token {
        Some(token) => request.bearer_auth(token),
        None => request,
    }
}

fn asks(text: &str, stream: bool) -> Value {
    json!({"model": "assistant", "stream": stream, "messages": [{"role": "user", "content": text}]})
}

async fn whole(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn an_answer_is_returned_at_once_or_streamed() {
    let fixture = Fixture::new();
    fixture.plans_to_note();
    fixture.set("[approvals]\nallow = [\"write_note\"]\n");
    let hub = HttpGateway::start(&fixture.home, &[]);
    let (status, answer) = whole(request(&hub, &asks("note it", false))).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["choices"][0]["message"]["content"], "I wrote it down.");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(answer["usage"]["prompt_tokens"], 200, "{answer}");

    let mut body = asks("note it", true);
    body["stream_options"] = json!({"include_usage": true});
    let response = request(&hub, &body).send().await.unwrap();
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
    assert_eq!(fixture.notes().len(), 2);
}

#[tokio::test]
async fn agents_are_listed_as_models() {
    let fixture = Fixture::new();
    fixture.set("[agents.clerk]\ndescription = \"Writes\"\n");
    let hub = HttpGateway::start(&fixture.home, &[]);
    let at =
        |path: &str| hub.http.get(hub.url.replace("/mcp", path)).bearer_auth(hub.token.as_ref().unwrap());
    let (_, list) = whole(at("/v1/models")).await;
    let names: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["clerk", "assistant"]);
    assert_eq!(whole(at("/v1/models/clerk")).await.0, 200);
    assert_eq!(whole(at("/v1/models/nobody")).await.0, 404);
    assert_eq!(whole(at("/v1/nothing")).await.0, 404);
}

#[tokio::test]
async fn errors_have_openais_format_and_are_not_retried() {
    let fixture = Fixture::new();
    let mut hub = HttpGateway::start(&fixture.home, &[]);
    let (status, error) =
        whole(request(&hub, &json!({"model": "nobody", "messages": [{"role": "user", "content": "x"}]})))
            .await;
    assert_eq!((status, error["error"]["code"].as_str()), (404, Some("model_not_found")), "{error}");
    let (status, error) = whole(request(&hub, &json!({"model": "assistant"}))).await;
    assert_eq!((status, error["error"]["param"].as_str()), (400, Some("messages")), "{error}");
    // The model does not know what to say.
    let response = request(&hub, &asks("what nobody knows", false)).send().await.unwrap();
    assert_eq!(response.headers()["x-should-retry"], "false");
    assert_eq!(response.status(), 422);
    let repeated = request(&hub, &asks("what nobody knows", false)).header("x-stainless-retry-count", "1");
    let (status, error) = whole(repeated).await;
    assert_eq!((status, error["error"]["code"].as_str()), (422, Some("already_started")), "{error}");
    hub.token = None;
    assert_eq!(whole(request(&hub, &asks("x", false))).await.0, 401);
    let page = request(&hub, &asks("x", false)).header("Origin", "https://evil.example");
    assert_eq!(whole(page).await.0, 403);
}

#[tokio::test]
async fn a_suspended_run_says_so_and_resumes_once_approved() {
    let fixture = Fixture::new();
    fixture.plans_to_note();
    let hub = HttpGateway::start(&fixture.home, &[]);
    let (status, answer) = whole(request(&hub, &asks("note it", false))).await;
    assert_eq!(status, 200, "{answer}");
    let run = answer["toolyard"]["run"].as_str().unwrap();
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(text.starts_with("Waiting for approval: ") && text.contains(run), "{text}");
    assert!(!text.contains("approve"), "a model may read it: {text}");
    assert_eq!(answer["toolyard"]["awaits_approval"], true);
    assert!(fixture.notes().is_empty());
    // What we said then is not taken for the agent's words, and the answer is once there is one.
    fixture.model.answers_at_once("and now", "Now what?");
    let next = json!({"model": "assistant", "messages": [
        {"role": "user", "content": "note it"},
        {"role": "assistant", "content": text},
        {"role": "user", "content": "and now?"},
    ]});
    for answered in [false, true] {
        assert_eq!(whole(request(&hub, &next)).await.0, 200);
        let told = fixture.model.requests().last().unwrap().to_string();
        assert!(told.contains("and now?") && !told.contains("Waiting for approval"), "{told}");
        assert_eq!(told.contains("I wrote it down."), answered, "{told}");
        if !answered {
            let seen = fixture.run(&["runs", "approve", run]);
            assert!(seen.starts_with("I wrote it down."), "{seen}");
        }
    }
    assert_eq!(fixture.notes().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disconnecting_cancels_the_run() {
    let fixture = Fixture::new();
    fixture
        .model
        .plans("slowly", &json!([{"id": "slow", "tool_type": "slow_note", "arguments": {"text": 1}}]));
    fixture.set("[approvals]\nallow = [\"slow_note\"]\n");
    let hub = HttpGateway::start(&fixture.home, &[]);
    for stream in [true, false] {
        let begun = fixture.home.path("begun");
        let _ = std::fs::remove_file(&begun);
        let sent = request(&hub, &asks("slowly", stream));
        let client = tokio::spawn(async move { sent.send().await.unwrap().text().await });
        while !begun.exists() {
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
