//! Tokens of callers, and logins whose redirect comes to a page of the gateway.

use std::sync::Arc;

use serde_json::json;
use toolyard_core::{CallerIdentity, DataOwner, ErrorKind, SourceSignal};
use url::Url;

use super::{
    super::{token_removal::REMOVAL_CHECK_INTERVAL, *},
    test_servers::*,
};
use crate::{Authorizer, RequestError, TransportError, config::McpServerConfig};

const REDIRECT_URI: &str = "https://tools.example/oauth/callback";

fn caller(name: &str) -> Arc<CallerIdentity> {
    Arc::new(CallerIdentity::principal("https://issuer.example", name))
}

impl TestEnvironment {
    fn authorizer_of(&self, store: &TokenStore, caller: Option<&Arc<CallerIdentity>>) -> OAuthAuthorizer {
        let server = OAuthServer { caller: caller.cloned(), ..self.oauth_server() };
        OAuthAuthorizer::new(server, store.clone()).unwrap()
    }
}

/// The parameters with which the authorization server redirects the person back.
async fn consent(login: &WebLogin) -> String {
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let response = http.get(login.url()).send().await.unwrap();
    let target = Url::parse(response.headers()["location"].to_str().unwrap()).unwrap();
    assert!(target.as_str().starts_with(REDIRECT_URI), "{target}");
    target.query().unwrap().to_owned()
}

async fn finish(login: WebLogin) -> Result<(), OAuthError> {
    let query = AuthorizationQuery::parse(&consent(&login).await).unwrap();
    assert_eq!(query.state.expose(), login.state().expose());
    login.finish(query.outcome.unwrap()).await
}

async fn sign_in(authorizer: &OAuthAuthorizer) {
    finish(authorizer.begin_web_login(REDIRECT_URI, None).await.unwrap()).await.unwrap();
}

/// The token that an authorizer sends.
async fn token(authorizer: &OAuthAuthorizer) -> Option<String> {
    authorizer.token().await.map(|header| header.value.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn tokens_of_a_caller_serve_nobody_else() {
    let env = TestEnvironment::start().await;
    let store = TokenStore::in_memory();
    let (ada, bob) = (caller("ada"), caller("bob"));
    sign_in(&env.authorizer_of(&store, None)).await;
    assert_eq!(token(&env.authorizer_of(&store, Some(&ada))).await, None, "not the operator's");
    sign_in(&env.authorizer_of(&store, Some(&ada))).await;
    assert_eq!(token(&env.authorizer_of(&store, Some(&bob))).await, None);
    sign_in(&env.authorizer_of(&store, Some(&bob))).await;
    let mut tokens = Vec::new();
    for owner in [None, Some(&ada), Some(&bob)] {
        tokens.push(token(&env.authorizer_of(&store, owner)).await.unwrap());
    }
    tokens.sort();
    tokens.dedup();
    assert_eq!(tokens.len(), 3, "three owners, three tokens");
    assert!(env.authorizer_of(&store, Some(&ada)).logout().await.unwrap());
    assert_eq!(token(&env.authorizer_of(&store, Some(&ada))).await, None);
    assert!(token(&env.authorizer_of(&store, Some(&bob))).await.is_some());
    assert!(token(&env.authorizer_of(&store, None)).await.is_some());
    let names: Vec<_> = store.sign_ins("notes").unwrap().into_iter().map(|found| found.caller).collect();
    assert_eq!(names, [Some("bob".to_owned())]);
}

#[tokio::test]
async fn a_caller_without_tokens_gets_a_typed_error_and_the_operator_another_one() {
    let env = TestEnvironment::start().await;
    env.behavior().required_scopes.0 = texts(&["notes:read"]);
    let store = TokenStore::in_memory();
    let error = env.client(env.authorizer_of(&store, Some(&caller("ada")))).error("tools/list").await;
    let TransportError::SignInRequired { challenge: Some(challenge), .. } = &error else {
        panic!("{error:?}")
    };
    assert!(challenge.contains("notes:read") && error.had_no_effect());
    let error = RequestError::Transport(error)
        .into_tool_error(&McpServerConfig::http("notes", "https://example.com/mcp"));
    assert_eq!((error.kind(), error.source_signal()), (ErrorKind::SignInRequired, SourceSignal::Healthy));
    assert!(error.had_no_effect() && !error.retryable());
    let error = env.client(env.authorizer_of(&store, None)).error("tools/list").await;
    assert!(matches!(error, TransportError::Status { status: 401, .. }), "{error:?}");
}

#[tokio::test]
async fn a_sign_in_lets_the_next_request_through_and_is_renewed_for_its_caller() {
    let env = TestEnvironment::start().await;
    env.behavior().required_scopes.0 = texts(&["notes:read"]);
    let supported = json!(["notes:read", "offline_access"]);
    env.behavior().metadata.insert("scopes_supported".to_owned(), supported);
    let store = TokenStore::in_memory();
    let ada = caller("ada");
    let client = env.client(env.authorizer_of(&store, Some(&ada)));
    let error = client.error("tools/list").await;
    let TransportError::SignInRequired { challenge, .. } = error else { panic!("{error:?}") };
    let authorizer = env.authorizer_of(&store, Some(&ada));
    let login = authorizer.begin_web_login(REDIRECT_URI, challenge.as_deref()).await.unwrap();
    assert!(!format!("{login:?}").contains(login.state().expose()));
    finish(login).await.unwrap();
    assert_eq!(
        client.result("tools/list").await,
        json!({"access": "granted"}),
        "the running instance has it"
    );
    let authorization = &env.requests_of("authorize")[0];
    assert_eq!(authorization["redirect_uri"], REDIRECT_URI);
    assert_eq!(
        (&*authorization["scope"], &*authorization["resource"]),
        ("notes:read offline_access", &*env.server.url)
    );
    env.behavior().valid_tokens.clear();
    assert_eq!(client.result("tools/list").await, json!({"access": "granted"}));
    let renewal = &env.requests_of("token")[1];
    assert_eq!(renewal["grant_type"], "refresh_token");
    assert!(
        !renewal.contains_key("scope"),
        "the server may not have granted all that was requested: {renewal:?}"
    );
    // Once the refresh token is refused, too, the caller must sign in again.
    env.behavior().valid_tokens.clear();
    env.behavior().refresh_tokens.clear();
    let error = client.error("tools/list").await;
    assert!(matches!(error, TransportError::SignInRequired { .. }), "{error:?}");
}

#[tokio::test]
async fn a_removed_sign_in_is_not_renewed() {
    let env = TestEnvironment::start().await;
    let store = TokenStore::in_memory();
    let ada = caller("ada");
    sign_in(&env.authorizer_of(&store, Some(&ada))).await;
    let client = env.client(env.authorizer_of(&store, Some(&ada)));
    client.result("tools/list").await;
    assert_eq!(store.remove_caller(ada.owner()).unwrap(), 1);
    env.behavior().valid_tokens.clear();
    let error = client.error("tools/list").await;
    assert!(matches!(error, TransportError::SignInRequired { .. }), "{error:?}");
    assert_eq!(env.requests_of("token").len(), 1, "the refresh token was not used");
    assert!(store.sign_ins("notes").unwrap().is_empty());
}

#[tokio::test]
async fn a_sign_in_that_is_removed_during_its_renewal_stays_removed() {
    let folder = tempfile::tempdir().unwrap();
    for store in [TokenStore::in_memory(), TokenStore::with_key_file(folder.path()).unwrap()] {
        let env = TestEnvironment::start().await;
        let ada = caller("ada");
        sign_in(&env.authorizer_of(&store, Some(&ada))).await;
        let authorizer = Arc::new(env.authorizer_of(&store, Some(&ada)));
        let client = env.client_sharing(&authorizer);
        client.result("tools/list").await;
        let (removing, owner) = (store.clone(), *ada.owner());
        env.behavior().on_token_request = Some(Box::new(move || {
            assert_eq!(removing.remove_caller(&owner).unwrap(), 1, "a removal does not wait");
        }));
        env.behavior().valid_tokens.clear();
        let error = client.error("tools/list").await;
        assert!(matches!(error, TransportError::SignInRequired { .. }), "{error:?}");
        assert_eq!(env.requests_of("token").len(), 2, "the renewal was in progress");
        assert!(store.sign_ins("notes").unwrap().is_empty());
        assert_eq!(token(&authorizer).await, None);
    }
}

#[tokio::test]
async fn a_sign_in_that_was_begun_before_a_removal_has_no_effect() {
    let folder = tempfile::tempdir().unwrap();
    for store in [TokenStore::in_memory(), TokenStore::with_key_file(folder.path()).unwrap()] {
        let env = TestEnvironment::start().await;
        let (ada, bob) = (caller("ada"), caller("bob"));
        let key = TokenKey::new("notes", DataOwner::Caller(*ada.owner()));
        let removals: [&dyn Fn(); 2] =
            [&|| assert_eq!(store.remove_caller(ada.owner()).unwrap(), 0), &|| {
                assert!(!store.remove(&key).unwrap());
            }];
        for remove in removals {
            let authorizer = env.authorizer_of(&store, Some(&ada));
            let login = authorizer.begin_web_login(REDIRECT_URI, None).await.unwrap();
            let of_bob = env.authorizer_of(&store, Some(&bob)).begin_web_login(REDIRECT_URI, None).await;
            remove();
            let error = finish(login).await.unwrap_err();
            assert!(matches!(error, OAuthError::SignInRemoved { .. }), "{error:?}");
            assert_eq!(token(&authorizer).await, None);
            finish(of_bob.unwrap()).await.unwrap();
        }
        let names: Vec<_> = store.sign_ins("notes").unwrap().into_iter().map(|found| found.caller).collect();
        assert_eq!(names, [Some("bob".to_owned())]);
        sign_in(&env.authorizer_of(&store, Some(&ada))).await;
        assert!(token(&env.authorizer_of(&store, Some(&ada))).await.is_some(), "a later sign-in counts");
    }
}

/// Lets the next request look for removals.
async fn pass_removal_check_interval() {
    tokio::time::pause();
    tokio::time::advance(REMOVAL_CHECK_INTERVAL).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_removal_ends_the_use_of_a_token_that_never_expires() {
    let env = TestEnvironment::start().await;
    let store = TokenStore::in_memory();
    let ada = caller("ada");
    sign_in(&env.authorizer_of(&store, Some(&ada))).await;
    let authorizer = Arc::new(env.authorizer_of(&store, Some(&ada)));
    let client = env.client_sharing(&authorizer);
    client.result("tools/list").await;
    pass_removal_check_interval().await;
    client.result("tools/list").await;
    store.remove_caller(ada.owner()).unwrap();
    pass_removal_check_interval().await;
    let error = client.error("tools/list").await;
    assert!(matches!(error, TransportError::SignInRequired { .. }), "{error:?}");
    assert_eq!(env.server.received().last().unwrap().header("authorization"), None);
    // A new sign-in is used again.
    sign_in(&env.authorizer_of(&store, Some(&ada))).await;
    client.result("tools/list").await;
}

#[tokio::test]
async fn missing_scopes_need_another_sign_in() {
    let env = TestEnvironment::start().await;
    env.behavior().required_scopes = (texts(&["read"]), texts(&["write"]));
    let store = TokenStore::in_memory();
    let ada = caller("ada");
    let client = env.client(env.authorizer_of(&store, Some(&ada)));
    let mut scopes = Vec::new();
    for method in ["tools/list", "tools/call"] {
        let error = client.error(method).await;
        let TransportError::SignInRequired { challenge, .. } = error else { panic!("{error:?}") };
        let authorizer = env.authorizer_of(&store, Some(&ada));
        finish(authorizer.begin_web_login(REDIRECT_URI, challenge.as_deref()).await.unwrap()).await.unwrap();
        scopes.push(env.requests_of("authorize").last().unwrap()["scope"].clone());
        client.result(method).await;
    }
    assert_eq!(scopes, ["read", "read write"]);
    assert_eq!(env.request_counts()[0], 1, "the client is registered once for a caller");
}

#[tokio::test]
async fn a_response_of_another_issuer_is_refused() {
    let env = TestEnvironment::start().await;
    env.behavior().metadata.insert("authorization_response_iss_parameter_supported".to_owned(), json!(true));
    env.behavior().redirect.insert("iss".to_owned(), "https://evil.example".to_owned());
    let store = TokenStore::in_memory();
    let authorizer = env.authorizer_of(&store, Some(&caller("ada")));
    let login = authorizer.begin_web_login(REDIRECT_URI, None).await.unwrap();
    let error = finish(login).await.unwrap_err();
    assert!(matches!(error, OAuthError::Refused(_)), "{error:?}");
    assert_eq!(env.requests_of("token").len(), 0, "the code was not redeemed");
    assert_eq!(token(&authorizer).await, None);
}

#[test]
fn queries_with_missing_or_repeated_parameters_are_refused() {
    for query in ["", "code=a", "state=s", "code=a&state=s&state=t", "code=a&code=b&state=s", "code=&state=s"]
    {
        assert!(AuthorizationQuery::parse(query).is_none(), "{query}");
    }
    let denied = AuthorizationQuery::parse("error=access_denied&state=s").unwrap();
    assert_eq!(denied.outcome.unwrap_err().trim(), "access_denied");
    let query = AuthorizationQuery::parse("code=s3cret&state=t0ken&iss=i").unwrap();
    assert!(!format!("{query:?}").contains("s3cret") && !format!("{query:?}").contains("t0ken"));
}
