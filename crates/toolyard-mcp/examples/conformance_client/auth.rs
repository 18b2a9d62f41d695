//! Who the client is to authorization servers, and a person who consents to everything they ask.

use std::sync::Arc;

use reqwest::Url;
use serde_json::Value;
use toolyard_core::BoxFuture;
use toolyard_mcp::client::{
    Authorizer,
    oauth::{
        Browser, BrowserUrl, ClientIdentity, ClientProof, HiddenText, OAuthAuthorizer, OAuthServer,
        TokenStore,
    },
};

use crate::Failure;

/// The metadata document that the suite knows this client by. Nobody fetches it.
const METADATA: &str = "https://conformance-test.local/client-metadata.json";

/// Gets tokens for the server under test.
pub(crate) fn authorizer(
    server: &str,
    url: &str,
    scenario: &str,
    context: &Value,
) -> Result<Arc<dyn Authorizer>, Failure> {
    let mut server = OAuthServer::new(server, Url::parse(url)?);
    server.identity = identity(scenario, context)?;
    server.issuer = context.get("issuer").and_then(Value::as_str).map(str::to_owned);
    let browser = Arc::new(Consent(reqwest::Client::builder().no_proxy().build()?));
    Ok(Arc::new(OAuthAuthorizer::new(server, TokenStore::in_memory())?.with_browser(browser)))
}

fn identity(scenario: &str, context: &Value) -> Result<ClientIdentity, Failure> {
    let text = |key: &str| {
        let found = context.get(key).and_then(Value::as_str).map(str::to_owned);
        found.ok_or_else(|| format!("the suite gives no {key}"))
    };
    let secret = |key: &str| text(key).map(HiddenText::new);
    Ok(match scenario {
        "auth/pre-registration" => ClientIdentity::Registered {
            client_id: text("client_id")?,
            client_secret: Some(secret("client_secret")?),
        },
        "auth/client-credentials-basic" => ClientIdentity::Machine {
            client_id: text("client_id")?,
            proof: ClientProof::Secret(secret("client_secret")?),
        },
        "auth/client-credentials-jwt" => ClientIdentity::Machine {
            client_id: text("client_id")?,
            proof: ClientProof::Key {
                pem: secret("private_key_pem")?,
                algorithm: text("signing_algorithm")?,
            },
        },
        "auth/wif-jwt-bearer" => ClientIdentity::Machine {
            client_id: text("client_id")?,
            proof: ClientProof::Assertion(secret("valid_jwt")?),
        },
        "auth/enterprise-managed-authorization" => ClientIdentity::Machine {
            client_id: text("client_id")?,
            proof: ClientProof::Company {
                client_secret: secret("client_secret")?,
                token_endpoint: Url::parse(&text("idp_token_endpoint")?)?,
                client_id: text("idp_client_id")?,
                id_token: secret("idp_id_token")?,
            },
        },
        _ => ClientIdentity::Unregistered { metadata_url: Some(METADATA.to_owned()) },
    })
}

/// A person whose browser goes wherever it is sent.
struct Consent(reqwest::Client);

impl Browser for Consent {
    fn open<'a>(&'a self, _server: &'a str, url: &'a BrowserUrl) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async {
            let visited = self.0.get(url.as_str()).send().await;
            visited.map(drop).map_err(|error| error.without_url().to_string())
        })
    }
}
