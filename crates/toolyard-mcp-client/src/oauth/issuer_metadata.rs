//! Reads the metadata of an issuer at its own well-known addresses (RFC 8414, OpenID Connect). Only what is there counts: a
//! document elsewhere can name any issuer.

use rmcp::transport::auth::AuthorizationMetadata;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use toolyard_core::{issuer_metadata_urls, well_known_url};
use url::Url;

use super::{
    OAuthError,
    address_policy::AddressPolicy,
    flow::Flow,
    http_client::{OAuthHttp, parse_metadata_url},
};
use crate::sanitize::sanitize_line;

/// What is needed of an issuer to request tokens.
#[derive(Debug, Deserialize)]
pub(super) struct IssuerMetadata {
    pub(super) issuer: String,
    pub(super) token_endpoint: String,
    /// How clients may authenticate; by `client_secret_basic` if absent.
    #[serde(rename = "token_endpoint_auth_methods_supported")]
    pub(super) authentication_methods: Option<Vec<String>>,
}

impl IssuerMetadata {
    /// Reads the metadata. The token endpoint is one that the policy allows.
    pub(super) async fn discover(
        http: &OAuthHttp,
        policy: &AddressPolicy,
        issuer: &str,
    ) -> Result<Self, OAuthError> {
        let metadata: Self = read_issuer_metadata(http, issuer).await?;
        policy.check(&parse_metadata_url(&metadata.token_endpoint)?)?;
        Ok(metadata)
    }
}

impl Flow<'_> {
    /// The issuer of metadata; a server of revision 2025-03-26 that names none is its own issuer.
    pub(super) fn issuer_of(&self, metadata: &AuthorizationMetadata) -> String {
        metadata.issuer.clone().unwrap_or_else(|| self.server.url.origin().ascii_serialization())
    }

    /// Checks the metadata that the server led to: the issuer must be the configured one, the addresses allowed, and the issuer
    /// itself must publish the same endpoints. rmcp accepts a document at `…/.well-known/…` of any form without comparing its
    /// issuer: a compromised server could pose as an issuer and collect refresh tokens, codes and client secrets. Returns the
    /// issuer's own document.
    pub(super) async fn verify_metadata(
        &self,
        http: &OAuthHttp,
        named: AuthorizationMetadata,
    ) -> Result<AuthorizationMetadata, OAuthError> {
        let issuer = self.issuer_of(&named);
        if self.server.issuer.as_ref().is_some_and(|configured| *configured != issuer) {
            return Err(self.issuer_mismatch(&issuer));
        }
        for endpoint in endpoints(&named).into_iter().flatten() {
            self.policy.check(&parse_metadata_url(endpoint)?)?;
        }
        if named.issuer.is_none() {
            return Ok(named);
        }
        let published: AuthorizationMetadata = read_issuer_metadata(http, &issuer).await?;
        if endpoints(&published) != endpoints(&named) {
            return Err(OAuthError::Discovery(format!(
                "server `{}` names other endpoints than its issuer {}",
                self.server.id,
                sanitize_line(&issuer)
            )));
        }
        Ok(published)
    }
}

/// Where requests of a flow go: authorization, token and registration endpoint.
fn endpoints(metadata: &AuthorizationMetadata) -> [Option<&str>; 3] {
    [
        Some(&metadata.authorization_endpoint),
        Some(&metadata.token_endpoint),
        metadata.registration_endpoint.as_deref(),
    ]
}

/// Reads the metadata that an issuer publishes about itself. A response that is no such document counts as missing: many
/// servers answer unknown paths with a web page.
async fn read_issuer_metadata<T: DeserializeOwned>(http: &OAuthHttp, issuer: &str) -> Result<T, OAuthError> {
    for url in metadata_urls(issuer)? {
        let Some(body) = http.get(&url).await? else { continue };
        let Ok(document) = serde_json::from_slice::<Value>(&body) else { continue };
        let Some(named) = document.get("issuer").and_then(Value::as_str).map(sanitize_line) else { continue };
        // RFC 8414, section 3.3: otherwise, an attacker could pose as another issuer.
        if document.get("issuer").and_then(Value::as_str) != Some(issuer) {
            let issuer = sanitize_line(issuer);
            return Err(OAuthError::Discovery(format!(
                "the metadata of {issuer} are those of another issuer, {named}"
            )));
        }
        return serde_json::from_value(document).map_err(|_| {
            OAuthError::Discovery(format!("{} is not the metadata of an issuer", sanitize_line(&url)))
        });
    }
    Err(OAuthError::Discovery(format!("issuer {} publishes no metadata", sanitize_line(issuer))))
}

/// Where metadata may be, in the order that MCP prescribes; at last without the path of the issuer, where rmcp looks, too.
fn metadata_urls(issuer: &str) -> Result<Vec<String>, OAuthError> {
    // RFC 8414, section 2: an issuer has neither query nor fragment.
    let url = Url::parse(issuer).ok().filter(|url| url.query().is_none() && url.fragment().is_none());
    let url =
        url.ok_or_else(|| OAuthError::Discovery(format!("issuer {} is not a URL", sanitize_line(issuer))))?;
    // The text of the parsed URL: in that of the server, `/../` would lead out of `/.well-known/`.
    let mut urls = issuer_metadata_urls(url.as_str());
    if url.path() != "/" {
        urls.push(well_known_url(&url.origin().ascii_serialization(), "oauth-authorization-server"));
    }
    Ok(urls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_looked_for_in_the_order_of_mcp() {
        assert_eq!(
            metadata_urls("https://id.example/tenant/7/").unwrap(),
            [
                "https://id.example/.well-known/oauth-authorization-server/tenant/7",
                "https://id.example/.well-known/openid-configuration/tenant/7",
                "https://id.example/tenant/7/.well-known/openid-configuration",
                "https://id.example/.well-known/oauth-authorization-server",
            ]
        );
        assert_eq!(metadata_urls("http://127.0.0.1:9/").unwrap().len(), 2);
        assert_eq!(
            metadata_urls("https://idp.example/../../u/mallory").unwrap(),
            [
                "https://idp.example/.well-known/oauth-authorization-server/u/mallory",
                "https://idp.example/.well-known/openid-configuration/u/mallory",
                "https://idp.example/u/mallory/.well-known/openid-configuration",
                "https://idp.example/.well-known/oauth-authorization-server",
            ]
        );
        for issuer in ["no URL", "https://id.example/a?b", "https://id.example/a#b"] {
            assert!(metadata_urls(issuer).is_err(), "{issuer}");
        }
    }
}
