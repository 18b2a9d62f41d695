//! What must be known about one server before tokens for it can be got.

use std::{fmt, time::Duration};

use url::Url;

/// A server that asks for tokens, and how we are known to whoever issues them.
#[derive(Debug, Clone)]
pub struct OAuthServer {
    /// The operator's name for the server, as in `toolyard servers login NAME`.
    pub id: String,
    /// The server's address: the resource that tokens are for.
    pub url: Url,
    /// Who we are to the authorization server.
    pub identity: ClientIdentity,
    /// The only issuer whose tokens are wanted, where the operator says so: what is registered with one is then shown to no
    /// other, whatever the server says.
    pub issuer: Option<String>,
    /// The name people read when they are asked for consent.
    pub client_name: String,
    /// What to ask for; what the server says it needs when empty.
    pub scopes: Vec<String>,
    /// The port of the redirect to this machine, where it was registered by hand; any free one otherwise.
    pub callback_port: Option<u16>,
    /// Whether the authorization server may be at a private address (10.0.0.0/8 and the like) other than the server's own.
    pub private_network: bool,
    /// How long a person has for the browser.
    pub login_limit: Duration,
}

/// Who we are to the authorization server.
#[derive(Debug, Clone)]
pub enum ClientIdentity {
    /// Nobody yet: described by a metadata document where the server takes one, registered on the way otherwise.
    Unregistered {
        /// The address of a client id metadata document (https).
        metadata_url: Option<String>,
    },
    /// Registered by hand; a person consents.
    Registered {
        /// The client's id.
        client_id: String,
        /// Its secret, if it has one.
        client_secret: Option<HiddenText>,
    },
    /// A program with an account of its own, or with someone's word for it: no person is ever asked.
    Machine {
        /// The client's id.
        client_id: String,
        /// How it proves that it is the client.
        proof: ClientProof,
    },
}

/// How a program proves that it is the client.
#[derive(Debug, Clone)]
pub enum ClientProof {
    /// By a shared secret.
    Secret(HiddenText),
    /// By signing (`private_key_jwt`).
    Key {
        /// The private key, PKCS#8 in PEM.
        pem: HiddenText,
        /// `ES256` or `RS256`.
        algorithm: String,
    },
    /// By the word of someone the authorization server trusts: a signed statement about the program (RFC 7523).
    Assertion(HiddenText),
    /// By the word of a company's identity provider, at which a person has logged in (enterprise-managed authorization).
    Company {
        /// The client's secret at the authorization server.
        client_secret: HiddenText,
        /// Where the identity provider gives its word.
        token_endpoint: Url,
        /// The client's id at the identity provider.
        client_id: String,
        /// What the person got from logging in there.
        id_token: HiddenText,
    },
}

impl OAuthServer {
    /// A server at which nothing is registered and about which nothing special is known.
    pub fn new(id: impl Into<String>, url: Url) -> Self {
        Self {
            id: id.into(),
            url,
            identity: ClientIdentity::Unregistered { metadata_url: None },
            issuer: None,
            client_name: "Toolyard".to_owned(),
            scopes: Vec::new(),
            callback_port: None,
            private_network: false,
            login_limit: Duration::from_mins(5),
        }
    }

    /// The address as it is kept beside tokens: a token is for one address and goes to no other.
    pub(super) fn resource(&self) -> String {
        let mut url = self.url.clone();
        url.set_fragment(None);
        url.set_query(None);
        // Neither can fail: the address has a host, or the authorizer would not have been made.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.into()
    }
}

/// A text that nothing shows: a key, a password, a token.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct HiddenText(String);

impl HiddenText {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for HiddenText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}
