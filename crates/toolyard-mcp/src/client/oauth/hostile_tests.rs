//! Flows in which someone lies, repeats, forgets or forges.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use tokio::sync::Notify;
use url::Url;

use super::{test_servers::*, *};
use crate::client::{Authorizer, http_test_server::TestServer};

#[tokio::test]
async fn a_token_goes_to_no_other_address() {
    let world = World::start().await;
    let store = TokenStore::in_memory();
    let authorizer = OAuthAuthorizer::new(world.oauth_server(), store.clone()).unwrap();
    authorizer.with_browser(Arc::new(Person::default())).login(&[]).await.unwrap();
    let mut moved = world.oauth_server();
    moved.url = Url::parse("https://elsewhere.example.org/mcp").unwrap();
    assert!(OAuthAuthorizer::new(moved, store.clone()).unwrap().token().await.is_none());
    assert!(OAuthAuthorizer::new(world.oauth_server(), store).unwrap().token().await.is_some());
}

#[tokio::test]
async fn a_server_that_refuses_every_token_ends_the_asking() {
    let world = World::start().await;
    world.rules().refuses = true;
    let person = Arc::new(Person::default());
    let peer = world.peer(world.authorizer().with_browser(Arc::<Person>::clone(&person)));
    let mut errors = Vec::new();
    for _ in 0..12 {
        errors.push(peer.error("tools/list").await.to_string());
    }
    assert_eq!(person.opened.lock().unwrap().len(), 3);
    assert!(errors.last().unwrap().contains("was tried 3 times"), "{errors:?}");
    assert!(world.counts()[2] <= 5, "{:?}", world.counts());
}

#[tokio::test]
async fn only_the_answer_to_our_question_counts() {
    let world = World::start().await;
    let person = Person {
        before: texts(&["code=evil&state=guessed", "code=evil", "error=access_denied&state=guessed", ""]),
        ..Person::default()
    };
    let peer = world.peer(world.authorizer().with_browser(Arc::new(person)));
    peer.result("tools/list").await;
    assert!(world.all("token").iter().all(|asked| asked["code"] != "evil"));

    let mut server = world.oauth_server();
    server.login_limit = Duration::from_millis(300);
    let person =
        Person { before: texts(&["code=evil&state=guessed"]), walks_away: true, ..Person::default() };
    let authorizer =
        OAuthAuthorizer::new(server, TokenStore::in_memory()).unwrap().with_browser(Arc::new(person));
    let error = authorizer.login(&[]).await.unwrap_err();
    assert!(matches!(error, OAuthError::Callback(CallbackError::TimedOut(_))), "{error}");
    assert_eq!(world.all("token").len(), 1);
}

#[tokio::test]
async fn an_answer_in_the_name_of_another_issuer_is_refused() {
    for (issuer, advertised) in
        [("https://evil.example.org", false), ("", true), ("https://evil.example.org", true)]
    {
        let world = World::start().await;
        world.rules().redirect.insert("iss".to_owned(), issuer.to_owned());
        world
            .rules()
            .metadata
            .insert("authorization_response_iss_parameter_supported".to_owned(), json!(advertised));
        let authorizer = world.authorizer().with_browser(Arc::new(Person::default()));
        let error = authorizer.login(&[]).await.unwrap_err();
        assert!(matches!(error, OAuthError::Refused(_)), "{error}");
        assert_eq!(world.all("token").len(), 0, "the code was shown to nobody");
        assert!(authorizer.token().await.is_none());
    }
}

/// What comes of logging in where a document says this, and whether anybody was asked for anything.
async fn refused_login(change: impl FnOnce(&mut Rules)) -> OAuthError {
    let world = World::start().await;
    change(&mut world.rules());
    let person = Arc::new(Person::default());
    let authorizer = world.authorizer().with_browser(Arc::<Person>::clone(&person));
    let error = authorizer.login(&[]).await.unwrap_err();
    assert!(person.opened.lock().unwrap().is_empty(), "{error}");
    assert_eq!(world.counts(), [0, 0, 0], "{error}");
    error
}

#[tokio::test]
async fn documents_that_lead_astray_are_refused() {
    for (name, value) in [
        ("authorization_servers", json!(["http://login.example.org"])),
        ("authorization_servers", json!(["https://169.254.169.254"])),
        ("authorization_servers", json!(["https://10.0.0.1"])),
        ("authorization_servers", json!(["file:///etc/passwd"])),
        ("resource", json!("https://evil.example.org/mcp")),
    ] {
        let error = refused_login(|rules| drop(rules.resource.insert(name.to_owned(), value.clone()))).await;
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
        refused_login(|rules| drop(rules.metadata.insert(name.to_owned(), value.clone()))).await;
    }
}

#[tokio::test]
async fn plain_http_is_for_this_machine_only() {
    for (url, good) in [
        ("http://mcp.example.org/mcp", false),
        ("http://192.168.1.5/mcp", false),
        ("https://mcp.example.org/mcp", true),
        ("http://localhost:3000/mcp", true),
        ("http://[::1]:3000/mcp", true),
    ] {
        let server = OAuthServer::new("notes", Url::parse(url).unwrap());
        assert_eq!(OAuthAuthorizer::new(server, TokenStore::in_memory()).is_ok(), good, "{url}");
    }
}

#[tokio::test]
async fn redirects_take_nothing_elsewhere() {
    let elsewhere = TestServer::start(|_, mut reply| async move {
        reply.json("{}").await;
        Some(reply)
    })
    .await;
    // Of metadata.
    let target = elsewhere.url.clone();
    refused_login(|rules| rules.metadata_moved = Some(target)).await;
    // Of the request for a token, which carries the code.
    let world = World::start().await;
    let location = vec![("Location".to_owned(), elsewhere.url.clone())];
    world.rules().token_answer = Some((307, location, String::new()));
    let error = world.authorizer().with_browser(Arc::new(Person::default())).login(&[]).await.unwrap_err();
    assert!(matches!(error, OAuthError::Unavailable(_)), "{error}");
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn another_authorization_server_sees_nothing_of_the_first() {
    let world = World::start().await;
    world.rules().secret = Some("secret-of-the-first".to_owned());
    let peer = world.peer(world.authorizer().with_browser(Arc::new(Person::default())));
    peer.result("tools/list").await;
    let second = issuer(&world.rules).await;
    world.rules().issuer = address(&second);
    world.rules().good.clear();
    peer.result("tools/list").await;
    assert_eq!(world.counts(), [2, 2, 2]);
    let clients: Vec<_> =
        world.all("authorize").into_iter().map(|question| question["client_id"].clone()).collect();
    assert_ne!(clients[0], clients[1]);
    for seen in second.seen() {
        let said = format!("{} {:?} {}", seen.path, seen.headers, String::from_utf8_lossy(&seen.body));
        assert!(!said.contains(&clients[0]) && !said.contains("refresh-"), "{said}");
    }
}

#[tokio::test]
async fn what_is_damaged_on_disk_is_told_and_left_alone() {
    let world = World::start().await;
    let folder = tempfile::tempdir().unwrap();
    let store = || TokenStore::with_own_key(folder.path()).unwrap();
    let authorizer = || {
        OAuthAuthorizer::new(world.oauth_server(), store()).unwrap().with_browser(Arc::new(Person::default()))
    };
    authorizer().login(&[]).await.unwrap();
    let mut files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.extension().is_some_and(|name| name == "tokens")).unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let error = world.peer(authorizer()).error("tools/list").await;
    assert!(error.to_string().contains("damaged"), "{error}");
    assert!(matches!(
        authorizer().login(&[]).await,
        Err(OAuthError::Store(TokenStoreError::Unusable { .. }))
    ));
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
    assert!(authorizer().logout().await.unwrap());
    authorizer().login(&[]).await.unwrap();
}

/// Keeps everything that is logged, at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        span.record(&mut Line(&mut self.0.lock().unwrap()));
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        values.record(&mut Line(&mut self.0.lock().unwrap()));
    }

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut Line(&mut self.0.lock().unwrap()));
    }

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

struct Line<'a>(&'a mut String);

impl tracing::field::Visit for Line<'_> {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        use std::fmt::Write;
        let _ = writeln!(self.0, "{field}={value:?}");
    }
}

#[tokio::test]
async fn no_secret_is_logged_or_told() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let world = World::start().await;
    world.rules().secret = Some("secret-of-the-client".to_owned());
    let authorizer = Arc::new(world.authorizer().with_browser(Arc::new(Person::default())));
    let peer = world.peer_of(&authorizer);
    peer.result("tools/list").await;
    world.rules().good.clear();
    peer.result("tools/list").await;
    // An authorization server that repeats everything it was told.
    let told = json!({"error": "invalid_request", "error_description": format!("{:?}", world.all("token"))});
    world.rules().token_answer = Some((400, Vec::new(), told.to_string()));
    world.rules().good.clear();
    let error = peer.error("tools/list").await;
    // And one whose answer is nearly a token.
    world.rules().token_answer = Some((200, Vec::new(), json!({"access_token": ["near-token"]}).to_string()));
    let near = peer.error("tools/list").await;

    let mut secrets = texts(&["secret-of-the-client", "near-token", "identity-", "access-", "refresh-"]);
    secrets.extend(world.all("token").iter().filter_map(|asked| asked.get("code_verifier").cloned()));
    let text = format!("{} {error} {near} {authorizer:?}", log.0.lock().unwrap());
    assert!(text.contains("asking a person"), "the log was kept");
    for secret in secrets {
        // What the authorization server repeats on purpose of earlier requests is cut, and what we just sent is hidden.
        assert!(!text.contains(&secret), "{secret} in {text}");
    }
}

#[tokio::test]
async fn a_pinned_issuer_is_the_only_one() {
    let world = World::start().await;
    let mut server = world.oauth_server();
    server.identity = ClientIdentity::Registered {
        client_id: "by-hand".to_owned(),
        client_secret: Some(HiddenText::new("by-hand-secret")),
    };
    server.issuer = Some("https://login.example.org".to_owned());
    let person = Arc::new(Person::default());
    let authorizer = OAuthAuthorizer::new(server.clone(), TokenStore::in_memory()).unwrap();
    let error = authorizer.with_browser(Arc::<Person>::clone(&person)).login(&[]).await.unwrap_err();
    assert!(matches!(error, OAuthError::OtherIssuer { .. }), "{error}");
    assert!(person.opened.lock().unwrap().is_empty());
    server.issuer = Some(address(&world.issuer));
    let authorizer = OAuthAuthorizer::new(server, TokenStore::in_memory()).unwrap();
    authorizer.with_browser(person).login(&[]).await.unwrap();
}

#[tokio::test]
async fn what_was_begun_is_brought_to_its_end_though_nobody_waits() {
    let world = World::start().await;
    let consent = Arc::new(Notify::new());
    let person = Arc::new(Person { hesitates: Some(Arc::clone(&consent)), ..Person::default() });
    let authorizer = Arc::new(world.authorizer().with_browser(Arc::<Person>::clone(&person)));
    let peer = world.peer_of(&authorizer);
    // A call ends while the person is still reading.
    let challenge = authorizer.challenged(None, 401, None);
    assert!(tokio::time::timeout(Duration::from_millis(1500), challenge).await.is_err());
    assert_eq!(person.opened.lock().unwrap().len(), 1);
    consent.notify_one();
    assert_eq!(peer.result("tools/list").await, json!({"let": "in"}));
    assert_eq!(world.counts(), [1, 1, 1]);
}

#[tokio::test]
async fn a_secret_given_by_hand_is_shown_to_no_other_issuer() {
    let secret = || HiddenText::new("by-hand-secret");
    for identity in [
        ClientIdentity::Registered { client_id: "by-hand".to_owned(), client_secret: Some(secret()) },
        ClientIdentity::Machine { client_id: "by-hand".to_owned(), proof: ClientProof::Secret(secret()) },
    ] {
        let world = World::start().await;
        let mut server = world.oauth_server();
        server.identity = identity;
        let authorizer = OAuthAuthorizer::new(server, TokenStore::in_memory()).unwrap();
        let authorizer = Arc::new(authorizer.with_browser(Arc::new(Person::default())));
        let peer = world.peer_of(&authorizer);
        peer.result("tools/list").await;
        let second = issuer(&world.rules).await;
        world.rules().issuer = address(&second);
        world.rules().good.clear();
        let error = peer.error("tools/list").await;
        assert!(error.to_string().contains("not the issuer that knows this client"), "{error}");
        assert!(
            second.seen().iter().all(|seen| seen.method == "GET" && !seen.path.starts_with("/authorize"))
        );
        // Unless somebody says so.
        authorizer.login(&[]).await.unwrap();
        peer.result("tools/list").await;
    }
}
