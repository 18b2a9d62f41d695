//! Flows with a cooperative authorization server.

use std::{sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;
use url::Url;

use super::{super::*, test_servers::*};
use crate::{Authorizer, SecretText, transport::http::test_server::ReceivedRequest};

#[tokio::test]
async fn a_login_lets_the_request_through() {
    let env = TestEnvironment::start().await;
    env.behavior().required_scopes.0 = texts(&["notes:read"]);
    let client = env.client(env.authorizer().with_browser(Arc::new(TestUser::default())));
    assert_eq!(client.result("tools/list").await, json!({"access": "granted"}));
    assert_eq!(client.result("tools/list").await, json!({"access": "granted"}));
    assert_eq!(env.request_counts(), [1, 1, 1]);

    let authorization = &env.requests_of("authorize")[0];
    assert_eq!(authorization["code_challenge_method"], "S256");
    assert_eq!(authorization["resource"], env.server.url);
    assert_eq!(authorization["scope"], "notes:read");
    assert!(authorization["state"].len() >= 16);
    assert!(authorization["redirect_uri"].starts_with("http://127.0.0.1:"));
    assert_eq!(env.requests_of("register")[0]["client_name"], "\"Toolyard\"");
    // The test authorization server has checked the code and its verifier.
    assert_eq!(env.requests_of("token")[0]["resource"], env.server.url);
}

#[tokio::test]
async fn without_a_browser_an_error_says_that_a_login_is_required() {
    let env = TestEnvironment::start().await;
    let authorizer = env.authorizer();
    assert!(authorizer.token().await.is_none());
    assert_eq!(authorizer.state().await.unwrap(), None);
    let error = env.client(authorizer).error("tools/list").await;
    assert!(error.to_string().contains("server `notes` requires authentication"), "{error}");
    assert_eq!(env.request_counts(), [0, 0, 0]);
}

#[tokio::test]
async fn concurrent_requests_share_one_renewal() {
    let env = TestEnvironment::start().await;
    let authorizer = Arc::new(env.authorizer().with_browser(Arc::new(TestUser::default())));
    let client = env.client_sharing(&authorizer);
    client.result("tools/list").await;
    env.behavior().valid_tokens.clear();
    let requests = (0..8).map(|_| client.result("tools/list"));
    for answer in futures_util::future::join_all(requests).await {
        assert_eq!(answer, json!({"access": "granted"}));
    }
    let tokens = env.requests_of("token");
    assert_eq!(tokens.len(), 2, "{tokens:?}");
    assert_eq!(tokens[1]["grant_type"], "refresh_token");
    assert_eq!(tokens[1]["resource"], env.server.url);
    assert_eq!(env.request_counts()[1], 1, "the user was not asked again");
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires() {
    let env = TestEnvironment::start().await;
    env.behavior().lifetime = Some(1);
    let client = env.client(env.authorizer().with_browser(Arc::new(TestUser::default())));
    client.result("tools/list").await;
    env.behavior().lifetime = Some(3600);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    client.result("tools/list").await;
    client.result("tools/list").await;
    assert_eq!(env.request_counts(), [1, 1, 2]);
    let without_token =
        |request: &&ReceivedRequest| request.method == "POST" && request.header("authorization").is_none();
    assert_eq!(env.server.received().iter().filter(without_token).count(), 1, "only the first request");
}

#[tokio::test]
async fn tokens_are_shared_between_processes() {
    let env = TestEnvironment::start().await;
    let folder = tempfile::tempdir().unwrap();
    let authorizer = || {
        let store = TokenStore::with_key_file(folder.path().join("oauth")).unwrap();
        OAuthAuthorizer::new(env.oauth_server(), store).unwrap()
    };
    env.client(authorizer().with_browser(Arc::new(TestUser::default()))).result("tools/list").await;

    // Two processes start later, without a user.
    let (first, second) = (env.client(authorizer()), env.client(authorizer()));
    first.result("tools/list").await;
    second.result("tools/list").await;
    assert_eq!(env.request_counts(), [1, 1, 1]);
    // A refresh token is valid once: the second process uses the token that the first one got.
    env.behavior().valid_tokens.clear();
    first.result("tools/list").await;
    second.result("tools/list").await;
    assert_eq!(env.request_counts(), [1, 1, 2]);
    env.behavior().valid_tokens.clear();
    let (one, other) = tokio::join!(first.request("tools/list"), second.request("tools/list"));
    assert!(one.is_ok() && other.is_ok());
    assert_eq!(env.request_counts(), [1, 1, 3]);

    let state = authorizer().state().await.unwrap().unwrap();
    assert_eq!((state.issuer, state.is_renewable), (base_url(&env.issuer), true));
    assert!(authorizer().logout().await.unwrap());
    let error = env.client(authorizer()).error("tools/list").await;
    assert!(error.to_string().contains("server `notes` requires authentication"), "{error}");
}

#[tokio::test]
async fn missing_scopes_are_requested() {
    let env = TestEnvironment::start().await;
    env.behavior().required_scopes = (texts(&["read"]), texts(&["write"]));
    env.behavior().metadata.insert("scopes_supported".to_owned(), json!(["read", "write", "offline_access"]));
    let store = TokenStore::in_memory();
    let authorizer = |user: Option<TestUser>| {
        let authorizer = OAuthAuthorizer::new(env.oauth_server(), store.clone()).unwrap();
        match user {
            Some(user) => authorizer.with_browser(Arc::new(user)),
            None => authorizer,
        }
    };
    env.client(authorizer(Some(TestUser::default()))).result("tools/list").await;
    let error = env.client(authorizer(None)).error("tools/call").await;
    assert!(error.to_string().contains("server `notes` lacks the scopes write"), "{error}");
    env.client(authorizer(Some(TestUser::default()))).result("tools/call").await;
    let scopes: Vec<_> = env
        .requests_of("authorize")
        .into_iter()
        .map(|authorization| authorization["scope"].clone())
        .collect();
    assert_eq!(scopes, ["read offline_access", "read offline_access write"]);
}

#[tokio::test]
async fn the_same_scopes_are_not_requested_twice() {
    let env = TestEnvironment::start().await;
    env.behavior().required_scopes = (texts(&["read"]), texts(&["read", "admin"]));
    let client = env.client(env.authorizer().with_browser(Arc::new(TestUser::default())));
    client.result("tools/list").await;
    // Whatever is granted, calls are refused.
    env.behavior().required_scopes.1 = texts(&["read"]);
    env.behavior().valid_tokens.values_mut().for_each(Vec::clear);
    let error = client.error("tools/call").await;
    assert!(error.to_string().contains("refuses a token with the requested scopes read"), "{error}");
    assert_eq!(env.request_counts()[1], 1);
}

#[tokio::test]
async fn a_denied_login_is_an_error() {
    let env = TestEnvironment::start().await;
    env.behavior().redirect = [("code", ""), ("error", "access_denied")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let error =
        env.client(env.authorizer().with_browser(Arc::new(TestUser::default()))).error("tools/list").await;
    assert!(error.to_string().contains("access_denied"), "{error}");
    assert_eq!(env.requests_of("token").len(), 0);
}

#[tokio::test]
async fn a_rejected_renewal_leads_to_a_login() {
    let env = TestEnvironment::start().await;
    let store = TokenStore::in_memory();
    let authorizer = || OAuthAuthorizer::new(env.oauth_server(), store.clone()).unwrap();
    env.client(authorizer().with_browser(Arc::new(TestUser::default()))).result("tools/list").await;
    env.behavior().valid_tokens.clear();
    env.behavior().refresh_tokens.clear();
    let error = env.client(authorizer()).error("tools/list").await;
    assert!(error.to_string().contains("server `notes` requires authentication"), "{error}");
    env.client(authorizer().with_browser(Arc::new(TestUser::default()))).result("tools/list").await;
    assert_eq!(env.request_counts()[1], 2);
    // A failing authorization server is no reason to ask the user.
    env.behavior().valid_tokens.clear();
    env.behavior().token_response = Some((503, Vec::new(), "later".to_owned()));
    let error =
        env.client(authorizer().with_browser(Arc::new(TestUser::default()))).error("tools/list").await;
    assert!(error.to_string().contains("returned no token"), "{error}");
    assert_eq!(env.request_counts()[1], 2);
}

#[tokio::test]
async fn a_configured_client_is_not_registered() {
    let env = TestEnvironment::start().await;
    let mut server = env.oauth_server();
    server.identity = ClientIdentity::Registered {
        client_id: "by-hand".to_owned(),
        client_secret: Some(SecretText::new("by-hand-secret")),
    };
    server.scopes = texts(&["mine"]);
    let authorizer = OAuthAuthorizer::new(server, TokenStore::in_memory()).unwrap();
    let client = env.client(authorizer.with_browser(Arc::new(TestUser::default())));
    client.result("tools/list").await;
    env.behavior().valid_tokens.clear();
    client.result("tools/list").await;
    assert_eq!(env.request_counts(), [0, 1, 2]);
    assert_eq!(env.requests_of("authorize")[0]["scope"], "mine");
    let basic = format!("Basic {}", STANDARD.encode("by-hand:by-hand-secret"));
    assert!(env.requests_of("token").iter().all(|parameters| parameters["basic"] == basic));
}

#[tokio::test]
async fn a_metadata_document_replaces_registration_where_supported() {
    let env = TestEnvironment::start().await;
    let mut server = env.oauth_server();
    let document = "https://toolyard.example.org/client.json";
    server.identity = ClientIdentity::Unregistered { metadata_url: Some(document.to_owned()) };
    let authorizer = || OAuthAuthorizer::new(server.clone(), TokenStore::in_memory()).unwrap();
    authorizer().with_browser(Arc::new(TestUser::default())).login(&[]).await.unwrap();
    assert_eq!(env.request_counts(), [1, 1, 1]);
    env.behavior().metadata.insert("client_id_metadata_document_supported".to_owned(), json!(true));
    authorizer().with_browser(Arc::new(TestUser::default())).login(&[]).await.unwrap();
    assert_eq!(env.request_counts(), [1, 2, 2]);
    assert_eq!(env.requests_of("authorize")[1]["client_id"], document);
}

#[tokio::test]
async fn client_credentials_need_no_user() {
    let pem = ec_key_pem();
    for authentication in [
        ClientAuthentication::Secret(SecretText::new("machine-secret")),
        ClientAuthentication::PrivateKey { pem: SecretText::new(pem), algorithm: "ES256".to_owned() },
    ] {
        let env = TestEnvironment::start().await;
        env.behavior().required_scopes.0 = texts(&["read"]);
        let mut server = env.oauth_server();
        server.identity =
            ClientIdentity::ClientCredentials { client_id: "machine".to_owned(), authentication };
        let client = env.client(OAuthAuthorizer::new(server, TokenStore::in_memory()).unwrap());
        client.result("tools/list").await;
        env.behavior().valid_tokens.clear();
        client.result("tools/list").await;
        assert_eq!(env.request_counts(), [0, 0, 2]);
        let request = &env.requests_of("token")[0];
        assert_eq!(
            (request["grant_type"].as_str(), request["scope"].as_str()),
            ("client_credentials", "read")
        );
        assert_eq!(request["resource"], env.server.url);
    }
}

#[tokio::test]
async fn a_server_without_metadata_is_its_own_authorization_server() {
    let env = TestEnvironment::start().await;
    env.behavior().without_discovery = true;
    let authorizer = env.authorizer().with_browser(Arc::new(TestUser::default()));
    let error = authorizer.login(&[]).await.unwrap_err();
    assert!(error.to_string().contains("publishes no authorization metadata"), "{error}");
    env.behavior().redirect.insert("iss".to_owned(), String::new());
    env.client(authorizer).result("tools/list").await;
    assert_eq!(env.request_counts(), [1, 1, 1]);
}

#[tokio::test]
async fn assertions_are_exchanged_for_tokens() {
    let env = TestEnvironment::start().await;
    let mut server = env.oauth_server();
    let authentication = ClientAuthentication::Assertion(SecretText::new("signed-assertion"));
    server.identity = ClientIdentity::ClientCredentials { client_id: "workload".to_owned(), authentication };
    env.client(OAuthAuthorizer::new(server.clone(), TokenStore::in_memory()).unwrap())
        .result("tools/list")
        .await;
    // The assertion of a company's identity provider is requested first, for this issuer and this server.
    let authentication = ClientAuthentication::IdentityProvider {
        client_secret: SecretText::new("a b"),
        token_endpoint: Url::parse(&format!("{}/token", base_url(&env.issuer))).unwrap(),
        client_id: "known-as".to_owned(),
        id_token: SecretText::new("user-id-token"),
    };
    server.identity = ClientIdentity::ClientCredentials { client_id: "workload".to_owned(), authentication };
    env.client(OAuthAuthorizer::new(server, TokenStore::in_memory()).unwrap()).result("tools/list").await;

    let requests = env.requests_of("token");
    assert_eq!(
        (requests[0]["assertion"].as_str(), requests[0]["client_id"].as_str()),
        ("signed-assertion", "workload")
    );
    assert_eq!(
        (requests[1]["subject_token"].as_str(), requests[1]["client_id"].as_str()),
        ("user-id-token", "known-as")
    );
    assert_eq!(
        (&requests[1]["audience"], &requests[1]["resource"]),
        (&base_url(&env.issuer), &env.server.url)
    );
    assert!(requests[2]["assertion"].starts_with("access-"), "the assertion, not the user's id token");
    assert_eq!(requests[2]["basic"], format!("Basic {}", STANDARD.encode("workload:a+b")));
}
