//! Tokens on behalf of callers, with well-behaved and with malicious authorization servers.

use std::{sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use parking_lot::Mutex;
use serde_json::{Value, json};
use toolyard_core::{API_KEY_ISSUER, CallerIdentity, PresentedToken};

use super::{
    super::{token_store::unix_seconds, *},
    test_servers::*,
};
use crate::{InstanceOwner, SecretText, transport::http::test_server::TestServer};

const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

fn identity(issuer: &str, subject: &str, token: &str, lifetime: i64) -> Arc<CallerIdentity> {
    let valid_until = i64::try_from(unix_seconds()).unwrap() + lifetime;
    let token = PresentedToken::new(token, valid_until);
    Arc::new(CallerIdentity::principal(issuer, subject).with_presented_token(token))
}

fn owner(token: &str) -> Arc<InstanceOwner> {
    Arc::new(InstanceOwner::new(identity("https://id.example", "ada", token, 600)))
}

/// The server as it is configured for callers.
fn server(env: &TestEnvironment, owner: &Arc<InstanceOwner>, grant: CallerTokenGrant) -> OAuthServer {
    let mut server = env.oauth_server();
    let client = TokenClient::new("gateway", Some(SecretText::new("gateway-secret")));
    let caller = CallerToken { owner: Arc::clone(owner), client, grant };
    server.identity = ClientIdentity::ClientCredentials {
        client_id: "gateway".to_owned(),
        authentication: ClientAuthentication::Caller(caller),
    };
    server.issuer = Some(base_url(&env.issuer));
    server
}

fn exchanging(env: &TestEnvironment, owner: &Arc<InstanceOwner>) -> OAuthAuthorizer {
    let grant = CallerTokenGrant::TokenExchange { audience: Some("notes-api".to_owned()) };
    OAuthAuthorizer::new(server(env, owner, grant), TokenStore::in_memory()).unwrap()
}

/// Whether a request to the server contains a text.
fn has_received(server: &TestServer, text: &str) -> bool {
    server.received().iter().any(|request| {
        let body = String::from_utf8_lossy(&request.body);
        body.contains(text) || format!("{:?} {}", request.headers, request.path).contains(text)
    })
}

#[tokio::test]
async fn the_token_of_a_caller_is_exchanged_and_never_sent_to_the_server() {
    let env = TestEnvironment::start().await;
    env.behavior().required_scopes.0 = texts(&["read"]);
    let client = env.client(exchanging(&env, &owner("token-of-ada")));
    assert_eq!(client.result("tools/list").await, json!({"access": "granted"}));
    client.result("tools/list").await;
    let requests = env.requests_of("token");
    assert_eq!(requests.len(), 1, "the token is cached");
    for (name, value) in [
        ("grant_type", EXCHANGE),
        ("subject_token", "token-of-ada"),
        ("subject_token_type", ACCESS_TOKEN),
        ("requested_token_type", ACCESS_TOKEN),
        ("audience", "notes-api"),
        ("resource", env.server.url.as_str()),
        ("scope", "read"),
    ] {
        assert_eq!(requests[0][name], value, "{name}");
    }
    assert_eq!(requests[0]["basic"], format!("Basic {}", STANDARD.encode("gateway:gateway-secret")));
    assert!(!has_received(&env.server, "token-of-ada"));
}

#[tokio::test]
async fn clients_authenticate_as_the_issuer_supports_it() {
    let env = TestEnvironment::start().await;
    let methods = "token_endpoint_auth_methods_supported".to_owned();
    env.behavior().metadata.insert(methods.clone(), json!(["client_secret_post"]));
    env.client(exchanging(&env, &owner("one"))).result("tools/list").await;
    let request = &env.requests_of("token")[0];
    assert_eq!((&*request["client_id"], &*request["client_secret"]), ("gateway", "gateway-secret"));
    assert_eq!(request["basic"], "");
    env.behavior().metadata.insert(methods, json!(["private_key_jwt"]));
    let error = env.client(exchanging(&env, &owner("one"))).error("tools/list").await.to_string();
    assert!(error.contains("accepts no client secrets"), "{error}");
    assert_eq!(env.requests_of("token").len(), 1);
    let grant = CallerTokenGrant::TokenExchange { audience: None };
    let mut server = server(&env, &owner("one"), grant);
    if let ClientIdentity::ClientCredentials {
        authentication: ClientAuthentication::Caller(caller), ..
    } = &mut server.identity
    {
        let pem = SecretText::new(ec_key_pem());
        caller.client.credential = ClientCredential::PrivateKey { pem, algorithm: "ES256".to_owned() };
    }
    env.client(OAuthAuthorizer::new(server, TokenStore::in_memory()).unwrap()).result("tools/list").await;
    let request = &env.requests_of("token")[1];
    assert_eq!((&*request["client_id"], &*request["basic"]), ("gateway", ""));
    assert_eq!(request["client_assertion"].split('.').count(), 3);
    assert!(!request.contains_key("client_secret") && !request.contains_key("audience"));
}

#[tokio::test]
async fn the_newest_token_of_the_caller_is_used_when_a_token_expires_or_is_refused() {
    let env = TestEnvironment::start().await;
    env.behavior().lifetime = Some(1);
    let owner = owner("first");
    let client = env.client(exchanging(&env, &owner));
    client.result("tools/list").await;
    owner.renew(&identity("https://id.example", "ada", "second", 700));
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    client.result("tools/list").await;
    env.behavior().lifetime = None;
    owner.renew(&identity("https://id.example", "ada", "third", 800));
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    client.result("tools/list").await;
    env.behavior().valid_tokens.clear();
    client.result("tools/list").await;
    let subjects: Vec<_> =
        env.requests_of("token").iter().map(|request| request["subject_token"].clone()).collect();
    assert_eq!(subjects, ["first", "second", "third", "third"]);
}

#[tokio::test]
async fn a_revoked_token_does_not_block_another_one_of_the_caller() {
    let env = TestEnvironment::start().await;
    let subjects = || -> Vec<_> {
        env.requests_of("token").iter().map(|request| request["subject_token"].clone()).collect()
    };
    let owner = owner("first");
    let client = env.client(exchanging(&env, &owner));
    client.result("tools/list").await;
    // The new token expires before the revoked one.
    owner.renew(&identity("https://id.example", "ada", "second", 300));
    env.behavior().revoked_subjects = texts(&["first"]);
    env.behavior().valid_tokens.clear();
    client.result("tools/list").await;
    assert_eq!(subjects(), ["first", "second"]);
    // The newest one is revoked, and a client of the caller goes on with another one.
    env.behavior().revoked_subjects = texts(&["second"]);
    env.behavior().valid_tokens.clear();
    client.result("tools/list").await;
    assert_eq!(subjects(), ["first", "second", "second", "first"]);
    env.behavior().valid_tokens.clear();
    client.result("tools/list").await;
    assert_eq!(subjects().len(), 5, "the refused one is not tried again");
}

#[tokio::test]
async fn concurrent_calls_wait_for_one_exchange() {
    let env = TestEnvironment::start().await;
    let authorizer = Arc::new(exchanging(&env, &owner("one")));
    let clients: Vec<_> = (0..8).map(|_| env.client_sharing(&authorizer)).collect();
    futures_util::future::join_all(clients.iter().map(|client| client.result("tools/list"))).await;
    assert_eq!(env.requests_of("token").len(), 1);
}

#[tokio::test]
async fn a_server_that_refuses_every_token_causes_few_exchanges() {
    let env = TestEnvironment::start().await;
    env.behavior().rejects_all_tokens = true;
    let client = env.client(exchanging(&env, &owner("one")));
    let mut error = String::new();
    for _ in 0..12 {
        error = client.error("tools/list").await.to_string();
    }
    assert!(error.contains("failed 5 times"), "{error}");
    assert_eq!(env.requests_of("token").len(), 5);
}

#[tokio::test]
async fn callers_have_tokens_of_their_own() {
    let env = TestEnvironment::start().await;
    for token in ["token-of-ada", "token-of-bob"] {
        env.client(exchanging(&env, &owner(token))).result("tools/list").await;
    }
    let subjects: Vec<_> =
        env.requests_of("token").iter().map(|request| request["subject_token"].clone()).collect();
    assert_eq!(subjects, ["token-of-ada", "token-of-bob"]);
    let mut sent: Vec<_> =
        env.server.received().iter().filter_map(|r| r.header("authorization").map(str::to_owned)).collect();
    sent.dedup();
    assert_eq!(sent.len(), 2, "{sent:?}");
}

#[tokio::test]
async fn without_a_valid_token_of_the_caller_nothing_is_sent_to_an_issuer() {
    let env = TestEnvironment::start().await;
    let keyed = Arc::new(CallerIdentity::principal(API_KEY_ISSUER, "ci"));
    let expired = identity("https://id.example", "ada", "old", -1);
    for (identity, expected) in [(keyed, "presented none"), (expired, "has expired")] {
        let client = env.client(exchanging(&env, &Arc::new(InstanceOwner::new(identity))));
        // The reason stays the same, however often the caller tries.
        for _ in 0..7 {
            let error = client.error("tools/list").await.to_string();
            assert!(error.contains(expected) && error.contains("call the gateway"), "{error}");
        }
    }
    assert!(env.issuer.received().is_empty());
}

#[tokio::test]
async fn an_issuer_must_be_configured() {
    let env = TestEnvironment::start().await;
    let grant = CallerTokenGrant::TokenExchange { audience: None };
    let mut server = server(&env, &owner("one"), grant);
    server.issuer = None;
    let error = OAuthAuthorizer::new(server, TokenStore::in_memory()).unwrap_err();
    assert!(matches!(error, OAuthError::CallerToken(CallerTokenError::NoIssuer { .. })), "{error}");
}

/// The error of an exchange whose token endpoint responds like this. Asserts that neither the error nor the server gets to
/// know the token of the caller.
async fn refused_exchange(response: (u16, Value)) -> String {
    let env = TestEnvironment::start().await;
    env.behavior().token_response = Some((response.0, Vec::new(), response.1.to_string()));
    let error = env.client(exchanging(&env, &owner("token-of-ada"))).error("tools/list").await.to_string();
    assert_eq!(env.requests_of("token").len(), 1, "{error}");
    assert!(!error.contains("token-of-ada") && !error.contains("gateway-secret"), "{error}");
    assert!(!has_received(&env.server, "token-of-ada"), "{error}");
    error
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    for (code, refusal) in [
        ("invalid_grant", ExchangeRefusal::CallerToken),
        ("invalid_request", ExchangeRefusal::CallerToken),
        ("invalid_client", ExchangeRefusal::Client),
        ("unauthorized_client", ExchangeRefusal::Grant),
        ("unsupported_grant_type", ExchangeRefusal::Grant),
        ("invalid_target", ExchangeRefusal::Target),
        ("temporarily_unavailable", ExchangeRefusal::Other),
    ] {
        let body = json!({"error": code, "error_description": "got token-of-ada of gateway-secret"});
        let error = refused_exchange((400, body)).await;
        assert!(error.contains(code) && error.contains(refusal.advice()), "{error}");
    }
}

#[tokio::test]
async fn unusable_responses_are_refused() {
    let response = |changes: Value| {
        let mut body =
            json!({"access_token": "new", "token_type": "Bearer", "issued_token_type": ACCESS_TOKEN});
        body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        (200, body)
    };
    for (changes, expected) in [
        (json!({"access_token": "token-of-ada"}), "the token of the caller"),
        (json!({"access_token": " token-of-ada "}), "the token of the caller"),
        (json!({"issued_token_type": ID_JAG}), "another type"),
        (json!({"issued_token_type": null}), "unknown type"),
        (json!({"token_type": "mac"}), "no valid token"),
        (json!({"token_type": "N_A"}), "no valid token"),
        (json!({"access_token": ""}), "no valid token"),
        (json!({"access_token": 7}), "no token"),
        (json!({"padding": "x".repeat(1 << 20)}), "the connection failed"),
    ] {
        let error = refused_exchange(response(changes)).await;
        assert!(error.contains(expected), "{error}");
    }
    assert!(refused_exchange((200, json!("no object"))).await.contains("no token"));
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let env = TestEnvironment::start().await;
    let other = start_issuer(&Arc::new(Mutex::new(ServerBehavior::default()))).await;
    let location = ("Location".to_owned(), format!("{}/token", base_url(&other)));
    env.behavior().token_response = Some((307, vec![location], String::new()));
    let error = env.client(exchanging(&env, &owner("one"))).error("tools/list").await.to_string();
    assert!(error.contains("HTTP status 307"), "{error}");
    assert!(other.received().is_empty());
}

#[tokio::test]
async fn a_server_cannot_choose_who_gets_the_tokens_of_callers() {
    // The server names another issuer, which may pose as the configured one.
    for pretends in [false, true] {
        let env = TestEnvironment::start().await;
        let evil_behavior = Arc::new(Mutex::new(ServerBehavior::default()));
        let evil = start_issuer(&evil_behavior).await;
        if pretends {
            let mut behavior = evil_behavior.lock();
            behavior.metadata.insert("issuer".to_owned(), json!(base_url(&env.issuer)));
            behavior
                .metadata
                .insert("token_endpoint".to_owned(), json!(format!("{}/token", base_url(&evil))));
        }
        env.behavior().issuer = base_url(&evil);
        env.client(exchanging(&env, &owner("token-of-ada"))).error("tools/list").await;
        assert!(!has_received(&evil, "token-of-ada") && !has_received(&env.server, "token-of-ada"));
        assert_eq!(env.requests_of("token").len(), 0);
    }
    // The server is its own authorization server.
    let env = TestEnvironment::start().await;
    env.behavior().without_discovery = true;
    let error = env.client(exchanging(&env, &owner("token-of-ada"))).error("tools/list").await.to_string();
    assert!(error.contains("now requires tokens of"), "{error}");
    assert!(!has_received(&env.server, "token-of-ada"));
}

/// The issuer of callers, and an authorizer that asks it for assertions.
struct IdJagEnvironment {
    env: TestEnvironment,
    issuer: TestServer,
    behavior: Arc<Mutex<ServerBehavior>>,
}

impl IdJagEnvironment {
    async fn start() -> Self {
        let behavior = Arc::new(Mutex::new(ServerBehavior::default()));
        Self { env: TestEnvironment::start().await, issuer: start_issuer(&behavior).await, behavior }
    }

    fn authorizer(&self) -> OAuthAuthorizer {
        let identity = identity(&base_url(&self.issuer), "ada", "token-of-ada", 600);
        let issuer_client = TokenClient::new("at-issuer", Some(SecretText::new("issuer-secret")));
        let grant = CallerTokenGrant::IdJag { issuer_client };
        let server = server(&self.env, &Arc::new(InstanceOwner::new(identity)), grant);
        OAuthAuthorizer::new(server, TokenStore::in_memory()).unwrap()
    }

    fn assertion_requests(&self) -> Vec<Form> {
        self.behavior.lock().log.iter().map(|(_, form)| form.clone()).collect()
    }

    async fn error(&self) -> String {
        let error = self.env.client(self.authorizer()).error("tools/list").await.to_string();
        assert!(!error.contains("token-of-ada") && !error.contains("-secret"), "{error}");
        assert!(!has_received(&self.env.server, "token-of-ada"), "{error}");
        assert!(!has_received(&self.env.issuer, "token-of-ada"), "{error}");
        error
    }
}

#[tokio::test]
async fn the_issuer_of_the_caller_vouches_for_it() {
    let id_jag = IdJagEnvironment::start().await;
    let env = &id_jag.env;
    env.behavior().required_scopes.0 = texts(&["read"]);
    let client = env.client(id_jag.authorizer());
    assert_eq!(client.result("tools/list").await, json!({"access": "granted"}));
    let request = &id_jag.assertion_requests()[0];
    for (name, value) in [
        ("grant_type", EXCHANGE),
        ("requested_token_type", ID_JAG),
        ("subject_token", "token-of-ada"),
        ("subject_token_type", ACCESS_TOKEN),
        ("audience", &base_url(&env.issuer)),
        ("resource", &env.server.url),
        ("scope", "read"),
        ("basic", &format!("Basic {}", STANDARD.encode("at-issuer:issuer-secret"))),
    ] {
        assert_eq!(request[name], value, "{name}");
    }
    let request = &env.requests_of("token")[0];
    assert_eq!(request["grant_type"], "urn:ietf:params:oauth:grant-type:jwt-bearer");
    assert!(request["assertion"].starts_with("access-"));
    assert_eq!(request["basic"], format!("Basic {}", STANDARD.encode("gateway:gateway-secret")));
    assert!(!has_received(&env.issuer, "token-of-ada"), "only the caller's own issuer gets its token");
    assert!(!has_received(&env.server, &request["assertion"]) && !has_received(&env.server, "token-of-ada"));
    // Every token needs a new assertion.
    env.behavior().valid_tokens.clear();
    client.result("tools/list").await;
    assert_eq!((id_jag.assertion_requests().len(), env.requests_of("token").len()), (2, 2));
}

#[tokio::test]
async fn a_wrong_assertion_is_not_used() {
    let assertion = json!({"access_token": "assertion", "token_type": "N_A", "issued_token_type": ID_JAG});
    for (status, changes, expected) in [
        (200, json!({"issued_token_type": ACCESS_TOKEN}), "another type"),
        (200, json!({"issued_token_type": null}), "unknown type"),
        (200, json!({"access_token": "token-of-ada"}), "the token of the caller"),
        (400, json!({"error": "invalid_grant", "error_description": "token-of-ada"}), "(invalid_grant)"),
        (400, json!({"error": "unauthorized_client"}), "allow the client this grant"),
        (302, json!({}), "HTTP status 302"),
    ] {
        let id_jag = IdJagEnvironment::start().await;
        let mut body = assertion.clone();
        body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        id_jag.behavior.lock().token_response = Some((status, Vec::new(), body.to_string()));
        let error = id_jag.error().await;
        assert!(error.contains(expected), "{error}");
        assert_eq!(id_jag.env.requests_of("token").len(), 0, "{error}");
    }
}

#[tokio::test]
async fn an_authorization_server_that_refuses_or_repeats_the_assertion_is_reported() {
    for (status, body, expected) in [
        (400, json!({"error": "invalid_grant"}), "(invalid_grant)"),
        (200, json!({"access_token": "assertion", "token_type": "Bearer"}), "the assertion itself"),
        (200, json!({"access_token": "token-of-ada", "token_type": "Bearer"}), "the token of the caller"),
    ] {
        let id_jag = IdJagEnvironment::start().await;
        let assertion =
            json!({"access_token": "assertion", "token_type": "N_A", "issued_token_type": ID_JAG});
        id_jag.behavior.lock().token_response = Some((200, Vec::new(), assertion.to_string()));
        id_jag.env.behavior().token_response = Some((status, Vec::new(), body.to_string()));
        let error = id_jag.error().await;
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn metadata_of_another_issuer_get_no_token() {
    let id_jag = IdJagEnvironment::start().await;
    let other = json!("https://other.example");
    id_jag.behavior.lock().metadata.insert("issuer".to_owned(), other);
    let error = id_jag.error().await;
    assert!(error.contains("those of another issuer"), "{error}");
    let unsafe_endpoint = json!("http://id.example/token");
    let id_jag = IdJagEnvironment::start().await;
    id_jag.behavior.lock().metadata.insert("token_endpoint".to_owned(), unsafe_endpoint);
    let error = id_jag.error().await;
    assert!(error.contains("plain HTTP is allowed only on loopback"), "{error}");
}
