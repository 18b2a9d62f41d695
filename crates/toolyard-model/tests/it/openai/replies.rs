//! Replies in all the formats of compatible servers.

use toolyard_core::SecretText;
use toolyard_model::{FinishReason, Model as _, OpenAiModel, Prices, collect_reply};

use super::{
    config, request, send, send_with,
    server::{DONE, Server, head, response, stream, text_event, write},
};

#[tokio::test]
async fn a_reply_is_streamed() {
    let server = Server::start([stream(&(text_event("Hel") + &text_event("lo.") + DONE))]).await;
    let mut config = config(&server);
    config.api_key = Some(SecretText::new("secret-key"));
    config.headers = vec![("X-Team".into(), SecretText::new("blue"))];
    config.prices = Some(Prices { input: 1_000_000, cached: None, output: 3_000_000 });
    let model = OpenAiModel::new(config).unwrap();
    let mut events = 0;
    let reply = collect_reply(&model, &request(), |_| events += 1).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.finish_reason, events), ("Hello.", FinishReason::Stop, 4));
    assert_eq!((reply.usage.input, reply.usage.output, reply.usage.cost_micros), (9, 2, 15));
    let heads = server.heads();
    assert!(heads[0].starts_with("POST /v1/chat/completions "), "{heads:?}");
    let lower = heads[0].to_ascii_lowercase();
    assert!(lower.contains("authorization: bearer secret-key") && lower.contains("x-team: blue"), "{lower}");
    assert_eq!(server.requests()[0]["stream"], true);
    assert!(!format!("{model:?}").contains("secret-key"));
}

#[tokio::test]
async fn content_types_are_ignored() {
    let whole = r#"{"choices":[{"message":{"role":"assistant","content":"Hello."}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
    let events = text_event("Hello.") + DONE;
    let lines = "{\"message\":{\"content\":\"Hel\"},\"done\":false}\n{\"message\":{\"content\":\"lo.\"},\"done\":true,\"done_reason\":\"stop\"}\n";
    for (content_type, body) in [
        ("application/json", whole),
        ("text/event-stream", whole),
        ("text/html", whole),
        ("application/json", events.as_str()),
        ("application/octet-stream", events.as_str()),
        ("application/x-ndjson", lines),
    ] {
        let server = Server::start([response("200 OK", content_type, "", body)]).await;
        let reply = send(&server).await.unwrap();
        assert_eq!(
            (reply.text.as_str(), reply.finish_reason),
            ("Hello.", FinishReason::Stop),
            "{content_type} {body}"
        );
    }
}

#[tokio::test]
async fn a_stream_may_end_in_several_ways() {
    let finish = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    for end in [
        finish.to_owned(),
        "data: [DONE]\n\n".to_owned(),
        format!("{finish}data: [DONE]"),
        finish.trim_end().to_owned(),
    ] {
        let server = Server::start([stream(&(text_event("Hello.") + &end))]).await;
        let reply = send(&server).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.finish_reason), ("Hello.", FinishReason::Stop), "{end}");
    }
}

#[tokio::test]
async fn chunks_may_end_anywhere() {
    let text = text_event("你好，世界") + DONE;
    let mut steps = vec![head("200 OK", "text/event-stream", "")];
    steps.extend(text.as_bytes().chunks(1).map(|byte| super::server::Step::Write(byte.to_vec())));
    let server = Server::start([steps]).await;
    assert_eq!(send(&server).await.unwrap().text, "你好，世界");
}

#[tokio::test]
async fn rejected_fields_are_omitted_from_then_on() {
    let rejection = r#"{"error":{"message":"Unrecognized request argument supplied: stream_options"}}"#;
    let server = Server::start([
        response("400 Bad Request", "application/json", "", rejection),
        stream(&(text_event("Hello.") + DONE)),
    ])
    .await;
    let model = OpenAiModel::new(config(&server)).unwrap();
    for _ in 0..2 {
        assert_eq!(collect_reply(&model, &request(), |_| {}).await.unwrap().text, "Hello.");
    }
    let had_stream_options: Vec<bool> =
        server.requests().iter().map(|body| body.get("stream_options").is_some()).collect();
    assert_eq!(had_stream_options, [true, false, false]);
}

#[tokio::test]
async fn model_lists_have_many_formats() {
    for body in [
        r#"{"object":"list","data":[{"id":"a"},{"id":"b"}]}"#,
        r#"{"models":[{"name":"a","model":"a"},{"name":"b"}]}"#,
        r#"["a","b"]"#,
    ] {
        let server = Server::start([response("200 OK", "application/json", "", body)]).await;
        let model = OpenAiModel::new(config(&server)).unwrap();
        assert_eq!(model.models().await.unwrap(), ["a", "b"], "{body}");
        assert!(server.heads()[0].starts_with("GET /v1/models "));
        assert_eq!(model.name(), "local");
    }
}

#[tokio::test]
async fn embeddings_are_in_the_order_of_their_texts() {
    let body = r#"{"data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[0.5,-2]}],"model":"x"}"#;
    let server = Server::start([response("200 OK", "application/json", "", body)]).await;
    let model = OpenAiModel::new(config(&server)).unwrap();
    let texts = ["mail".to_owned(), "files".to_owned()];
    assert_eq!(model.embeddings(&texts).await.unwrap(), [[0.5, -2.0], [0.0, 1.0]]);
    assert!(server.heads()[0].starts_with("POST /v1/embeddings "));
    assert_eq!(server.requests(), [serde_json::json!({"model": "qwen", "input": ["mail", "files"]})]);
}

#[tokio::test]
async fn a_server_without_embeddings_is_reported() {
    for (status, body) in [("404 Not Found", "no such path"), ("200 OK", r#"{"data":[{"id":"a"}]}"#)] {
        let server = Server::start([response(status, "application/json", "", body)]).await;
        let model = OpenAiModel::new(config(&server)).unwrap();
        let error = model.embeddings(&["mail".to_owned()]).await.unwrap_err();
        assert_eq!(error.model, "local", "{error}");
    }
}

#[tokio::test]
async fn dropping_the_stream_ends_the_request() {
    use futures_util::StreamExt as _;
    let server = Server::start([vec![
        head("200 OK", "text/event-stream", ""),
        write(text_event("Hel")),
        super::server::Step::Hang,
    ]])
    .await;
    let model = OpenAiModel::new(config(&server)).unwrap();
    let request = request();
    let mut events = model.generate(&request);
    events.next().await.unwrap().unwrap();
    drop(events);
    for _ in 0..200 {
        if server.disconnects() == 1 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the connection is still open");
}

#[tokio::test]
async fn invalid_settings_are_reported_before_any_request() {
    let mut invalid = config(&Server::start([Vec::new()]).await);
    invalid.base_url = "ftp://x".into();
    let error = OpenAiModel::new(invalid.clone()).unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("use a URL such as http://127.0.0.1:8080/v1"));
    invalid.base_url = "http://x".into();
    invalid.api_key = Some(SecretText::new("line\nbreak"));
    let error = error_of(invalid);
    assert!(error.contains("invalid characters") && !error.contains("break"), "{error}");
}

fn error_of(config: toolyard_model::ModelServerConfig) -> String {
    format!("{:?}", OpenAiModel::new(config).unwrap_err())
}

#[tokio::test]
async fn cost_follows_the_configured_prices() {
    let usage = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":10,\"prompt_tokens_details\":{\"cached_tokens\":900}}}\n\ndata: [DONE]\n\n";
    let server = Server::start([stream(usage)]).await;
    let mut config = config(&server);
    config.prices = Some(Prices { input: 2_000_000, cached: Some(200_000), output: 8_000_000 });
    let usage = send_with(config).await.unwrap().usage;
    // 100 at 2, 900 at 0.2 and 10 at 8 per million tokens.
    assert_eq!((usage.cached, usage.cost_micros), (900, 200 + 180 + 80));
}
