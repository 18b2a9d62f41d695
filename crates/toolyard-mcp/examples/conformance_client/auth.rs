//! Who the client is in the scenarios about authorization, and someone who follows every page to its end at once.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use toolyard_core::BoxFuture;
use toolyard_mcp::client::{
    Authorizer, http_client,
    oauth::{
        Browser, BrowserUrl, ClientIdentity, ClientProof, HiddenText, OAuthAuthorizer, OAuthServer, TokenStore,
    },
};
use url::Url;

use crate::Failure;

/// A constant of the suite: nobody fetches it.
const CLIENT_METADATA: &str = "https://conformance-test.local/client-metadata.json";

/// The authorizer of a scenario; none where nobody asks for a token.
pub(crate) fn authorizer(
    url: &str,
    scenario: &str,
    context: &Value,
) -> Result<Option<Arc<dyn Authorizer>>, Failure> {
    if !scenario.starts_with("auth/") {
        return Ok(None);
    }
    let mut server = OAuthServer::new("conformance", Url::parse(url)?);
    server.identity = identity(scenario, context)?;
    server.issuer = text(context, "issuer");
    server.login_limit = Duration::from_secs(20);
    let authorizer = OAuthAuthorizer::new(server, TokenStore::in_memory())?;
    Ok(Some(Arc::new(authorizer.with_browser(Arc::new(Follower)))))
}

fn identity(scenario: &str, context: &Value) -> Result<ClientIdentity, Failure> {
    let hidden = |name: &str| text(context, name).map(HiddenText::new).ok_or(format!("the context has no {name}"));
    let Some(client_id) = text(context, "client_id") else {
        return Ok(ClientIdentity::Unregistered { metadata_url: Some(CLIENT_METADATA.to_owned()) });
    };
    let proof = match scenario {
        "auth/client-credentials-basic" => ClientProof::Secret(hidden("client_secret")?),
        "auth/client-credentials-jwt" => ClientProof::Key {
            pem: hidden("private_key_pem")?,
            algorithm: text(context, "signing_algorithm").unwrap_or_default(),
        },
        "auth/wif-jwt-bearer" => ClientProof::Assertion(hidden("valid_jwt")?),
        "auth/enterprise-managed-authorization" => ClientProof::Company {
            client_secret: hidden("client_secret")?,
            token_endpoint: Url::parse(&text(context, "idp_token_endpoint").unwrap_or_default())?,
            client_id: text(context, "idp_client_id").unwrap_or_default(),
            id_token: hidden("idp_id_token")?,
        },
        _ => return Ok(ClientIdentity::Registered { client_id, client_secret: hidden("client_secret").ok() }),
    };
    Ok(ClientIdentity::Machine { client_id, proof })
}

fn text(context: &Value, name: &str) -> Option<String> {
    context.get(name)?.as_str().map(str::to_owned)
}

/// Consents to everything: opens the page and goes where it points, which is back to us.
struct Follower;

impl Browser for Follower {
    fn open<'a>(&'a self, _server: &'a str, url: &'a BrowserUrl) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let web = http_client().map_err(|error| error.to_string())?;
            let page = web.get(url.as_str()).send().await.map_err(|error| error.to_string())?;
            let back = page.headers().get("location").and_then(|location| location.to_str().ok());
            let back = back.ok_or_else(|| format!("the page leads nowhere (status {})", page.status()))?;
            web.get(back).send().await.map_err(|error| error.to_string())?;
            Ok(())
        })
    }
}
