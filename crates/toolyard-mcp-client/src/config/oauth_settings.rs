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
    /// The only accepted issuer of tokens; the client is presented to no other. Needed for `per_caller = "token_exchange"` and
    /// `"id_jag"`, and for `"sign_in"` with a `client_secret`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// The name of the server at its authorization server, for `per_caller = "token_exchange"`; its URL alone when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// The client at the issuer of callers (`[serve.oauth]`), for `per_caller = "id_jag"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_jag: Option<IssuerClientSettings>,
}

/// The client at the issuer of callers.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IssuerClientSettings {
    /// The id of the client at the issuer of callers (`[serve.oauth]`).
    pub client_id: String,
    /// Its secret, as a reference: `${IDP_CLIENT_SECRET}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
}

impl OauthSettings {
    /// Every value that may contain references, with its field.
    pub(super) fn template_texts(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let own = [("oauth.client_id", &self.client_id), ("oauth.client_secret", &self.client_secret)];
        let own = own.into_iter().filter_map(|(field, text)| Some((field, text.as_ref()?)));
        own.chain(self.id_jag.iter().flat_map(|client| {
            let secret = client.client_secret.as_ref().map(|secret| ("oauth.id_jag.client_secret", secret));
            std::iter::once(("oauth.id_jag.client_id", &client.client_id)).chain(secret)
        }))
    }

    /// The same values, to be changed.
    pub(super) fn template_texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let own = [&mut self.client_id, &mut self.client_secret].into_iter().flatten();
        own.chain(
            self.id_jag.iter_mut().flat_map(|client| {
                std::iter::once(&mut client.client_id).chain(client.client_secret.as_mut())
            }),
        )
    }

    /// Whether tokens of callers are obtained from their own tokens, without a sign-in.
    pub fn exchanges_tokens(&self) -> bool {
        matches!(self.per_caller, Some(CallerGrant::TokenExchange | CallerGrant::IdJag))
    }

    /// What is missing or superfluous for the way callers get their tokens: the field and the problem.
    pub(super) fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let exchanges = self.exchanges_tokens();
        if exchanges && self.client_id.is_none() {
            return Err(("`oauth.client_id`", "is needed to exchange tokens of callers"));
        }
        if exchanges && self.issuer.is_none() {
            return Err((
                "`oauth.issuer`",
                "is needed to exchange tokens of callers: they are sent to this issuer only",
            ));
        }
        if self.per_caller == Some(CallerGrant::SignIn)
            && self.client_secret.is_some()
            && self.issuer.is_none()
        {
            return Err((
                "`oauth.issuer`",
                "is needed beside `oauth.client_secret` if callers sign in: the secret is sent to this issuer only",
            ));
        }
        if self.audience.is_some() && self.per_caller != Some(CallerGrant::TokenExchange) {
            return Err(("`oauth.audience`", "needs `oauth.per_caller = \"token_exchange\"`"));
        }
        match (self.per_caller, &self.id_jag) {
            (Some(CallerGrant::IdJag), None) => {
                Err(("`oauth.id_jag`", "is needed: the client at the issuer of callers"))
            }
            (Some(CallerGrant::IdJag), Some(_)) | (_, None) => Ok(()),
            (_, Some(_)) => Err(("`oauth.id_jag`", "needs `oauth.per_caller = \"id_jag\"`")),
        }
    }
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

impl fmt::Debug for IssuerClientSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IssuerClientSettings(…)")
    }
}
