//! Who opened the page of a sign-in: the caller, or somebody to whom the caller sent the link.

use std::{net::Ipv4Addr, sync::Arc};

use toolyard_core::{
    API_KEY_ISSUER, AuthenticationError, Authenticator, CallerIdentity, Credentials, PROXY_ISSUER,
    PersonSignIn,
};

/// How a person proves to be a caller.
pub(super) enum Proof {
    /// The link alone: only the operator gets it, from the console.
    Link,
    /// The caller's API key, in the form of the page.
    ApiKey(Arc<dyn Authenticator>),
    /// The proxy in front of the gateway names the caller with every request.
    Proxy,
    /// A sign-in at the issuer of the caller's access tokens.
    Issuer(Arc<dyn PersonSignIn>),
    /// None is configured: what the operator must set.
    Unavailable(&'static str),
}

impl Proof {
    /// How to prove to be this caller.
    pub(super) fn of(caller: Option<&CallerIdentity>, authenticator: Option<Arc<dyn Authenticator>>) -> Self {
        let Some(caller) = caller else { return Self::Link };
        match (&*caller.issuer, authenticator) {
            (PROXY_ISSUER, _) => Self::Proxy,
            (API_KEY_ISSUER, Some(authenticator)) => Self::ApiKey(authenticator),
            (API_KEY_ISSUER, None) => Self::Unavailable("API keys need a store"),
            (issuer, authenticator) => {
                match authenticator.and_then(|authenticator| authenticator.person_sign_in()) {
                    Some(person_sign_in) if person_sign_in.issuer() == issuer => Self::Issuer(person_sign_in),
                    _ => Self::Unavailable("set `sign_in_client_id` in `[serve.oauth]`"),
                }
            }
        }
    }
}

/// Whether an API key is one of this caller. An error means that it cannot be told now.
pub(super) async fn is_key_of(
    authenticator: &dyn Authenticator,
    key: &str,
    caller: &CallerIdentity,
) -> Result<bool, AuthenticationError> {
    let credentials = Credentials {
        bearer: Some(key.trim()),
        header: &|_| Ok(None),
        // Only identities of proxies depend on it.
        client_address: Ipv4Addr::UNSPECIFIED.into(),
    };
    match authenticator.authenticate(credentials).await {
        Ok(identity) => Ok(is_same_caller(&identity, caller)),
        Err(unavailable @ AuthenticationError::Unavailable { .. }) => Err(unavailable),
        Err(_) => Ok(false),
    }
}

/// Whether two identities are of the same caller.
pub(super) fn is_same_caller(one: &CallerIdentity, other: &CallerIdentity) -> bool {
    one.is_distinguished() && one.owner() == other.owner()
}
