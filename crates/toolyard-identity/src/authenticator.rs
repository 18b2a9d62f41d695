//! [`CallerAuthenticator`]: tells callers apart by API key, access token, or what a trusted proxy says.

use std::{net::IpAddr, sync::Arc};

use toolyard_core::{
    AuthenticationError, Authenticator, BoxFuture, CallerIdentity, CallerStore, Credentials, PersonSignIn,
};

use crate::{
    api_key::{key::KEY_PREFIX, verifier::ApiKeyVerifier},
    oauth::{metadata::challenge, verifier::OAuthVerifier},
    proxy::identity::ProxyIdentity,
};

/// Tells callers apart. A request with a bearer token is judged by that token alone: a wrong one is refused, whatever a proxy says.
#[derive(Debug, Default)]
pub struct CallerAuthenticator {
    api_keys: Option<ApiKeyVerifier>,
    oauth: Option<Arc<OAuthVerifier>>,
    proxy: Option<ProxyIdentity>,
    person_sign_in: Option<Arc<dyn PersonSignIn>>,
}

impl CallerAuthenticator {
    /// An authenticator that refuses everybody.
    pub fn new() -> Self {
        Self::default()
    }

    /// Accepts the API keys in a store.
    #[must_use]
    pub fn with_api_keys(mut self, store: Arc<dyn CallerStore>) -> Self {
        self.api_keys = Some(ApiKeyVerifier::new(store));
        self
    }

    /// Accepts access tokens.
    #[must_use]
    pub fn with_oauth(mut self, oauth: Arc<OAuthVerifier>) -> Self {
        self.oauth = Some(oauth);
        self
    }

    /// Lets people prove in a browser to be callers with access tokens.
    #[must_use]
    pub fn with_person_sign_in(mut self, person_sign_in: Arc<dyn PersonSignIn>) -> Self {
        self.person_sign_in = Some(person_sign_in);
        self
    }

    /// Accepts what a proxy says.
    #[must_use]
    pub fn with_proxy(mut self, proxy: ProxyIdentity) -> Self {
        self.proxy = Some(proxy);
        self
    }

    async fn identify(
        &self,
        credentials: Credentials<'_>,
    ) -> Result<Arc<CallerIdentity>, AuthenticationError> {
        match (credentials.bearer, &self.api_keys, &self.oauth, &self.proxy) {
            (Some(key), Some(api_keys), ..) if key.starts_with(KEY_PREFIX) => api_keys.verify(key).await,
            (Some(token), _, Some(oauth), _) => oauth.verify(token).await,
            (Some(_), ..) => Err(AuthenticationError::Invalid("unknown token")),
            (None, .., Some(proxy)) => proxy.identify(credentials),
            (None, ..) => Err(AuthenticationError::Missing),
        }
    }
}

impl Authenticator for CallerAuthenticator {
    fn authenticate<'a>(
        &'a self,
        credentials: Credentials<'a>,
    ) -> BoxFuture<'a, Result<Arc<CallerIdentity>, AuthenticationError>> {
        Box::pin(self.identify(credentials))
    }

    fn resource_metadata(&self, path: &str) -> Option<String> {
        self.oauth.as_ref()?.metadata.at(path)
    }

    fn person_sign_in(&self) -> Option<Arc<dyn PersonSignIn>> {
        self.person_sign_in.clone()
    }

    fn client_address(&self, connection: IpAddr, forwarded_for: &str) -> IpAddr {
        self.proxy.as_ref().map_or(connection, |proxy| proxy.client_address(connection, forwarded_for))
    }

    fn challenge(&self, _: &str, error: &AuthenticationError) -> String {
        challenge(self.oauth.as_ref().map(|oauth| &oauth.metadata), error)
    }
}

#[cfg(test)]
mod tests {
    use toolyard_core::MemoryCallerStore;

    use super::*;
    use crate::{ApiKey, NewCaller};

    #[tokio::test]
    async fn a_wrong_bearer_token_is_refused_even_if_a_trusted_proxy_names_a_caller() {
        let store = Arc::new(MemoryCallerStore::default());
        let key = ApiKey::generate().unwrap();
        store.add_caller(&NewCaller::new("ci").with_key(&key), "ada").await.unwrap();
        let authenticator = CallerAuthenticator::new().with_api_keys(store).with_proxy(ProxyIdentity::new(
            vec!["127.0.0.1".parse().unwrap()],
            "x-user",
            None,
        ));
        let authenticate = async |bearer: Option<&str>| {
            let header = |name: &str| Ok((name == "x-user").then_some("eve"));
            let client_address = [127, 0, 0, 1].into();
            let identity =
                authenticator.authenticate(Credentials { bearer, header: &header, client_address }).await;
            identity.map(|identity| identity.name.to_string())
        };
        assert_eq!(authenticate(Some(key.text())).await.as_deref(), Ok("ci"));
        assert_eq!(authenticate(None).await.as_deref(), Ok("eve"));
        for wrong in ["", "x", "ty_x", ApiKey::generate().unwrap().text()] {
            let refused = authenticate(Some(wrong)).await;
            assert!(matches!(refused, Err(AuthenticationError::Invalid(_))), "{wrong}: {refused:?}");
        }
    }
}
