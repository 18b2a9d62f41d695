//! Flows with a cooperative authorization server.

use std::{sync::Arc, time::Duration};

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;
use url::Url;

use super::{super::*, test_servers::*};
use crate::{Authorizer, SecretText, transport::http::test_server::ReceivedRequest};

#[tokio::test]
async fn a_login_lets_the_request_through() {
    let env = TestEnvironment::start().await;
    env.behavior().required_scopes.0 = texts(&["notes:read"]);
    let peer = env.peer(env.authorizer().with_browser(Arc::new(TestUser::default())));
    assert_eq!(peer.result("tools/list").await, json!({"let": "in"}));
    assert_eq!(peer.result("tools/list").await, json!({"let": "in"}));
    assert_eq!(env.counts(), [1, 1, 1]);

    let question = &env.all("authorize")[0];
    assert_eq!(question["code_challenge_method"], "S256");
    assert_eq!(question["resource"], env.server.url);
    assert_eq!(question["scope"], "notes:read");
    assert!(question["state"].len() >= 16);
    assert!(question["redirect_uri"].starts_with("http://127.0.0.1:"));
    assert_eq!(env.all("register")[0]["client_name"], "\"Toolyard\"");
    // The code, and only the code, goes to the token endpoint; the authorization server checked the verifier.
    assert_eq!(env.all("token")[0]["resource"], env.server.url);
}

#[tokio::test]
async fn without_a_browser_an_error_names_the_command() {
    let env = TestEnvironment::start().await;
    let authorizer = env.authorizer();
    assert!(authorizer.token().await.is_none());
    assert_eq!(authorizer.state().await.unwrap(), None);
    let error = env.peer(authorizer).error("tools/list").await;
    assert!(error.to_string().contains("run `toolyard servers login notes`"), "{error}");
    assert_eq!(env.counts(), [0, 0, 0]);
}

#[tokio::test]
async fn concurrent_requests_share_one_renewal() {
    let env = TestEnvironment::start().await;
    let authorizer = Arc::new(env.authorizer().with_browser(Arc::new(TestUser::default())));
    let peer = env.peer_of(&authorizer);
    peer.result("tools/list").await;
    env.behavior().valid_tokens.clear();
    let asked = (0..8).map(|_| peer.result("tools/list"));
    for answer in futures_util::future::join_all(asked).await {
        assert_eq!(answer, json!({"let": "in"}));
    }
    let tokens = env.all("token");
    assert_eq!(tokens.len(), 2, "{tokens:?}");
    assert_eq!(tokens[1]["grant_type"], "refresh_token");
    assert_eq!(tokens[1]["resource"], env.server.url);
    assert_eq!(env.counts()[1], 1, "nobody was asked again");
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires() {
    let env = TestEnvironment::start().await;
    env.behavior().lifetime = Some(1);
    let peer = env.peer(env.authorizer().with_browser(Arc::new(TestUser::default())));
    peer.result("tools/list").await;
    env.behavior().lifetime = Some(3600);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    peer.result("tools/list").await;
    peer.result("tools/list").await;
    assert_eq!(env.counts(), [1, 1, 2]);
    let refused =
        |request: &&ReceivedRequest| request.method == "POST" && request.header("authorization").is_none();
    assert_eq!(env.server.received().iter().filter(refused).count(), 1, "only the first message");
}

#[tokio::test]
async fn tokens_are_shared_between_processes() {
    let env = TestEnvironment::start().await;
    let folder = tempfile::tempdir().unwrap();
    let authorizer = || {
        let store = TokenStore::with_key_file(folder.path().join("oauth")).unwrap();
        OAuthAuthorizer::new(env.oauth_server(), store).unwrap()
    };
    env.peer(authorizer().with_browser(Arc::new(TestUser::default()))).result("tools/list").await;

    // Two processes start later, and nobody is there.
    let (first, second) = (env.peer(authorizer()), env.peer(authorizer()));
    first.result("tools/list").await;
    second.result("tools/list").await;
    assert_eq!(env.counts(), [1, 1, 1]);
    // A refresh token is good once: the second takes what the first got.
    env.behavior().valid_tokens.clear();
    first.result("tools/list").await;
    second.result("tools/list").await;
    assert_eq!(env.counts(), [1, 1, 2]);
    env.behavior().valid_tokens.clear();
    let (one, other) = tokio::join!(first.request("tools/list"), second.request("tools/list"));
    assert!(one.is_ok() && other.is_ok());
    assert_eq!(env.counts(), [1, 1, 3]);

    let state = authorizer().state().await.unwrap().unwrap();
    assert_eq!((state.issuer, state.is_renewable), (address(&env.issuer), true));
    assert!(authorizer().logout().await.unwrap());
    let error = env.peer(authorizer()).error("tools/list").await;
    assert!(error.to_string().contains("servers login notes"), "{error}");
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
    env.peer(authorizer(Some(TestUser::default()))).result("tools/list").await;
    let error = env.peer(authorizer(None)).error("tools/call").await;
    assert!(error.to_string().contains("servers login notes --scope \"write\""), "{error}");
    env.peer(authorizer(Some(TestUser::default()))).result("tools/call").await;
    let scopes: Vec<_> = env.all("authorize").into_iter().map(|question| question["scope"].clone()).collect();
    assert_eq!(scopes, ["read offline_access", "read offline_access write"]);
}

#[tokio::test]
async fn the_same_scopes_are_not_requested_twice() {
    let env = TestEnvironment::start().await;
    env.behavior().required_scopes = (texts(&["read"]), texts(&["read", "admin"]));
    let peer = env.peer(env.authorizer().with_browser(Arc::new(TestUser::default())));
    peer.result("tools/list").await;
    // Whatever is granted, calls are refused.
    env.behavior().required_scopes.1 = texts(&["read"]);
    env.behavior().valid_tokens.values_mut().for_each(Vec::clear);
    let error = peer.error("tools/call").await;
    assert!(error.to_string().contains("refuses a token with the requested scopes read"), "{error}");
    assert_eq!(env.counts()[1], 1);
}

#[tokio::test]
async fn a_denied_login_is_an_error() {
    let env = TestEnvironment::start().await;
    env.behavior().redirect = [("code", ""), ("error", "access_denied")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let error =
        env.peer(env.authorizer().with_browser(Arc::new(TestUser::default()))).error("tools/list").await;
    assert!(error.to_string().contains("access_denied"), "{error}");
    assert_eq!(env.all("token").len(), 0);
}

#[tokio::test]
async fn a_rejected_renewal_leads_to_a_login() {
    let env = TestEnvironment::start().await;
    let store = TokenStore::in_memory();
    let authorizer = || OAuthAuthorizer::new(env.oauth_server(), store.clone()).unwrap();
    env.peer(authorizer().with_browser(Arc::new(TestUser::default()))).result("tools/list").await;
    env.behavior().valid_tokens.clear();
    env.behavior().refresh_tokens.clear();
    let error = env.peer(authorizer()).error("tools/list").await;
    assert!(error.to_string().contains("servers login notes"), "{error}");
    env.peer(authorizer().with_browser(Arc::new(TestUser::default()))).result("tools/list").await;
    assert_eq!(env.counts()[1], 2);
    // An authorization server in trouble is no reason to ask a person.
    env.behavior().valid_tokens.clear();
    env.behavior().token_answer = Some((503, Vec::new(), "later".to_owned()));
    let error = env.peer(authorizer().with_browser(Arc::new(TestUser::default()))).error("tools/list").await;
    assert!(error.to_string().contains("returned no token"), "{error}");
    assert_eq!(env.counts()[1], 2);
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
    let peer = env.peer(authorizer.with_browser(Arc::new(TestUser::default())));
    peer.result("tools/list").await;
    env.behavior().valid_tokens.clear();
    peer.result("tools/list").await;
    assert_eq!(env.counts(), [0, 1, 2]);
    assert_eq!(env.all("authorize")[0]["scope"], "mine");
    let basic = format!("Basic {}", STANDARD.encode("by-hand:by-hand-secret"));
    assert!(env.all("token").iter().all(|asked| asked["basic"] == basic));
}

#[tokio::test]
async fn a_metadata_document_replaces_registration_where_supported() {
    let env = TestEnvironment::start().await;
    let mut server = env.oauth_server();
    let document = "https://toolyard.example.org/client.json";
    server.identity = ClientIdentity::Unregistered { metadata_url: Some(document.to_owned()) };
    let authorizer = || OAuthAuthorizer::new(server.clone(), TokenStore::in_memory()).unwrap();
    authorizer().with_browser(Arc::new(TestUser::default())).login(&[]).await.unwrap();
    assert_eq!(env.counts(), [1, 1, 1]);
    env.behavior().metadata.insert("client_id_metadata_document_supported".to_owned(), json!(true));
    authorizer().with_browser(Arc::new(TestUser::default())).login(&[]).await.unwrap();
    assert_eq!(env.counts(), [1, 2, 2]);
    assert_eq!(env.all("authorize")[1]["client_id"], document);
}

#[tokio::test]
async fn client_credentials_need_no_user() {
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    let pem =
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", STANDARD.encode(key.as_ref()));
    for authentication in [
        ClientAuthentication::Secret(SecretText::new("machine-secret")),
        ClientAuthentication::PrivateKey { pem: SecretText::new(pem), algorithm: "ES256".to_owned() },
    ] {
        let env = TestEnvironment::start().await;
        env.behavior().required_scopes.0 = texts(&["read"]);
        let mut server = env.oauth_server();
        server.identity =
            ClientIdentity::ClientCredentials { client_id: "machine".to_owned(), authentication };
        let peer = env.peer(OAuthAuthorizer::new(server, TokenStore::in_memory()).unwrap());
        peer.result("tools/list").await;
        env.behavior().valid_tokens.clear();
        peer.result("tools/list").await;
        assert_eq!(env.counts(), [0, 0, 2]);
        let asked = &env.all("token")[0];
        assert_eq!((asked["grant_type"].as_str(), asked["scope"].as_str()), ("client_credentials", "read"));
        assert_eq!(asked["resource"], env.server.url);
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
    env.peer(authorizer).result("tools/list").await;
    assert_eq!(env.counts(), [1, 1, 1]);
}

#[tokio::test]
async fn assertions_are_exchanged_for_tokens() {
    let env = TestEnvironment::start().await;
    let mut server = env.oauth_server();
    let authentication = ClientAuthentication::Assertion(SecretText::new("word"));
    server.identity = ClientIdentity::ClientCredentials { client_id: "workload".to_owned(), authentication };
    env.peer(OAuthAuthorizer::new(server.clone(), TokenStore::in_memory()).unwrap())
        .result("tools/list")
        .await;
    // The word of a company's identity provider is got first, for this issuer and this server.
    let authentication = ClientAuthentication::IdentityProvider {
        client_secret: SecretText::new("a b"),
        token_endpoint: Url::parse(&format!("{}/token", address(&env.issuer))).unwrap(),
        client_id: "known-as".to_owned(),
        id_token: SecretText::new("person"),
    };
    server.identity = ClientIdentity::ClientCredentials { client_id: "workload".to_owned(), authentication };
    env.peer(OAuthAuthorizer::new(server, TokenStore::in_memory()).unwrap()).result("tools/list").await;

    let asked = env.all("token");
    assert_eq!((asked[0]["assertion"].as_str(), asked[0]["client_id"].as_str()), ("word", "workload"));
    assert_eq!((asked[1]["subject_token"].as_str(), asked[1]["client_id"].as_str()), ("person", "known-as"));
    assert_eq!((&asked[1]["audience"], &asked[1]["resource"]), (&address(&env.issuer), &env.server.url));
    assert!(asked[2]["assertion"].starts_with("access-"), "the word, not the person's own token");
    assert_eq!(asked[2]["basic"], format!("Basic {}", STANDARD.encode("workload:a+b")));
}

#[tokio::test]
async fn tokens_are_bound_to_a_key_and_renewed_with_the_same_key() {
    let env = TestEnvironment::start().await;
    env.behavior().dpop_nonce = Some("nonce-1".to_owned());
    env.behavior().metadata.insert("dpop_signing_alg_values_supported".to_owned(), json!(["ES256"]));
    let store = TokenStore::in_memory();
    let authorizer = OAuthAuthorizer::new(env.oauth_server(), store.clone()).unwrap();
    let peer = env.peer(authorizer.with_browser(Arc::new(TestUser::default())));
    assert_eq!(peer.result("tools/list").await, json!({"let": "in"}));
    env.behavior().dpop_nonce = Some("nonce-2".to_owned());
    env.behavior().valid_tokens.clear();
    assert_eq!(peer.result("tools/list").await, json!({"let": "in"}));
    assert_eq!(env.counts()[1], 1, "neither a nonce nor a renewal is a reason to ask a person");
    // Another process takes up the token and its key.
    let other = env.peer(OAuthAuthorizer::new(env.oauth_server(), store).unwrap());
    assert_eq!(other.result("tools/list").await, json!({"let": "in"}));
    let (mut keys, mut proofs) = (Vec::new(), Vec::new());
    for request in env.server.received().iter().filter(|request| request.header("dpop").is_some()) {
        let proof = request.header("dpop").unwrap().to_owned();
        keys.push(proof.split('.').next().unwrap().to_owned());
        proofs.push(proof);
    }
    keys.dedup();
    assert_eq!(keys.len(), 1, "one key for all");
    let count = proofs.len();
    proofs.sort_unstable();
    proofs.dedup();
    assert_eq!(proofs.len(), count, "no proof twice");
}
