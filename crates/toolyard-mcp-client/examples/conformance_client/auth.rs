//! The identity of the client at authorization servers, and a browser that consents to everything.

use std::sync::Arc;

use reqwest::Url;
use serde_json::Value;
use toolyard_core::BoxFuture;
use toolyard_mcp_client::{
    Authorizer, SecretText,
    oauth::{
        Browser, BrowserError, BrowserUrl, ClientAuthentication, ClientIdentity, OAuthAuthorizer,
        OAuthServer, TokenStore,
    },
};

use crate::Failure;

/// The metadata document that identifies this client to the suite; it is never fetched.
const CLIENT_METADATA_URL: &str = "https://conformance-test.local/client-metadata.json";

/// The authorizer for the server under test.
pub(crate) fn authorizer(
    server: &str,
    url: &str,
    scenario: &str,
    context: &Value,
) -> Result<Arc<dyn Authorizer>, Failure> {
    let mut server = OAuthServer::new(server, Url::parse(url)?);
    server.identity = identity(scenario, context)?;
    server.issuer = context.get("issuer").and_then(Value::as_str).map(str::to_owned);
    let browser = Arc::new(ConsentingBrowser(reqwest::Client::builder().no_proxy().build()?));
    Ok(Arc::new(OAuthAuthorizer::new(server, TokenStore::in_memory())?.with_browser(browser)))
}

fn identity(scenario: &str, context: &Value) -> Result<ClientIdentity, Failure> {
    let text = |key: &str| {
        let found = context.get(key).and_then(Value::as_str).map(str::to_owned);
        found.ok_or_else(|| format!("the suite provides no {key}"))
    };
    let secret = |key: &str| text(key).map(SecretText::new);
    Ok(match scenario {
        "auth/pre-registration" => ClientIdentity::Registered {
            client_id: text("client_id")?,
            client_secret: Some(secret("client_secret")?),
        },
        "auth/client-credentials-basic" => ClientIdentity::ClientCredentials {
            client_id: text("client_id")?,
            authentication: ClientAuthentication::Secret(secret("client_secret")?),
        },
        "auth/client-credentials-jwt" => ClientIdentity::ClientCredentials {
            client_id: text("client_id")?,
            authentication: ClientAuthentication::PrivateKey {
                pem: secret("private_key_pem")?,
                algorithm: text("signing_algorithm")?,
            },
        },
        "auth/wif-jwt-bearer" => ClientIdentity::ClientCredentials {
            client_id: text("client_id")?,
            authentication: ClientAuthentication::Assertion(secret("valid_jwt")?),
        },
        "auth/enterprise-managed-authorization" => ClientIdentity::ClientCredentials {
            client_id: text("client_id")?,
            authentication: ClientAuthentication::IdentityProvider {
                client_secret: secret("client_secret")?,
                token_endpoint: Url::parse(&text("idp_token_endpoint")?)?,
                client_id: text("idp_client_id")?,
                id_token: secret("idp_id_token")?,
            },
        },
        _ => ClientIdentity::Unregistered { metadata_url: Some(CLIENT_METADATA_URL.to_owned()) },
    })
}

/// Visits every URL, which means consent.
struct ConsentingBrowser(reqwest::Client);

impl Browser for ConsentingBrowser {
    fn open<'a>(&'a self, _server: &'a str, url: &'a BrowserUrl) -> BoxFuture<'a, Result<(), BrowserError>> {
        Box::pin(async {
            let visited = self.0.get(url.as_str()).send().await;
            visited.map(drop).map_err(|error| BrowserError::new(&error.without_url()))
        })
    }
}
