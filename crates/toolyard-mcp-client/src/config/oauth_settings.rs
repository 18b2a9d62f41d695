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
}

impl fmt::Debug for OauthSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OauthSettings").field("scopes", &self.scopes.len()).finish_non_exhaustive()
    }
}
