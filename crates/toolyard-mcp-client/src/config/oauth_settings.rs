//! OAuth settings of a server.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// OAuth settings of a server.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OauthSettings {
    /// The id of a manually registered client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The client secret, as a reference: `${CLIENT_SECRET}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The scopes to request; those the server requires when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The registered port of the loopback redirect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback_port: Option<u16>,
    /// How each caller gets tokens of its own; all callers share those of `toolyard servers login` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_caller: Option<CallerGrant>,
}

/// How a caller gets tokens of its own for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallerGrant {
    /// The caller signs in at the server's authorization server in a browser.
    SignIn,
    /// The server's authorization server exchanges the caller's token for one of its own (RFC 8693).
    TokenExchange,
    /// The caller's identity provider issues an assertion (ID-JAG) that the server's authorization server accepts.
    IdJag,
}

impl fmt::Debug for OauthSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OauthSettings").field("scopes", &self.scopes.len()).finish_non_exhaustive()
    }
}
