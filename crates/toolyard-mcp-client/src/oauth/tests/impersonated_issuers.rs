//! Servers that name metadata in which they pose as another issuer.

use std::sync::Arc;

use serde_json::json;
use toolyard_core::CallerIdentity;

use super::{super::*, test_servers::*};
use crate::{
    Authorizer, SecretText,
    transport::http::test_server::{ReceivedRequest, TestServer},
};

const REDIRECT_URI: &str = "https://tools.example/oauth/callback";
/// Paths whose issuer rmcp does not compare.
const UNCHECKED_PATHS: [&str; 2] = ["/.well-known/x", "/a/.well-known/oauth-authorization-server"];

/// A server whose metadata, at every path, are those of `issuer`, apart from the endpoints.
async fn start_impostor(issuer: String) -> TestServer {
    TestServer::start(move |request: ReceivedRequest, mut reply| {
        let issuer = issuer.clone();
        async move {
            let base = format!("http://{}", request.header("host").unwrap());
            let body = if request.path.contains("/.well-known/") {
                json!({
                    "issuer": issuer, "authorization_endpoint": format!("{base}/authorize"),
                    "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
                    "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
                })
            } else {
                json!({"access_token": "of-the-impostor", "token_type": "Bearer", "client_id": "c"})
            };
            reply.json(&body.to_string()).await;
            Some(reply)
        }
    })
    .await
}

impl TestEnvironment {
    /// From now on, the server leads to an impostor. Returns it.
    async fn lead_to_impostor(&self, path: &str) -> TestServer {
        let impostor = start_impostor(base_url(&self.issuer)).await;
        let named = json!([format!("{}{path}", base_url(&impostor))]);
        self.behavior().resource.insert("authorization_servers".to_owned(), named);
        impostor
    }

    /// A server with a client that was registered manually, with or without a configured issuer.
    fn registered_server(&self, is_pinned: bool) -> OAuthServer {
        let mut server = self.oauth_server();
        server.issuer = is_pinned.then(|| base_url(&self.issuer));
        server.identity = ClientIdentity::Registered {
            client_id: "by-hand".to_owned(),
            client_secret: Some(SecretText::new("by-hand-secret")),
        };
        server
    }
}

/// Asserts that the impostor was asked for metadata only.
fn assert_got_nothing(impostor: &TestServer) {
    let received = impostor.received();
    assert!(!received.is_empty(), "the server led there");
    for request in received {
        assert!(request.method == "GET" && request.path.contains("/.well-known/"), "{}", request.path);
    }
}

#[tokio::test]
async fn a_login_does_not_go_to_an_impostor() {
    for path in UNCHECKED_PATHS {
        for is_pinned in [false, true] {
            let env = TestEnvironment::start().await;
            let impostor = env.lead_to_impostor(path).await;
            let user = Arc::new(TestUser::default());
            let server = env.registered_server(is_pinned);
            let authorizer = OAuthAuthorizer::new(server, TokenStore::in_memory()).unwrap();
            let authorizer = authorizer.with_browser(Arc::<TestUser>::clone(&user));
            let error = authorizer.login(&[]).await.unwrap_err();
            assert!(error.to_string().contains("names other endpoints than its issuer"), "{path}: {error}");
            assert!(user.opened_urls.lock().is_empty());
            assert_got_nothing(&impostor);
        }
    }
}

#[tokio::test]
async fn a_renewal_does_not_go_to_an_impostor() {
    for path in UNCHECKED_PATHS {
        let env = TestEnvironment::start().await;
        let authorizer = OAuthAuthorizer::new(env.registered_server(true), TokenStore::in_memory()).unwrap();
        let client = env.client(authorizer.with_browser(Arc::new(TestUser::default())));
        client.result("tools/list").await;
        let impostor = env.lead_to_impostor(path).await;
        env.behavior().valid_tokens.clear();
        let error = client.error("tools/list").await.to_string();
        assert!(error.contains("names other endpoints than its issuer"), "{path}: {error}");
        assert_got_nothing(&impostor);
        // An honest server gets its renewed token again.
        env.behavior().resource.clear();
        client.result("tools/list").await;
    }
}

#[tokio::test]
async fn a_sign_in_of_a_caller_does_not_go_to_an_impostor() {
    for path in UNCHECKED_PATHS {
        let env = TestEnvironment::start().await;
        let impostor = env.lead_to_impostor(path).await;
        let mut server = env.registered_server(true);
        server.caller = Some(Arc::new(CallerIdentity::principal("https://issuer.example", "ada")));
        let authorizer = OAuthAuthorizer::new(server, TokenStore::in_memory()).unwrap();
        let error = authorizer.begin_web_login(REDIRECT_URI, None).await.unwrap_err();
        assert!(error.to_string().contains("names other endpoints than its issuer"), "{path}: {error}");
        assert!(authorizer.token().await.is_none());
        assert_got_nothing(&impostor);
    }
}

#[tokio::test]
async fn client_credentials_do_not_go_to_an_impostor() {
    for path in UNCHECKED_PATHS {
        let env = TestEnvironment::start().await;
        let impostor = env.lead_to_impostor(path).await;
        let mut server = env.registered_server(true);
        server.identity = ClientIdentity::ClientCredentials {
            client_id: "by-hand".to_owned(),
            authentication: ClientAuthentication::Secret(SecretText::new("by-hand-secret")),
        };
        let client = env.client(OAuthAuthorizer::new(server, TokenStore::in_memory()).unwrap());
        let error = client.error("tools/list").await.to_string();
        assert!(error.contains("names other endpoints than its issuer"), "{path}: {error}");
        assert_got_nothing(&impostor);
    }
}
