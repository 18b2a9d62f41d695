//! Finds the issuer's keys by its metadata: RFC 8414 and OpenID Connect discovery, in the order that MCP prescribes.

use serde::Deserialize;
use toolyard_core::issuer_metadata_urls;
use url::Url;

use super::{
    config::check_address,
    fetch::{FetchError, MetadataSource},
    key_set::{KeySet, KeySetError},
};

/// Keys of the issuer cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// A document of the issuer could not be read; the URL and the reason follow.
    ///
    /// Remedy: open the URL from the machine of the gateway: check name resolution, proxy, certificate and firewall.
    #[error("failed to read {0}")]
    Fetch(#[from] FetchError),
    /// None of the addresses of RFC 8414 and OpenID Connect discovery has metadata of the issuer.
    ///
    /// Remedy: check `[serve.oauth] issuer`: it must be exactly the issuer, including its path; open
    /// `ISSUER/.well-known/openid-configuration`.
    #[error("issuer `{issuer}` has no metadata at any of its well-known addresses")]
    NoMetadata {
        /// The issuer of the settings.
        issuer: String,
    },
    /// The metadata of the issuer are not what RFC 8414 demands.
    ///
    /// Remedy: check that `[serve.oauth] issuer` is exactly the `issuer` in its metadata, without or with a slash at
    /// the end as there.
    #[error("{url}: invalid metadata: {reason}")]
    InvalidMetadata {
        /// Where they are.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// The keys of the issuer (`jwks_uri`) cannot be read.
    ///
    /// Remedy: open `jwks_uri` of the metadata of the issuer, and repair it at the provider.
    #[error("{url}: invalid keys: {error}")]
    InvalidKeys {
        /// Where they are.
        url: String,
        /// What is wrong.
        error: KeySetError,
    },
}

/// What is needed of the issuer's metadata.
#[derive(Deserialize)]
struct IssuerMetadata {
    issuer: String,
    jwks_uri: String,
}

/// Reads the issuer's metadata, then its keys. Returns the keys and their text.
pub(crate) async fn read_keys(
    source: &dyn MetadataSource,
    issuer: &str,
) -> Result<(KeySet, String), DiscoveryError> {
    let (metadata, at) = find_metadata(source, issuer).await?;
    let url = key_url(&metadata, issuer, at)?;
    let text = source.read(&url).await?;
    let keys = KeySet::parse(&text).map_err(|error| DiscoveryError::InvalidKeys { url, error })?;
    Ok((keys, text))
}

/// The issuer's own metadata, and where they are.
pub(crate) async fn read_metadata(
    source: &dyn MetadataSource,
    issuer: &str,
) -> Result<(String, String), DiscoveryError> {
    let (text, url) = find_metadata(source, issuer).await?;
    key_url(&text, issuer, url.clone())?;
    Ok((text, url))
}

async fn find_metadata(
    source: &dyn MetadataSource,
    issuer: &str,
) -> Result<(String, String), DiscoveryError> {
    for url in issuer_metadata_urls(issuer) {
        match source.read(&url).await {
            Ok(text) => return Ok((text, url)),
            Err(FetchError::NotFound { .. }) => {}
            // Another error may be temporary. It must not lead to another document.
            Err(error) => return Err(error.into()),
        }
    }
    Err(DiscoveryError::NoMetadata { issuer: issuer.to_owned() })
}

/// The URL of the keys, if the document is the issuer's own.
fn key_url(text: &str, issuer: &str, url: String) -> Result<String, DiscoveryError> {
    let metadata: IssuerMetadata = match serde_json::from_str(text) {
        Ok(metadata) => metadata,
        Err(error) => return Err(DiscoveryError::InvalidMetadata { url, reason: error.to_string() }),
    };
    let invalid = |reason: String| Err(DiscoveryError::InvalidMetadata { url, reason });
    // RFC 8414, section 3.3: otherwise, an attacker could pose as another issuer.
    if metadata.issuer != issuer {
        return invalid(format!("they are of issuer `{}`, not of `{issuer}`", metadata.issuer));
    }
    match Url::parse(&metadata.jwks_uri).map_err(|_| "it is not a URL").and_then(|url| check_address(&url)) {
        Ok(()) => Ok(metadata.jwks_uri),
        Err(reason) => invalid(format!("jwks_uri `{}`: {reason}", metadata.jwks_uri)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_another_issuer_and_unsafe_key_addresses_are_refused() {
        let read = |issuer: &str, keys: &str| {
            let text = serde_json::json!({"issuer": issuer, "jwks_uri": keys}).to_string();
            key_url(&text, "https://id.example", "https://id.example/m".to_owned())
        };
        assert_eq!(read("https://id.example", "https://k.example/j").unwrap(), "https://k.example/j");
        for (issuer, keys) in [
            ("https://id.example/", "https://k.example/j"),
            ("https://evil.example", "https://k.example/j"),
            ("https://id.example", "http://k.example/j"),
            ("https://id.example", "file:///etc/passwd"),
            ("https://id.example", "not a url"),
        ] {
            assert!(read(issuer, keys).is_err(), "{issuer} {keys}");
        }
        assert!(key_url("[]", "https://id.example", String::new()).is_err());
    }
}
