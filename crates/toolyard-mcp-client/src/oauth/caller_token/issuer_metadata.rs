//! Reads the metadata of an issuer that the operator trusts, at its own well-known addresses (RFC 8414, OpenID Connect).

use serde::Deserialize;
use url::Url;

use crate::{
    oauth::{
        OAuthError,
        address_policy::AddressPolicy,
        http_client::{OAuthHttp, parse_metadata_url},
    },
    sanitize::sanitize_line,
};

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
    /// Reads the metadata. Only documents of the issuer itself count, and only addresses that the policy allows.
    pub(super) async fn discover(
        http: &OAuthHttp,
        policy: &AddressPolicy,
        issuer: &str,
    ) -> Result<Self, OAuthError> {
        for url in metadata_urls(issuer)? {
            let Some(body) = http.get(&url).await? else { continue };
            let metadata: Self = serde_json::from_slice(&body).map_err(|_| {
                OAuthError::Discovery(format!("{} is not the metadata of an issuer", sanitize_line(&url)))
            })?;
            // RFC 8414, section 3.3: otherwise, an attacker could pose as another issuer.
            if metadata.issuer != issuer {
                let other = sanitize_line(&metadata.issuer);
                return Err(OAuthError::Discovery(format!(
                    "the metadata of {issuer} are those of another issuer, {other}"
                )));
            }
            policy.check(&parse_metadata_url(&metadata.token_endpoint)?)?;
            return Ok(metadata);
        }
        Err(OAuthError::Discovery(format!("issuer {} publishes no metadata", sanitize_line(issuer))))
    }
}

/// Where metadata may be, in the order that MCP prescribes.
fn metadata_urls(issuer: &str) -> Result<Vec<String>, OAuthError> {
    let url = Url::parse(issuer)
        .map_err(|_| OAuthError::Discovery(format!("issuer {} is not a URL", sanitize_line(issuer))))?;
    let (origin, path) = (url.origin().ascii_serialization(), url.path().trim_end_matches('/'));
    let mut urls = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        urls.push(format!("{origin}{path}/.well-known/openid-configuration"));
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
            ]
        );
        assert_eq!(metadata_urls("http://127.0.0.1:9/").unwrap().len(), 2);
        assert!(metadata_urls("no URL").is_err());
    }
}
