//! A server that repeats what it knows gets none of it to callers.

use serde_json::{Value, json};
use tokio::sync::Notify;
use toolyard_core::{CallInputError, CallInputRequest, CallProgress, Caller};

use super::*;
use crate::{
    ConnectOptions, ConnectTarget, HttpTarget, ToolCall,
    config::HttpKind,
    connect,
    transport::http::test_server::{ReceivedRequest, Reply, TestServer},
};

const SECRET: &str = "zebra-42-crossing";

fn secrets() -> ServerSecrets {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    ServerSecrets::new(vec![
        pair("API_KEY", SECRET),
        pair("MODE", "production"),
        pair("DATA", "/srv/data0123456789abcdef"),
    ])
}

#[tokio::test]
async fn secrets_are_redacted_in_small_and_large_results() {
    for length in [1, MAX_INLINE_BYTES] {
        let result = json!({"text": format!("{}{SECRET}", "x".repeat(length))}).into();
        let redacted = secrets().redact_result(result).await;
        assert!(redacted.get().ends_with("x[redacted:environment]\"}"), "{length}");
    }
}

#[tokio::test]
async fn ordinary_settings_and_paths_stay_readable() {
    let result = RawJson::from(json!({"text": "production in /srv/data0123456789abcdef"}));
    assert_eq!(secrets().redact_result(result.clone()).await, result);
    assert!(ServerSecrets::new(vec![("MODE".to_owned(), "production".to_owned())]).values().is_none());
}

/// A stored secret may look like an ordinary word or a path.
#[tokio::test]
async fn stored_secrets_are_redacted_whatever_they_look_like() {
    let words = ["production", "/srv/data0123456789abcdef"].map(str::to_owned);
    let secrets = ServerSecrets::new(Vec::new()).with_secrets(words.to_vec());
    let redacted = secrets.redact(words.join(" in "));
    assert_eq!(redacted, "[redacted:environment] in [redacted:environment]");
}

#[tokio::test]
async fn the_server_gets_its_state_back_unchanged() {
    let result = json!({"inputRequests": {"a": {"params": {"message": SECRET}}}, "requestState": SECRET});
    let redacted = secrets().redact_result(result.into()).await.to_value();
    assert_eq!(redacted["inputRequests"]["a"]["params"]["message"], "[redacted:environment]");
    assert_eq!(redacted["requestState"], SECRET);
}

#[test]
fn secrets_are_redacted_in_the_message_and_data_of_an_error() {
    let echo = format!("you sent {SECRET}");
    let error = RpcError { code: -1, message: echo.clone(), data: Some(json!([echo]).into()) };
    let RequestError::Rpc(error) = secrets().redact_error(RequestError::Rpc(error)) else { panic!() };
    assert_eq!(error.message, "you sent [redacted:environment]");
    assert_eq!(error.data.unwrap().get(), r#"["you sent [redacted:environment]"]"#);
}

#[test]
fn tokens_are_secrets_as_soon_as_they_are_sent() {
    let secrets = ServerSecrets::default();
    assert!(secrets.values().is_none());
    for number in 0..=MAX_TOKENS {
        secrets.add_token(&SecretHeader::bearer(&format!("token-{number}")).unwrap());
        let echo = format!("you sent token-{number}");
        assert_eq!(secrets.redact(echo), "you sent [redacted:environment]");
    }
    assert_eq!(secrets.redact("token-1, token-0".to_owned()), "[redacted:environment], token-0");
    assert_eq!(format!("{secrets:?}"), "ServerSecrets(…)");
}

#[test]
fn values_of_the_embedder_are_secrets_whatever_they_look_like() {
    let secrets = ServerSecrets::default().with_secrets(vec!["plain words".to_owned()]);
    assert_eq!(secrets.redact("the plain words".to_owned()), "the [redacted:environment]");
}

/// The only token that [`TestAuthorizer`] has.
const TOKEN: &str = "opaque-access-token";

struct TestAuthorizer;

impl Authorizer for TestAuthorizer {
    fn token(&self) -> BoxFuture<'_, Option<SecretHeader>> {
        Box::pin(async { SecretHeader::bearer(TOKEN) })
    }

    fn handle_challenge<'a>(
        &'a self,
        _: Option<&'a SecretHeader>,
        _: u16,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<bool, ChallengeError>> {
        Box::pin(async { Ok(false) })
    }
}

/// Keeps every text that it gets.
#[derive(Debug, Default)]
struct TestCaller {
    received: Mutex<Vec<String>>,
}

impl TestCaller {
    fn keep(&self, kind: &str, text: &str) {
        self.received.lock().push(format!("{kind} {text}"));
    }
}

impl Caller for TestCaller {
    fn capabilities(&self) -> RawJson {
        json!({"elicitation": {"form": {}}}).into()
    }

    fn session_id(&self) -> u64 {
        1
    }

    fn wants_progress(&self) -> bool {
        true
    }

    fn progress(&self, progress: &CallProgress) {
        self.keep("progress", progress.message.as_deref().unwrap_or_default());
    }

    fn log(&self, message: &RawJson) {
        self.keep("log", message.get());
    }

    fn request_input<'a>(
        &'a self,
        requests: &'a [CallInputRequest],
    ) -> BoxFuture<'a, Result<Vec<RawJson>, CallInputError>> {
        self.keep("elicitation", requests[0].params.as_ref().unwrap().get());
        Box::pin(async { Ok(vec![json!({"action": "decline"}).into()]) })
    }
}

/// Responds to a legacy request with everything that it was sent, on every path.
async fn echo(request: ReceivedRequest, mut reply: Reply, answered: Arc<Notify>) -> Option<Reply> {
    let body = request.json();
    let known =
        format!("{} {}", request.header("authorization").unwrap(), request.header("x-api-key").unwrap());
    let message = |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
    match body["method"].as_str() {
        Some("initialize") => {
            let capabilities = json!({"tools": {}, "logging": {}});
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities});
            reply.json(request.response(&result)).await;
        }
        Some("tools/call") if body["params"]["name"] == "fail" => {
            let error = json!({"code": -32000, "message": known, "data": {"sent": known}});
            reply.json(json!({"jsonrpc": "2.0", "id": request.id(), "error": error}).to_string()).await;
        }
        Some("tools/call") => {
            reply.events().await;
            let progress = json!({"progressToken": request.id(), "progress": 1, "message": known});
            reply.event(message("notifications/progress", progress).to_string()).await;
            let log = json!({"level": "error", "data": known});
            reply.event(message("notifications/message", log).to_string()).await;
            let mut form = message("elicitation/create", json!({"message": known, "requestedSchema": {}}));
            form["id"] = "form".into();
            reply.event(form.to_string()).await;
            answered.notified().await;
            reply.event(request.response(&json!({"content": [{"type": "text", "text": known}]}))).await;
        }
        Some("server/discover") => {
            let error = json!({"code": -32601, "message": "Method not found"});
            reply.json(json!({"jsonrpc": "2.0", "id": request.id(), "error": error}).to_string()).await;
        }
        _ => {
            if body["id"] == "form" {
                answered.notify_one();
            }
            reply.full(202, &[], "").await;
        }
    }
    Some(reply)
}

#[tokio::test]
async fn no_message_of_a_server_contains_its_headers_or_token() {
    let answered = Arc::new(Notify::new());
    let server = TestServer::start(move |request, mut reply: Reply| {
        let answered = Arc::clone(&answered);
        async move {
            if request.method != "POST" {
                reply.full(405, &[], "").await;
                return Some(reply);
            }
            echo(request, reply, answered).await
        }
    })
    .await;
    let secrets = Arc::new(ServerSecrets::new(vec![("X-Api-Key".to_owned(), SECRET.to_owned())]));
    let authorizer = RecordedTokens { authorizer: Arc::new(TestAuthorizer), secrets: Arc::clone(&secrets) };
    let target = HttpTarget::new(&server.url, [("X-Api-Key".to_owned(), SECRET.to_owned())]).unwrap();
    let target = ConnectTarget::Http(target.with_authorizer(Arc::new(authorizer)), HttpKind::Streamable);
    let session = connect(target, &ConnectOptions { secrets, ..ConnectOptions::new("echo") }).await.unwrap();

    let caller = Arc::new(TestCaller::default());
    let dyn_caller: Arc<dyn Caller> = Arc::<TestCaller>::clone(&caller);
    let arguments = RawJson::empty_object();
    let result =
        session.call_tool(ToolCall::new("repeat", &arguments).with_caller(&dyn_caller)).await.unwrap();
    caller.keep("result", result.raw.get());
    let error = session.call_tool(ToolCall::new("fail", &arguments)).await.unwrap_err();
    caller.keep("error", &format!("{error} {error:?}"));

    let received = caller.received.lock().clone();
    let kinds: Vec<&str> = received.iter().filter_map(|text| text.split(' ').next()).collect();
    assert_eq!(kinds, ["progress", "log", "elicitation", "result", "error"]);
    let is_redacted = |text: &&String| {
        text.contains("[redacted:environment] [redacted:environment]")
            && !text.contains(SECRET)
            && !text.contains(TOKEN)
    };
    let leaks: Vec<&String> = received.iter().filter(|text| !is_redacted(text)).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
    session.close().await;
}
