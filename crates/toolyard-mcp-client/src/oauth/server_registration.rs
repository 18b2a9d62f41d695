//! How the client is registered for one server.

use std::{sync::Arc, time::Duration};

use toolyard_core::{CallerIdentity, DataOwner};
use url::Url;

use super::{CallerToken, TokenKey};
use crate::SecretText;

/// A server that requires tokens, and the identity of the client.
#[derive(Debug, Clone)]
pub struct OAuthServer {
    /// The operator's name for the server, as in `toolyard servers login NAME`.
    pub id: String,
    /// The URL of the server: the resource that tokens are issued for.
    pub url: Url,
    /// The identity of the client.
    pub identity: ClientIdentity,
    /// The only accepted issuer, if configured: the client is then presented to no other.
    pub issuer: Option<String>,
    /// The scopes to request; those the server requires when empty.
    pub scopes: Vec<String>,
    /// The registered port of the loopback redirect; any free port when absent.
    pub callback_port: Option<u16>,
    /// How long a login may take.
    pub login_timeout: Duration,
    /// The caller whose tokens are used; the operator's when absent.
    pub caller: Option<Arc<CallerIdentity>>,
}

/// The identity of the client at the authorization server.
#[derive(Debug, Clone)]
pub enum ClientIdentity {
    /// Identified by a metadata document where supported, registered dynamically otherwise.
    Unregistered {
        /// The https URL of a client id metadata document.
        metadata_url: Option<String>,
    },
    /// Registered manually; the user logs in.
    Registered {
        /// The client's id.
        client_id: String,
        /// Its secret, if it has one.
        client_secret: Option<SecretText>,
    },
    /// A program that authenticates itself; no user is involved.
    ClientCredentials {
        /// The client's id.
        client_id: String,
        /// How the client authenticates.
        authentication: ClientAuthentication,
    },
}

/// How a program authenticates.
#[derive(Debug, Clone)]
pub enum ClientAuthentication {
    /// A shared secret.
    Secret(SecretText),
    /// A signed JWT (`private_key_jwt`).
    PrivateKey {
        /// The private key, PKCS#8 in PEM.
        pem: SecretText,
        /// `ES256` or `RS256`.
        algorithm: String,
    },
    /// An assertion that the authorization server trusts (RFC 7523).
    Assertion(SecretText),
    /// An assertion of an identity provider (enterprise-managed authorization).
    IdentityProvider {
        /// The client's secret at the authorization server.
        client_secret: SecretText,
        /// The identity provider's token endpoint.
        token_endpoint: Url,
        /// The client's id at the identity provider.
        client_id: String,
        /// The id token of the user.
        id_token: SecretText,
    },
    /// On behalf of the caller of a private instance. [`OAuthServer::issuer`] must be set.
    Caller(CallerToken),
}

impl ClientIdentity {
    /// The caller on whose behalf tokens are requested.
    pub(super) fn caller(&self) -> Option<&CallerToken> {
        match self {
            Self::ClientCredentials { authentication: ClientAuthentication::Caller(caller), .. } => {
                Some(caller)
            }
            _ => None,
        }
    }
}

impl OAuthServer {
    /// A server without a registered client.
    pub fn new(id: impl Into<String>, url: Url) -> Self {
        Self {
            id: id.into(),
            url,
            identity: ClientIdentity::Unregistered { metadata_url: None },
            issuer: None,
            scopes: Vec::new(),
            callback_port: None,
            login_timeout: Duration::from_mins(5),
            caller: None,
        }
    }

    /// Whose tokens are used.
    pub(super) fn token_key(&self) -> TokenKey {
        TokenKey::new(self.id.clone(), DataOwner::of(self.caller.as_deref()))
    }

    /// The resource that tokens are issued for; they are sent to no other.
    pub(super) fn resource(&self) -> String {
        let mut url = self.url.clone();
        url.set_fragment(None);
        url.set_query(None);
        // Neither fails: `OAuthAuthorizer::new` requires a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.into()
    }
}
