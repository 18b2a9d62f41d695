//! `[serve.oauth]`, `[serve.proxy_identity]` and `[serve.groups]` as plain data: how callers are told apart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Callers present access tokens of an OAuth 2.1 or OpenID Connect issuer. The gateway is the resource server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallerOAuthSettings {
    /// The issuer's URL, exactly as it is in the claim `iss` of its tokens. Its keys are found by discovery.
    pub issuer: String,
    /// The URL by which clients know this gateway, such as `https://tools.example.com/mcp`. Clients ask the issuer for tokens for this
    /// resource (RFC 8707), and the metadata of the gateway names it (RFC 9728).
    pub resource: String,
    /// Accepted values of the claim `aud`, if they differ from `resource`.
    #[serde(default)]
    pub audience: Vec<String>,
    /// Scopes that every token must have.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// The claim with the caller's name in the audit log, such as `email`. By default `sub`, which callers cannot choose.
    #[serde(default)]
    pub name_claim: Option<String>,
    /// The claim with the caller's groups; dots lead into objects: `realm_access.roles`. By default `groups`.
    #[serde(default)]
    pub groups_claim: Option<String>,
    /// The id of a public client of the issuer, with the redirect URI `PUBLIC_URL/sign-in/callback`. With it, callers can prove in a
    /// browser who they are, which signing in to servers with `oauth.per_caller = "sign_in"` needs.
    #[serde(default)]
    pub sign_in_client_id: Option<String>,
}

/// What members of a group of callers may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CallerGroupSettings {
    /// The profiles; `/` is the main endpoint. By default all.
    pub profiles: Option<Vec<String>>,
    /// The agents. By default all.
    pub agents: Option<Vec<String>>,
}

/// A proxy in front of the gateway authenticates callers, by client certificates for example, and names them in a header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProxyIdentitySettings {
    /// The addresses of the proxy, as addresses or ranges such as `10.0.0.0/8`. Everybody who can send requests from there can pose as
    /// any caller.
    pub trusted_addresses: Vec<String>,
    /// The header with the caller's name, such as `X-Forwarded-User`. The proxy must remove it from requests of clients.
    pub subject_header: String,
    /// The header with the caller's groups, separated by commas.
    #[serde(default)]
    pub groups_header: Option<String>,
}
