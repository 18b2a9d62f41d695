//! One authorization flow: find the authorization server, become known to it, get a token.

use std::{sync::Arc, time::SystemTime};

use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, CredentialStore, InMemoryCredentialStore,
    OAuthClientConfig, OAuthTokenResponse, StoredCredentials,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tracing::{Dispatch, instrument::WithSubscriber};
use url::Url;

use super::{
    Browser, BrowserUrl, CallbackError, ClientIdentity, HiddenText, LoopbackCallback, OAuthError,
    OAuthServer, Redirected,
    address::AddressPolicy,
    callback::redirect_port,
    dpop::{ProofKey, key_for},
    tokens::{Account, Kept},
    web::FlowWeb,
};
use crate::client::http_target::harmless;

const MOST_SCOPES: usize = 100;

/// What every flow with one server is made of.
pub(super) struct Flow<'a> {
    pub(super) server: &'a OAuthServer,
    pub(super) policy: &'a AddressPolicy,
}

/// An authorization server that was found and may be used.
pub(super) struct Found {
    pub(super) manager: AuthorizationManager,
    pub(super) metadata: AuthorizationMetadata,
    pub(super) web: Arc<FlowWeb>,
    /// What tokens are bound to, where the server wants that.
    key: Option<Arc<ProofKey>>,
    /// Who issues the tokens. A server of the first revision names nobody: then it is the server itself.
    pub(super) issuer: String,
}

/// The client a code is asked for.
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Option<HiddenText>,
    /// Set where it was registered on the way.
    pub(super) redirect_uri: Option<String>,
}

/// The parts of an answer of the token endpoint that we keep.
#[derive(Deserialize)]
struct Issued {
    access_token: HiddenText,
    token_type: String,
    refresh_token: Option<HiddenText>,
    expires_in: Option<u64>,
    scope: Option<String>,
}

impl Flow<'_> {
    /// Finds the authorization server: from what the server said with its refusal, or by asking around.
    pub(super) async fn discover(&self, challenge: Option<&str>) -> Result<Found, OAuthError> {
        let web = Arc::new(FlowWeb::new(self.policy.clone())?);
        let resource = self.server.resource();
        let mut manager =
            AuthorizationManager::new_with_oauth_http_client(resource.as_str(), Arc::clone(&web) as _)
                .await
                .map_err(|error| told(error, &[]))?;
        let resolution = quiet(manager.resolve_metadata_from_challenge(challenge))
            .await
            .map_err(|error| told(error, &[]))?;
        if challenge.is_none() && !resolution.source.is_discovered() {
            return Err(OAuthError::Discovery("it says nothing about authorization".to_owned()));
        }
        let metadata = resolution.metadata;
        let registration = metadata.registration_endpoint.as_deref();
        for endpoint in
            [Some(metadata.authorization_endpoint.as_str()), Some(&metadata.token_endpoint), registration]
                .into_iter()
                .flatten()
        {
            let url = Url::parse(endpoint)
                .map_err(|_| OAuthError::Discovery("it has no usable addresses".to_owned()))?;
            self.policy.check(&url)?;
        }
        let issuer =
            metadata.issuer.clone().unwrap_or_else(|| self.server.url.origin().ascii_serialization());
        if self.server.issuer.as_ref().is_some_and(|wanted| *wanted != issuer) {
            return Err(self.other_issuer(&issuer));
        }
        manager.set_metadata(metadata.clone());
        let key = key_for(challenge, metadata.additional_fields.get("dpop_signing_alg_values_supported"))?;
        let mut found = Found { manager, metadata, web, key: None, issuer };
        if let Some(key) = key {
            found.prove_with(key)?;
        }
        Ok(found)
    }

    /// A new token for an old one, from the issuer of the old one.
    pub(super) async fn renew(&self, mut found: Found, account: &Account) -> Result<Account, OAuthError> {
        let login_needed = || OAuthError::LoginNeeded { server: self.server.id.clone() };
        let refresh_token = account.refresh_token.as_ref().ok_or_else(login_needed)?;
        if account.issuer != found.issuer || !self.is_ours(account) {
            return Err(login_needed());
        }
        let secret = match &self.server.identity {
            ClientIdentity::Registered { client_secret, .. } => client_secret.clone(),
            _ => account.client_secret.clone(),
        };
        if let Some(key) = &account.proof_key {
            found.prove_with(Arc::new(ProofKey::restore(key)?))?;
        }
        // The redirect is not used for this, but the configuration wants one.
        let redirect_uri = account.redirect_uri.clone().unwrap_or_else(|| self.server.resource());
        found.configure(
            &Client { id: account.client_id.clone(), secret: secret.clone(), redirect_uri: None },
            redirect_uri,
        )?;
        let kept = InMemoryCredentialStore::new();
        let old = serde_json::from_value(json!({
            "access_token": account.access_token,
            "token_type": "bearer",
            "refresh_token": refresh_token,
        }));
        let old: OAuthTokenResponse = old.map_err(|_| login_needed())?;
        let stored = StoredCredentials::new(
            account.client_id.clone(),
            Some(old),
            account.granted_scopes.clone(),
            None,
        );
        kept.save(stored).await.map_err(|error| told(error, &[]))?;
        found.manager.set_credential_store(kept);
        let secrets = [Some(refresh_token), secret.as_ref()];
        let issued = quiet(found.manager.refresh_token()).await.map_err(|error| match error {
            AuthError::TokenRefreshRejected(_) | AuthError::AuthorizationRequired => login_needed(),
            other => told(other, &secrets),
        })?;
        let client = Client {
            id: account.client_id.clone(),
            secret: account.client_secret.clone(),
            redirect_uri: account.redirect_uri.clone(),
        };
        let mut renewed = account_of(&issued, &found, client, account.granted_scopes.clone())?;
        renewed.requested_scopes.clone_from(&account.requested_scopes);
        Ok(renewed)
    }

    /// A token by a person's consent.
    pub(super) async fn login(
        &self,
        mut found: Found,
        browser: &dyn Browser,
        known: Option<&Account>,
        more_scopes: &[String],
    ) -> Result<Account, OAuthError> {
        let initial = found.manager.select_initial_scopes(&[]).await;
        let known = known.filter(|account| self.is_ours(account));
        let scopes = wanted_scopes(
            if self.server.scopes.is_empty() { &initial } else { &self.server.scopes },
            known.map_or(&[][..], |account| &account.requested_scopes),
            more_scopes,
            found.metadata.scopes_supported.as_deref().unwrap_or_default(),
        );
        let callback = self.listen(known).await?;
        let client = self.client(&mut found, known, &callback, &scopes).await?;
        let names: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let page =
            quiet(found.manager.get_authorization_url(&names)).await.map_err(|error| told(error, &[]))?;
        let page = BrowserUrl::new(&page, self.policy)?;
        let state = state_of(&page)?;
        let redirected = self.consent(browser, &page, callback, &state).await?;
        let secrets = [Some(&redirected.code), client.secret.as_ref()];
        let issued = quiet(found.manager.exchange_code_for_token_with_issuer(
            redirected.code.reveal(),
            state.reveal(),
            redirected.issuer.as_deref(),
        ))
        .await
        .map_err(|error| told(error, &secrets))?;
        account_of(&issued, &found, client, scopes)
    }

    /// Refuses to show a client that one issuer knows to another, unless the operator named that one: a server that was taken
    /// over could collect its secret.
    pub(super) fn check_issuer(&self, found: &Found, kept: Option<&Kept>) -> Result<(), OAuthError> {
        let (ClientIdentity::Registered { client_id, .. } | ClientIdentity::Machine { client_id, .. }, None) =
            (&self.server.identity, &self.server.issuer)
        else {
            return Ok(());
        };
        let mut known = kept
            .iter()
            .flat_map(|kept| &kept.accounts)
            .filter(|account| account.client_id == *client_id)
            .map(|account| &account.issuer)
            .peekable();
        if known.peek().is_none() || known.any(|issuer| *issuer == found.issuer) {
            return Ok(());
        }
        Err(self.other_issuer(&found.issuer))
    }

    fn other_issuer(&self, issuer: &str) -> OAuthError {
        OAuthError::OtherIssuer { server: self.server.id.clone(), issuer: harmless(issuer) }
    }

    /// Whether what is kept belongs to the client that is configured now.
    fn is_ours(&self, account: &Account) -> bool {
        match &self.server.identity {
            ClientIdentity::Unregistered { .. } => true,
            ClientIdentity::Registered { client_id, .. } | ClientIdentity::Machine { client_id, .. } => {
                account.client_id == *client_id
            }
        }
    }

    /// Listens where the client was registered to be sent back to, if that is free; anywhere otherwise.
    async fn listen(&self, known: Option<&Account>) -> Result<LoopbackCallback, CallbackError> {
        let registered = known.and_then(|account| account.redirect_uri.as_deref()).and_then(redirect_port);
        match (self.server.callback_port, registered) {
            (Some(port), _) => LoopbackCallback::listen(Some(port)).await,
            (None, Some(port)) => match LoopbackCallback::listen(Some(port)).await {
                Err(_) => LoopbackCallback::listen(None).await,
                listening => listening,
            },
            (None, None) => LoopbackCallback::listen(None).await,
        }
    }

    /// Becomes known: as configured by hand, by a metadata document, as before, or by registration, in this order.
    async fn client(
        &self,
        found: &mut Found,
        known: Option<&Account>,
        callback: &LoopbackCallback,
        scopes: &[String],
    ) -> Result<Client, OAuthError> {
        let redirect_uri = callback.redirect_uri();
        let client = match &self.server.identity {
            ClientIdentity::Registered { client_id, client_secret } => {
                Client { id: client_id.clone(), secret: client_secret.clone(), redirect_uri: None }
            }
            ClientIdentity::Machine { client_id, .. } => {
                Client { id: client_id.clone(), secret: None, redirect_uri: None }
            }
            ClientIdentity::Unregistered { metadata_url: Some(url) } if found.takes_metadata_documents() => {
                if !Url::parse(url).is_ok_and(|url| url.scheme() == "https" && url.path() != "/") {
                    return Err(OAuthError::Registration(
                        "the metadata document has no https address".to_owned(),
                    ));
                }
                Client { id: url.clone(), secret: None, redirect_uri: None }
            }
            ClientIdentity::Unregistered { .. } => match known {
                Some(account) if account.redirect_uri.as_deref() == Some(&redirect_uri) => Client {
                    id: account.client_id.clone(),
                    secret: account.client_secret.clone(),
                    redirect_uri: account.redirect_uri.clone(),
                },
                _ => found.register(&self.server.client_name, redirect_uri.clone(), scopes).await?,
            },
        };
        found.configure(&client, redirect_uri)?;
        Ok(client)
    }

    /// Puts the page before a person and waits for the redirect.
    async fn consent(
        &self,
        browser: &dyn Browser,
        page: &BrowserUrl,
        callback: LoopbackCallback,
        state: &HiddenText,
    ) -> Result<Redirected, OAuthError> {
        let opening = browser.open(&self.server.id, page);
        let waiting = callback.wait(state, self.server.login_limit);
        tokio::pin!(opening, waiting);
        // Whoever opens the page may do so at once, or follow it to its end.
        tokio::select! {
            redirected = &mut waiting => Ok(redirected?),
            opened = &mut opening => match opened {
                Ok(()) => Ok(waiting.await?),
                Err(reason) => Err(OAuthError::Browser(harmless(&reason))),
            },
        }
    }
}

impl Found {
    /// Binds tokens to this key from now on.
    fn prove_with(&mut self, key: Arc<ProofKey>) -> Result<(), OAuthError> {
        self.web.prove(&self.metadata.token_endpoint, Arc::clone(&key))?;
        self.key = Some(key);
        Ok(())
    }

    fn takes_metadata_documents(&self) -> bool {
        self.metadata.additional_fields.get("client_id_metadata_document_supported") == Some(&json!(true))
    }

    /// Some give a secret to whoever registers and then do not want to see it.
    fn takes_secrets(&self) -> bool {
        let methods = self.metadata.additional_fields.get("token_endpoint_auth_methods_supported");
        methods.and_then(Value::as_array).is_none_or(|methods| {
            methods.contains(&json!("client_secret_basic")) || methods.contains(&json!("client_secret_post"))
        })
    }

    async fn register(
        &mut self,
        name: &str,
        redirect_uri: String,
        scopes: &[String],
    ) -> Result<Client, OAuthError> {
        if self.metadata.registration_endpoint.is_none() {
            return Err(OAuthError::Registration(
                "the authorization server registers nobody by itself".to_owned(),
            ));
        }
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let registered = quiet(self.manager.register_client(name, &redirect_uri, &scopes))
            .await
            .map_err(|error| told(error, &[]))?;
        Ok(Client {
            id: registered.client_id,
            secret: registered.client_secret.map(HiddenText::new).filter(|_| self.takes_secrets()),
            redirect_uri: Some(redirect_uri),
        })
    }

    fn configure(&mut self, client: &Client, redirect_uri: String) -> Result<(), OAuthError> {
        let mut config = OAuthClientConfig::new(client.id.clone(), redirect_uri);
        if let Some(secret) = &client.secret {
            config = config.with_client_secret(secret.reveal());
        }
        self.manager.configure_client(config).map_err(|error| told(error, &[client.secret.as_ref()]))
    }
}

/// What to ask for: what is wanted, what was asked for before and what is missing, each once; and to stay logged in, where
/// that is offered.
pub(super) fn wanted_scopes(
    base: &[String],
    before: &[String],
    more: &[String],
    supported: &[String],
) -> Vec<String> {
    let mut scopes: Vec<String> = Vec::new();
    let offline = "offline_access".to_owned();
    for scope in before.iter().chain(base).chain(more) {
        if !scope.is_empty() && !scopes.contains(scope) && scopes.len() < MOST_SCOPES {
            scopes.push(scope.clone());
        }
    }
    if !scopes.is_empty() && supported.contains(&offline) && !scopes.contains(&offline) {
        scopes.push(offline);
    }
    scopes
}

/// Runs rmcp without its log: at its lowest levels it writes codes and answers of token endpoints.
pub(super) async fn quiet<T>(work: impl Future<Output = T>) -> T {
    work.with_subscriber(Dispatch::none()).await
}

/// What rmcp's error says to people, without secrets and harmless.
pub(super) fn told(error: AuthError, secrets: &[Option<&HiddenText>]) -> OAuthError {
    let safe = |text: &str| {
        let mut text = harmless(text);
        for secret in secrets.iter().flatten().filter(|secret| !secret.reveal().is_empty()) {
            text = text.replace(secret.reveal(), "…");
        }
        text
    };
    match error {
        AuthError::MetadataError(text) => OAuthError::Discovery(safe(&text)),
        AuthError::AuthorizationServerMismatch { .. }
        | AuthError::AuthorizationServerMissingIssuer { .. } => OAuthError::Refused(safe(&error.to_string())),
        AuthError::RegistrationFailed(text) => OAuthError::Registration(safe(&text)),
        AuthError::TokenExchangeFailed(text)
        | AuthError::TokenRefreshFailed(text)
        | AuthError::TokenRefreshRejected(text)
        | AuthError::ClientCredentialsError(text) => {
            match text.split_once("Server returned error response: ") {
                Some((_, reason)) => OAuthError::Refused(safe(reason)),
                // Anything else may quote the answer, and the answer may hold a token.
                None if text.contains("Request failed") => {
                    OAuthError::Unavailable("it could not be reached".to_owned())
                }
                None => no_token(),
            }
        }
        other => OAuthError::Unavailable(safe(&other.to_string())),
    }
}

pub(super) fn no_token() -> OAuthError {
    OAuthError::Unavailable("its answer is no token".to_owned())
}

fn state_of(page: &BrowserUrl) -> Result<HiddenText, OAuthError> {
    let url = Url::parse(page.as_str()).ok();
    url.and_then(|url| {
        url.query_pairs().find(|(name, _)| name == "state").map(|(_, state)| HiddenText::new(state))
    })
    .ok_or_else(|| OAuthError::Discovery("its page cannot be told apart from others".to_owned()))
}

pub(super) fn account_of(
    issued: &OAuthTokenResponse,
    found: &Found,
    client: Client,
    requested: Vec<String>,
) -> Result<Account, OAuthError> {
    let value = serde_json::to_value(issued).map_err(|_| no_token())?;
    let issued: Issued = serde_json::from_value(value).map_err(|_| no_token())?;
    // A key that was proved binds the token only if the answer says so.
    let bound = found.key.as_ref().filter(|_| issued.token_type.eq_ignore_ascii_case("dpop"));
    let usable = bound.is_some() || issued.token_type.eq_ignore_ascii_case("bearer");
    if !usable || issued.access_token.reveal().is_empty() {
        return Err(no_token());
    }
    let granted = issued.scope.map(|scope| scope.split_whitespace().map(str::to_owned).collect());
    Ok(Account {
        issuer: found.issuer.clone(),
        client_id: client.id,
        client_secret: client.secret.filter(|_| client.redirect_uri.is_some()),
        redirect_uri: client.redirect_uri,
        access_token: issued.access_token,
        refresh_token: issued.refresh_token,
        obtained_at: now(),
        lifetime: issued.expires_in,
        granted_scopes: granted.unwrap_or_else(|| requested.clone()),
        requested_scopes: requested,
        proof_key: bound.map(|key| key.kept().clone()),
    })
}

/// Seconds since 1970: tokens outlive processes, so their age is told by the wall.
pub(super) fn now() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs()
}
