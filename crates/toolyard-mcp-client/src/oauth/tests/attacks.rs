//! Flows with malicious servers, responses and files.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;
use url::Url;

use super::{super::*, test_servers::*};
use crate::{Authorizer, SecretText, transport::http::test_server::TestServer};

#[tokio::test]
async fn a_token_is_sent_to_no_other_address() {
    let env = TestEnvironment::start().await;
    let store = TokenStore::in_memory();
    let authorizer = OAuthAuthorizer::new(env.oauth_server(), store.clone()).unwrap();
    authorizer.with_browser(Arc::new(TestUser::default())).login(&[]).await.unwrap();
    let mut moved = env.oauth_server();
    moved.url = Url::parse("https://elsewhere.example.org/mcp").unwrap();
    assert!(OAuthAuthorizer::new(moved, store.clone()).unwrap().token().await.is_none());
    assert!(OAuthAuthorizer::new(env.oauth_server(), store).unwrap().token().await.is_some());
}

#[tokio::test]
async fn logins_are_limited_for_a_server_that_refuses_every_token() {
    let env = TestEnvironment::start().await;
    env.behavior().rejects_all_tokens = true;
    let user = Arc::new(TestUser::default());
    let client = env.client(env.authorizer().with_browser(Arc::<TestUser>::clone(&user)));
    let mut errors = Vec::new();
    for _ in 0..12 {
        errors.push(client.error("tools/list").await.to_string());
    }
    assert_eq!(user.opened_urls.lock().len(), 3);
    assert!(errors.last().unwrap().contains("failed 3 times"), "{errors:?}");
    assert!(env.request_counts()[2] <= 5, "{:?}", env.request_counts());
}

#[tokio::test]
async fn only_a_response_with_the_state_is_accepted() {
    let env = TestEnvironment::start().await;
    let user = TestUser {
        earlier_callbacks: texts(&[
            "code=evil&state=guessed",
            "code=evil",
            "error=access_denied&state=guessed",
            "",
        ]),
        ..TestUser::default()
    };
    let client = env.client(env.authorizer().with_browser(Arc::new(user)));
    client.result("tools/list").await;
    assert!(env.requests_of("token").iter().all(|parameters| parameters["code"] != "evil"));

    let mut server = env.oauth_server();
    server.login_timeout = Duration::from_millis(300);
    let user = TestUser {
        earlier_callbacks: texts(&["code=evil&state=guessed"]),
        abandons_login: true,
        ..TestUser::default()
    };
    let authorizer =
        OAuthAuthorizer::new(server, TokenStore::in_memory()).unwrap().with_browser(Arc::new(user));
    let error = authorizer.login(&[]).await.unwrap_err();
    assert!(matches!(error, OAuthError::Callback(CallbackError::TimedOut(_))), "{error}");
    assert_eq!(env.requests_of("token").len(), 1);
}

#[tokio::test]
async fn a_response_of_another_issuer_is_rejected() {
    for (issuer, advertised) in
        [("https://evil.example.org", false), ("", true), ("https://evil.example.org", true)]
    {
        let env = TestEnvironment::start().await;
        env.behavior().redirect.insert("iss".to_owned(), issuer.to_owned());
        env.behavior()
            .metadata
            .insert("authorization_response_iss_parameter_supported".to_owned(), json!(advertised));
        let authorizer = env.authorizer().with_browser(Arc::new(TestUser::default()));
        let error = authorizer.login(&[]).await.unwrap_err();
        assert!(matches!(error, OAuthError::Refused(_)), "{error}");
        assert_eq!(env.requests_of("token").len(), 0, "the code was sent nowhere");
        assert!(authorizer.token().await.is_none());
    }
}

#[tokio::test]
async fn a_token_that_is_bound_to_a_key_is_refused() {
    let env = TestEnvironment::start().await;
    let body = json!({"access_token": "bound", "token_type": "DPoP"}).to_string();
    env.behavior().token_response = Some((200, Vec::new(), body));
    let authorizer = env.authorizer().with_browser(Arc::new(TestUser::default()));
    let error = authorizer.login(&[]).await.unwrap_err();
    assert!(error.to_string().contains("no valid token"), "{error}");
    assert!(authorizer.state().await.unwrap().is_none());
}

/// The error of a login with this behavior. Asserts that neither the user nor the authorization server got a request.
async fn refused_login(change: impl FnOnce(&mut ServerBehavior)) -> OAuthError {
    let env = TestEnvironment::start().await;
    change(&mut env.behavior());
    let user = Arc::new(TestUser::default());
    let authorizer = env.authorizer().with_browser(Arc::<TestUser>::clone(&user));
    let error = authorizer.login(&[]).await.unwrap_err();
    assert!(user.opened_urls.lock().is_empty(), "{error}");
    assert_eq!(env.request_counts(), [0, 0, 0], "{error}");
    error
}

#[tokio::test]
async fn malicious_metadata_is_rejected() {
    for (name, value) in [
        ("authorization_servers", json!(["http://login.example.org"])),
        ("authorization_servers", json!(["https://169.254.169.254"])),
        ("authorization_servers", json!(["https://10.0.0.1"])),
        ("authorization_servers", json!(["file:///etc/passwd"])),
        ("resource", json!("https://evil.example.org/mcp")),
    ] {
        let error =
            refused_login(|behavior| drop(behavior.resource.insert(name.to_owned(), value.clone()))).await;
        assert!(matches!(error, OAuthError::Discovery(_)), "{name} {value}: {error}");
    }
    for (name, value) in [
        ("issuer", json!("https://evil.example.org")),
        ("authorization_endpoint", json!("javascript:alert(1)")),
        ("authorization_endpoint", json!("file:///bin/sh")),
        ("authorization_endpoint", json!("http://login.example.org/authorize")),
        ("authorization_endpoint", json!("a:$(touch /tmp/x)")),
        ("token_endpoint", json!("http://login.example.org/token")),
        ("token_endpoint", json!("https://169.254.169.254/token")),
        ("registration_endpoint", json!("http://10.0.0.1/register")),
        ("code_challenge_methods_supported", json!(["plain"])),
    ] {
        refused_login(|behavior| drop(behavior.metadata.insert(name.to_owned(), value.clone()))).await;
    }
}

#[tokio::test]
async fn plain_http_is_limited_to_loopback() {
    for (url, is_allowed) in [
        ("http://mcp.example.org/mcp", false),
        ("http://192.168.1.5/mcp", false),
        ("https://mcp.example.org/mcp", true),
        ("http://localhost:3000/mcp", true),
        ("http://[::1]:3000/mcp", true),
    ] {
        let server = OAuthServer::new("notes", Url::parse(url).unwrap());
        assert_eq!(OAuthAuthorizer::new(server, TokenStore::in_memory()).is_ok(), is_allowed, "{url}");
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = TestServer::start(|_, mut reply| async move {
        reply.json("{}").await;
        Some(reply)
    })
    .await;
    // A redirect of metadata.
    let target = elsewhere.url.clone();
    refused_login(|behavior| behavior.metadata_moved = Some(target)).await;
    // A redirect of the token request, which carries the code.
    let env = TestEnvironment::start().await;
    let location = vec![("Location".to_owned(), elsewhere.url.clone())];
    env.behavior().token_response = Some((307, location, String::new()));
    let error = env.authorizer().with_browser(Arc::new(TestUser::default())).login(&[]).await.unwrap_err();
    assert!(matches!(error, OAuthError::Unavailable(_)), "{error}");
    assert!(elsewhere.received().is_empty());
}

#[tokio::test]
async fn another_issuer_sees_no_credentials_of_the_first() {
    let env = TestEnvironment::start().await;
    env.behavior().secret = Some("secret-of-the-first".to_owned());
    let client = env.client(env.authorizer().with_browser(Arc::new(TestUser::default())));
    client.result("tools/list").await;
    let second = start_issuer(&env.behavior).await;
    env.behavior().issuer = base_url(&second);
    env.behavior().valid_tokens.clear();
    client.result("tools/list").await;
    assert_eq!(env.request_counts(), [2, 2, 2]);
    let clients: Vec<_> =
        env.requests_of("authorize").into_iter().map(|parameters| parameters["client_id"].clone()).collect();
    assert_ne!(clients[0], clients[1]);
    for request in second.received() {
        let sent =
            format!("{} {:?} {}", request.path, request.headers, String::from_utf8_lossy(&request.body));
        assert!(!sent.contains(&clients[0]) && !sent.contains("refresh-"), "{sent}");
    }
}

#[tokio::test]
async fn damaged_token_files_are_reported_and_not_overwritten() {
    let env = TestEnvironment::start().await;
    let folder = tempfile::tempdir().unwrap();
    let store = || TokenStore::with_key_file(folder.path()).unwrap();
    let authorizer = || {
        OAuthAuthorizer::new(env.oauth_server(), store()).unwrap().with_browser(Arc::new(TestUser::default()))
    };
    authorizer().login(&[]).await.unwrap();
    let mut files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.extension().is_some_and(|name| name == "tokens")).unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let error = env.client(authorizer()).error("tools/list").await;
    assert!(error.to_string().contains("damaged"), "{error}");
    assert!(matches!(
        authorizer().login(&[]).await,
        Err(OAuthError::Store(TokenStoreError::Undecryptable { .. }))
    ));
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
    assert!(authorizer().logout().await.unwrap());
    authorizer().login(&[]).await.unwrap();
}

/// Keeps everything that is logged, at every level.
#[derive(Clone, Default)]
struct LogCapture(Arc<Mutex<String>>);

impl tracing::Subscriber for LogCapture {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        span.record(&mut FieldWriter(&mut self.0.lock()));
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        values.record(&mut FieldWriter(&mut self.0.lock()));
    }

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut FieldWriter(&mut self.0.lock()));
    }

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

struct FieldWriter<'a>(&'a mut String);

impl tracing::field::Visit for FieldWriter<'_> {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        use std::fmt::Write;
        let _ = writeln!(self.0, "{field}={value:?}");
    }
}

#[tokio::test]
async fn no_secret_appears_in_logs_or_errors() {
    let log = LogCapture::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let env = TestEnvironment::start().await;
    env.behavior().secret = Some("secret-of-the-client".to_owned());
    let authorizer = Arc::new(env.authorizer().with_browser(Arc::new(TestUser::default())));
    let client = env.client_sharing(&authorizer);
    client.result("tools/list").await;
    env.behavior().valid_tokens.clear();
    client.result("tools/list").await;
    // An authorization server that repeats everything it received.
    let echoed =
        json!({"error": "invalid_request", "error_description": format!("{:?}", env.requests_of("token"))});
    env.behavior().token_response = Some((400, Vec::new(), echoed.to_string()));
    env.behavior().valid_tokens.clear();
    let error = client.error("tools/list").await;
    // And one whose response is almost a token.
    env.behavior().token_response =
        Some((200, Vec::new(), json!({"access_token": ["near-token"]}).to_string()));
    let malformed = client.error("tools/list").await;

    let mut secrets = texts(&["secret-of-the-client", "near-token", "identity-", "access-", "refresh-"]);
    secrets.extend(
        env.requests_of("token").iter().filter_map(|parameters| parameters.get("code_verifier").cloned()),
    );
    let text = format!("{} {error} {malformed} {authorizer:?}", log.0.lock());
    assert!(text.contains("requesting a login"), "the log was captured");
    for secret in secrets {
        // Repeated parameters of earlier requests are truncated, those of the current request redacted.
        assert!(!text.contains(&secret), "{secret} in {text}");
    }
}

#[tokio::test]
async fn only_the_configured_issuer_is_accepted() {
    let env = TestEnvironment::start().await;
    let mut server = env.oauth_server();
    server.identity = ClientIdentity::Registered {
        client_id: "by-hand".to_owned(),
        client_secret: Some(SecretText::new("by-hand-secret")),
    };
    server.issuer = Some("https://login.example.org".to_owned());
    let user = Arc::new(TestUser::default());
    let authorizer = OAuthAuthorizer::new(server.clone(), TokenStore::in_memory()).unwrap();
    let error = authorizer.with_browser(Arc::<TestUser>::clone(&user)).login(&[]).await.unwrap_err();
    assert!(matches!(error, OAuthError::IssuerMismatch { .. }), "{error}");
    assert!(user.opened_urls.lock().is_empty());
    server.issuer = Some(base_url(&env.issuer));
    let authorizer = OAuthAuthorizer::new(server, TokenStore::in_memory()).unwrap();
    authorizer.with_browser(user).login(&[]).await.unwrap();
}

#[tokio::test]
async fn a_login_completes_after_its_caller_was_cancelled() {
    let env = TestEnvironment::start().await;
    let consent = Arc::new(Notify::new());
    let user = Arc::new(TestUser { consent_signal: Some(Arc::clone(&consent)), ..TestUser::default() });
    let authorizer = Arc::new(env.authorizer().with_browser(Arc::<TestUser>::clone(&user)));
    let client = env.client_sharing(&authorizer);
    // A call ends while the user has not consented yet.
    let challenge = authorizer.handle_challenge(None, 401, None);
    assert!(tokio::time::timeout(Duration::from_millis(1500), challenge).await.is_err());
    assert_eq!(user.opened_urls.lock().len(), 1);
    consent.notify_one();
    assert_eq!(client.result("tools/list").await, json!({"access": "granted"}));
    assert_eq!(env.request_counts(), [1, 1, 1]);
}

#[tokio::test]
async fn a_configured_secret_is_sent_to_no_other_issuer() {
    let secret = || SecretText::new("by-hand-secret");
    for identity in [
        ClientIdentity::Registered { client_id: "by-hand".to_owned(), client_secret: Some(secret()) },
        ClientIdentity::ClientCredentials {
            client_id: "by-hand".to_owned(),
            authentication: ClientAuthentication::Secret(secret()),
        },
    ] {
        let env = TestEnvironment::start().await;
        let mut server = env.oauth_server();
        server.identity = identity;
        let authorizer = OAuthAuthorizer::new(server, TokenStore::in_memory()).unwrap();
        let authorizer = Arc::new(authorizer.with_browser(Arc::new(TestUser::default())));
        let client = env.client_sharing(&authorizer);
        client.result("tools/list").await;
        let second = start_issuer(&env.behavior).await;
        env.behavior().issuer = base_url(&second);
        env.behavior().valid_tokens.clear();
        let error = client.error("tools/list").await;
        assert!(error.to_string().contains("where this client is not registered"), "{error}");
        assert!(
            second
                .received()
                .iter()
                .all(|request| request.method == "GET" && !request.path.starts_with("/authorize"))
        );
        // Unless the user logs in explicitly.
        authorizer.login(&[]).await.unwrap();
        client.result("tools/list").await;
    }
}
