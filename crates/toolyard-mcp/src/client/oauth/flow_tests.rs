//! Whole flows against an authorization server and a server that asks for its tokens.

use std::{sync::Arc, time::Duration};

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;
use url::Url;

use super::{test_servers::*, *};
use crate::client::{Authorizer, http_test_server::Seen};

#[tokio::test]
async fn a_person_consents_and_the_message_gets_through() {
    let world = World::start().await;
    world.rules().needs.0 = texts(&["notes:read"]);
    let peer = world.peer(world.authorizer().with_browser(Arc::new(Person::default())));
    assert_eq!(peer.result("tools/list").await, json!({"let": "in"}));
    assert_eq!(peer.result("tools/list").await, json!({"let": "in"}));
    assert_eq!(world.counts(), [1, 1, 1]);

    let question = &world.all("authorize")[0];
    assert_eq!(question["code_challenge_method"], "S256");
    assert_eq!(question["resource"], world.server.url);
    assert_eq!(question["scope"], "notes:read");
    assert!(question["state"].len() >= 16);
    assert!(question["redirect_uri"].starts_with("http://127.0.0.1:"));
    assert_eq!(world.all("register")[0]["client_name"], "\"Toolyard\"");
    // The code, and only the code, goes to the token endpoint; the authorization server checked the verifier.
    assert_eq!(world.all("token")[0]["resource"], world.server.url);
}

#[tokio::test]
async fn without_a_person_an_error_says_what_to_run() {
    let world = World::start().await;
    let authorizer = world.authorizer();
    assert!(authorizer.token().await.is_none());
    assert_eq!(authorizer.state().await.unwrap(), None);
    let error = world.peer(authorizer).error("tools/list").await;
    assert!(error.to_string().contains("run `toolyard servers login notes`"), "{error}");
    assert_eq!(world.counts(), [0, 0, 0]);
}

#[tokio::test]
async fn a_refused_token_is_renewed_once_for_all() {
    let world = World::start().await;
    let authorizer = Arc::new(world.authorizer().with_browser(Arc::new(Person::default())));
    let peer = world.peer_of(&authorizer);
    peer.result("tools/list").await;
    world.rules().good.clear();
    let asked = (0..8).map(|_| peer.result("tools/list"));
    for answer in futures_util::future::join_all(asked).await {
        assert_eq!(answer, json!({"let": "in"}));
    }
    let tokens = world.all("token");
    assert_eq!(tokens.len(), 2, "{tokens:?}");
    assert_eq!(tokens[1]["grant_type"], "refresh_token");
    assert_eq!(tokens[1]["resource"], world.server.url);
    assert_eq!(world.counts()[1], 1, "nobody was asked again");
}

#[tokio::test]
async fn a_token_is_renewed_ahead_of_its_end() {
    let world = World::start().await;
    world.rules().lifetime = Some(1);
    let peer = world.peer(world.authorizer().with_browser(Arc::new(Person::default())));
    peer.result("tools/list").await;
    world.rules().lifetime = Some(3600);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    peer.result("tools/list").await;
    peer.result("tools/list").await;
    assert_eq!(world.counts(), [1, 1, 2]);
    let refused = |seen: &&Seen| seen.method == "POST" && seen.header("authorization").is_none();
    assert_eq!(world.server.seen().iter().filter(refused).count(), 1, "only the first message");
}

#[tokio::test]
async fn tokens_outlive_the_process_and_are_shared() {
    let world = World::start().await;
    let folder = tempfile::tempdir().unwrap();
    let authorizer = || {
        let store = TokenStore::with_own_key(folder.path().join("oauth")).unwrap();
        OAuthAuthorizer::new(world.oauth_server(), store).unwrap()
    };
    world.peer(authorizer().with_browser(Arc::new(Person::default()))).result("tools/list").await;

    // Two processes start later, and nobody is there.
    let (first, second) = (world.peer(authorizer()), world.peer(authorizer()));
    first.result("tools/list").await;
    second.result("tools/list").await;
    assert_eq!(world.counts(), [1, 1, 1]);
    // A refresh token is good once: the second takes what the first got.
    world.rules().good.clear();
    first.result("tools/list").await;
    second.result("tools/list").await;
    assert_eq!(world.counts(), [1, 1, 2]);
    world.rules().good.clear();
    let (one, other) = tokio::join!(first.ask("tools/list"), second.ask("tools/list"));
    assert!(one.is_ok() && other.is_ok());
    assert_eq!(world.counts(), [1, 1, 3]);

    let state = authorizer().state().await.unwrap().unwrap();
    assert_eq!((state.issuer, state.renewable), (address(&world.issuer), true));
    assert!(authorizer().logout().await.unwrap());
    let error = world.peer(authorizer()).error("tools/list").await;
    assert!(error.to_string().contains("servers login notes"), "{error}");
}

#[tokio::test]
async fn more_is_asked_for_when_more_is_needed() {
    let world = World::start().await;
    world.rules().needs = (texts(&["read"]), texts(&["write"]));
    world.rules().metadata.insert("scopes_supported".to_owned(), json!(["read", "write", "offline_access"]));
    let store = TokenStore::in_memory();
    let authorizer = |person: Option<Person>| {
        let authorizer = OAuthAuthorizer::new(world.oauth_server(), store.clone()).unwrap();
        match person {
            Some(person) => authorizer.with_browser(Arc::new(person)),
            None => authorizer,
        }
    };
    world.peer(authorizer(Some(Person::default()))).result("tools/list").await;
    let error = world.peer(authorizer(None)).error("tools/call").await;
    assert!(error.to_string().contains("servers login notes --scope \"write\""), "{error}");
    world.peer(authorizer(Some(Person::default()))).result("tools/call").await;
    let scopes: Vec<_> =
        world.all("authorize").into_iter().map(|question| question["scope"].clone()).collect();
    assert_eq!(scopes, ["read offline_access", "read offline_access write"]);
}

#[tokio::test]
async fn nobody_is_asked_twice_for_the_same() {
    let world = World::start().await;
    world.rules().needs = (texts(&["read"]), texts(&["read", "admin"]));
    let peer = world.peer(world.authorizer().with_browser(Arc::new(Person::default())));
    peer.result("tools/list").await;
    // Whatever is granted, calls are refused.
    world.rules().needs.1 = texts(&["read"]);
    world.rules().good.values_mut().for_each(Vec::clear);
    let error = peer.error("tools/call").await;
    assert!(error.to_string().contains("refuses a token that was asked for read"), "{error}");
    assert_eq!(world.counts()[1], 1);
}

#[tokio::test]
async fn a_person_may_say_no() {
    let world = World::start().await;
    world.rules().redirect = [("code", ""), ("error", "access_denied")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let error =
        world.peer(world.authorizer().with_browser(Arc::new(Person::default()))).error("tools/list").await;
    assert!(error.to_string().contains("access_denied"), "{error}");
    assert_eq!(world.all("token").len(), 0);
}

#[tokio::test]
async fn a_rejected_renewal_leads_to_a_person() {
    let world = World::start().await;
    let store = TokenStore::in_memory();
    let authorizer = || OAuthAuthorizer::new(world.oauth_server(), store.clone()).unwrap();
    world.peer(authorizer().with_browser(Arc::new(Person::default()))).result("tools/list").await;
    world.rules().good.clear();
    world.rules().refresh_tokens.clear();
    let error = world.peer(authorizer()).error("tools/list").await;
    assert!(error.to_string().contains("servers login notes"), "{error}");
    world.peer(authorizer().with_browser(Arc::new(Person::default()))).result("tools/list").await;
    assert_eq!(world.counts()[1], 2);
    // An authorization server in trouble is no reason to ask a person.
    world.rules().good.clear();
    world.rules().token_answer = Some((503, Vec::new(), "later".to_owned()));
    let error = world.peer(authorizer().with_browser(Arc::new(Person::default()))).error("tools/list").await;
    assert!(error.to_string().contains("gave no token"), "{error}");
    assert_eq!(world.counts()[1], 2);
}

#[tokio::test]
async fn a_client_registered_by_hand_is_not_registered_again() {
    let world = World::start().await;
    let mut server = world.oauth_server();
    server.identity = ClientIdentity::Registered {
        client_id: "by-hand".to_owned(),
        client_secret: Some(HiddenText::new("by-hand-secret")),
    };
    server.scopes = texts(&["mine"]);
    let authorizer = OAuthAuthorizer::new(server, TokenStore::in_memory()).unwrap();
    let peer = world.peer(authorizer.with_browser(Arc::new(Person::default())));
    peer.result("tools/list").await;
    world.rules().good.clear();
    peer.result("tools/list").await;
    assert_eq!(world.counts(), [0, 1, 2]);
    assert_eq!(world.all("authorize")[0]["scope"], "mine");
    let basic = format!("Basic {}", STANDARD.encode("by-hand:by-hand-secret"));
    assert!(world.all("token").iter().all(|asked| asked["basic"] == basic));
}

#[tokio::test]
async fn a_metadata_document_stands_for_registration_where_it_is_taken() {
    let world = World::start().await;
    let mut server = world.oauth_server();
    let document = "https://toolyard.example.org/client.json";
    server.identity = ClientIdentity::Unregistered { metadata_url: Some(document.to_owned()) };
    let authorizer = || OAuthAuthorizer::new(server.clone(), TokenStore::in_memory()).unwrap();
    authorizer().with_browser(Arc::new(Person::default())).login(&[]).await.unwrap();
    assert_eq!(world.counts(), [1, 1, 1]);
    world.rules().metadata.insert("client_id_metadata_document_supported".to_owned(), json!(true));
    authorizer().with_browser(Arc::new(Person::default())).login(&[]).await.unwrap();
    assert_eq!(world.counts(), [1, 2, 2]);
    assert_eq!(world.all("authorize")[1]["client_id"], document);
}

#[tokio::test]
async fn a_program_needs_no_person() {
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    let pem =
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", STANDARD.encode(key.as_ref()));
    for proof in [
        ClientProof::Secret(HiddenText::new("machine-secret")),
        ClientProof::Key { pem: HiddenText::new(pem), algorithm: "ES256".to_owned() },
    ] {
        let world = World::start().await;
        world.rules().needs.0 = texts(&["read"]);
        let mut server = world.oauth_server();
        server.identity = ClientIdentity::Machine { client_id: "machine".to_owned(), proof };
        let peer = world.peer(OAuthAuthorizer::new(server, TokenStore::in_memory()).unwrap());
        peer.result("tools/list").await;
        world.rules().good.clear();
        peer.result("tools/list").await;
        assert_eq!(world.counts(), [0, 0, 2]);
        let asked = &world.all("token")[0];
        assert_eq!((asked["grant_type"].as_str(), asked["scope"].as_str()), ("client_credentials", "read"));
        assert_eq!(asked["resource"], world.server.url);
    }
}

#[tokio::test]
async fn a_server_of_the_first_revision_is_its_own_authorization_server() {
    let world = World::start().await;
    world.rules().silent = true;
    let authorizer = world.authorizer().with_browser(Arc::new(Person::default()));
    let error = authorizer.login(&[]).await.unwrap_err();
    assert!(error.to_string().contains("says nothing about authorization"), "{error}");
    world.rules().redirect.insert("iss".to_owned(), String::new());
    world.peer(authorizer).result("tools/list").await;
    assert_eq!(world.counts(), [1, 1, 1]);
}

#[tokio::test]
async fn a_program_may_have_someone_elses_word() {
    let world = World::start().await;
    let mut server = world.oauth_server();
    let proof = ClientProof::Assertion(HiddenText::new("word"));
    server.identity = ClientIdentity::Machine { client_id: "workload".to_owned(), proof };
    world
        .peer(OAuthAuthorizer::new(server.clone(), TokenStore::in_memory()).unwrap())
        .result("tools/list")
        .await;
    // The word of a company's identity provider is got first, for this issuer and this server.
    let proof = ClientProof::Company {
        client_secret: HiddenText::new("a b"),
        token_endpoint: Url::parse(&format!("{}/token", address(&world.issuer))).unwrap(),
        client_id: "known-as".to_owned(),
        id_token: HiddenText::new("person"),
    };
    server.identity = ClientIdentity::Machine { client_id: "workload".to_owned(), proof };
    world.peer(OAuthAuthorizer::new(server, TokenStore::in_memory()).unwrap()).result("tools/list").await;

    let asked = world.all("token");
    assert_eq!((asked[0]["assertion"].as_str(), asked[0]["client_id"].as_str()), ("word", "workload"));
    assert_eq!((asked[1]["subject_token"].as_str(), asked[1]["client_id"].as_str()), ("person", "known-as"));
    assert_eq!((&asked[1]["audience"], &asked[1]["resource"]), (&address(&world.issuer), &world.server.url));
    assert!(asked[2]["assertion"].starts_with("access-"), "the word, not the person's own token");
    assert_eq!(asked[2]["basic"], format!("Basic {}", STANDARD.encode("workload:a+b")));
}

#[tokio::test]
async fn a_token_is_bound_to_a_key_where_the_server_asks_for_it_and_renewed_with_the_same() {
    let world = World::start().await;
    world.rules().bound = Some("nonce-1".to_owned());
    world.rules().metadata.insert("dpop_signing_alg_values_supported".to_owned(), json!(["ES256"]));
    let store = TokenStore::in_memory();
    let authorizer = OAuthAuthorizer::new(world.oauth_server(), store.clone()).unwrap();
    let peer = world.peer(authorizer.with_browser(Arc::new(Person::default())));
    assert_eq!(peer.result("tools/list").await, json!({"let": "in"}));
    world.rules().bound = Some("nonce-2".to_owned());
    world.rules().good.clear();
    assert_eq!(peer.result("tools/list").await, json!({"let": "in"}));
    assert_eq!(world.counts()[1], 1, "neither a nonce nor a renewal is a reason to ask a person");
    // Another process takes up the token and its key.
    let other = world.peer(OAuthAuthorizer::new(world.oauth_server(), store).unwrap());
    assert_eq!(other.result("tools/list").await, json!({"let": "in"}));
    let (mut keys, mut proofs) = (Vec::new(), Vec::new());
    for seen in world.server.seen().iter().filter(|seen| seen.header("dpop").is_some()) {
        let proof = seen.header("dpop").unwrap().to_owned();
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
