//! [`OAuthConfig`]: the issuer of access tokens, and what a token must have.

use url::{Host, Url};

use crate::group_access::GroupAccess;

/// How callers authenticate by OAuth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthConfig {
    /// The issuer's URL, exactly as it is in tokens.
    pub issuer: String,
    /// The URL by which clients know this gateway (RFC 8707), such as `https://tools.example.com/mcp`.
    pub resource: String,
    /// Accepted audiences of tokens; if empty, `resource`.
    pub audiences: Vec<String>,
    /// Scopes that every token must have.
    pub scopes: Vec<String>,
    /// The claim with the name for the audit log; by default `sub`, which users cannot choose themselves.
    pub name_claim: Option<String>,
    /// The claim with the groups; by default `groups`. Dots lead into objects: `realm_access.roles`.
    pub groups_claim: Option<String>,
    /// What the groups of a caller may use.
    pub group_access: GroupAccess,
}

/// A configuration that cannot work, or that is not safe.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthConfigError {
    /// `[serve.oauth] issuer` is not a URL that keys may be read from; the reason follows.
    ///
    /// Remedy: copy the issuer from the claim `iss` of a token: an `https` URL (`http` for loopback only).
    #[error("invalid issuer `{url}`: {reason}")]
    Issuer {
        /// The configured URL.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// `[serve.oauth] resource` is not the URL of a gateway; the reason follows.
    ///
    /// Remedy: set `resource` to the public URL of the MCP endpoint, such as `https://tools.example.com/mcp`.
    #[error("invalid resource `{url}`: {reason}")]
    Resource {
        /// The configured URL.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A scope in `[serve.oauth] scopes` has characters that scopes cannot have.
    ///
    /// Remedy: write each scope as an item of the list: `scopes = ["tools:call", "profile"]`.
    #[error("invalid scope `{0}`: scopes have neither spaces nor quotes")]
    Scope(String),
    /// The HTTP client cannot be built, because the system has no usable TLS.
    ///
    /// Remedy: install the certificate authorities of the system (package `ca-certificates`).
    #[error("documents of the issuer cannot be read: TLS is not available on this machine")]
    HttpClient,
}

impl OAuthConfig {
    /// A configuration with defaults for everything else.
    pub fn new(issuer: &str, resource: &str) -> Self {
        Self {
            issuer: issuer.to_owned(),
            resource: resource.to_owned(),
            audiences: Vec::new(),
            scopes: Vec::new(),
            name_claim: None,
            groups_claim: None,
            group_access: GroupAccess::default(),
        }
    }

    /// Checks all values.
    pub fn check(&self) -> Result<(), OAuthConfigError> {
        let check_url = |url: &str| {
            let parsed = Url::parse(url).map_err(|_| "it is not a URL")?;
            check_address(&parsed)?;
            if parsed.fragment().is_some() || parsed.query().is_some() {
                return Err("it has a query or a fragment");
            }
            Ok(())
        };
        check_url(&self.issuer)
            .map_err(|reason| OAuthConfigError::Issuer { url: self.issuer.clone(), reason })?;
        check_url(&self.resource)
            .map_err(|reason| OAuthConfigError::Resource { url: self.resource.clone(), reason })?;
        let is_scope = |scope: &&String| {
            scope.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
                && !scope.is_empty()
        };
        match self.scopes.iter().find(|scope| !is_scope(scope)) {
            Some(scope) => Err(OAuthConfigError::Scope(scope.clone())),
            None => Ok(()),
        }
    }

    /// The audiences that a token may be for.
    pub(super) fn accepted_audiences(&self) -> &[String] {
        if self.audiences.is_empty() { std::slice::from_ref(&self.resource) } else { &self.audiences }
    }
}

/// Whether documents may be read from a URL: HTTPS, or HTTP on this machine.
pub(crate) fn check_address(url: &Url) -> Result<(), &'static str> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it has a user name or a password");
    }
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => return Err("it has no host"),
    };
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_loopback => Ok(()),
        _ => Err("use https; http is only for this machine"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_scopes_are_checked() {
        let config = OAuthConfig::new("https://id.example", "https://tools.example/mcp");
        assert_eq!(config.check(), Ok(()));
        assert_eq!(OAuthConfig::new("http://127.0.0.1:1/x", "http://localhost/mcp").check(), Ok(()));
        for issuer in [
            "id.example",
            "http://id.example",
            "ftp://id.example",
            "https://a:b@id.example",
            "https://id.example?x",
            "https://id.example#x",
            "",
        ] {
            let checked = OAuthConfig { issuer: issuer.to_owned(), ..config.clone() }.check();
            assert!(matches!(checked, Err(OAuthConfigError::Issuer { .. })), "{issuer}");
            let checked = OAuthConfig { resource: issuer.to_owned(), ..config.clone() }.check();
            assert!(matches!(checked, Err(OAuthConfigError::Resource { .. })), "{issuer}");
        }
        for scope in ["", "a b", "a\"", "ä"] {
            let checked = OAuthConfig { scopes: vec![scope.to_owned()], ..config.clone() }.check();
            assert_eq!(checked, Err(OAuthConfigError::Scope(scope.to_owned())));
        }
    }
}
