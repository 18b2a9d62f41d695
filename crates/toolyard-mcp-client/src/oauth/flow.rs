//! One authorization flow: discover the authorization server, identify the client, obtain a token.

use std::sync::Arc;

use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, CredentialStore, InMemoryCredentialStore,
    OAuthClientConfig, OAuthTokenResponse, StoredCredentials,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tracing::{Dispatch, instrument::WithSubscriber};
use url::Url;

use super::{
    AuthorizationResponse, Browser, BrowserUrl, CallbackError, ClientIdentity, LoopbackCallback, OAuthError,
    OAuthServer,
    address_policy::AddressPolicy,
    callback::redirect_port,
    http_client::OAuthHttp,
    token_store::{Account, ServerTokens, unix_seconds},
};
use crate::{SecretText, sanitize::sanitize_line};

/// The name of the client on consent pages.
const CLIENT_NAME: &str = "Toolyard";
const MAX_SCOPES: usize = 100;

pub(super) struct Flow<'a> {
    pub(super) server: &'a OAuthServer,
    pub(super) policy: &'a AddressPolicy,
}

pub(super) struct AuthorizationServer {
    pub(super) manager: AuthorizationManager,
    pub(super) metadata: AuthorizationMetadata,
    pub(super) http: Arc<OAuthHttp>,
    /// The issuer ([`Flow::issuer_of`]).
    pub(super) issuer: String,
}

/// The client as the authorization server knows it.
pub(super) struct OAuthClient {
    pub(super) id: String,
    pub(super) secret: Option<SecretText>,
    /// Set if the client was registered dynamically.
    pub(super) redirect_uri: Option<String>,
}

/// A login whose page may be opened.
pub(super) struct PreparedLogin {
    auth_server: AuthorizationServer,
    client: OAuthClient,
    scopes: Vec<String>,
    /// The login page.
    pub(super) url: BrowserUrl,
    /// The state that the authorization response repeats.
    pub(super) state: SecretText,
}

/// The fields of a token response that are stored.
#[derive(Deserialize)]
struct TokenResponse {
    access_token: SecretText,
    token_type: String,
    refresh_token: Option<SecretText>,
    expires_in: Option<u64>,
    scope: Option<String>,
}

impl Flow<'_> {
    /// Discovers the authorization server from the challenge or from well-known documents.
    pub(super) async fn discover(&self, challenge: Option<&str>) -> Result<AuthorizationServer, OAuthError> {
        let http = Arc::new(OAuthHttp::new(self.policy.clone())?);
        let resource = self.server.resource();
        let mut manager =
            AuthorizationManager::new_with_oauth_http_client(resource.as_str(), Arc::clone(&http) as _)
                .await
                .map_err(|error| oauth_error(error, &[]))?;
        let resolution = without_logs(manager.resolve_metadata_from_challenge(challenge))
            .await
            .map_err(|error| oauth_error(error, &[]))?;
        if challenge.is_none() && !resolution.source.is_discovered() {
            return Err(OAuthError::Discovery("the server publishes no authorization metadata".to_owned()));
        }
        let metadata = Box::pin(self.verify_metadata(&http, resolution.metadata)).await?;
        let issuer = self.issuer_of(&metadata);
        manager.set_metadata(metadata.clone());
        Ok(AuthorizationServer { manager, metadata, http, issuer })
    }

    pub(super) async fn renew(
        &self,
        mut auth_server: AuthorizationServer,
        account: &Account,
    ) -> Result<Account, OAuthError> {
        let login_needed = || OAuthError::LoginRequired { server: self.server.id.clone() };
        let refresh_token = account.refresh_token.as_ref().ok_or_else(login_needed)?;
        if account.issuer != auth_server.issuer || !self.belongs_to_client(account) {
            return Err(login_needed());
        }
        let secret = match &self.server.identity {
            ClientIdentity::Registered { client_secret, .. } => client_secret.clone(),
            _ => account.client_secret.clone(),
        };
        // The redirect URI is required by the configuration but not used here.
        let redirect_uri = account.redirect_uri.clone().unwrap_or_else(|| self.server.resource());
        auth_server.configure(
            &OAuthClient { id: account.client_id.clone(), secret: secret.clone(), redirect_uri: None },
            redirect_uri,
        )?;
        let credentials = InMemoryCredentialStore::new();
        let old_token = serde_json::from_value(json!({
            "access_token": account.access_token,
            "token_type": "bearer",
            "refresh_token": refresh_token,
        }));
        let old_token: OAuthTokenResponse = old_token.map_err(|_| login_needed())?;
        // Without scopes, the request asks for those that were granted; rmcp would add `offline_access`, which may not be among them.
        let stored = StoredCredentials::new(account.client_id.clone(), Some(old_token), Vec::new(), None);
        credentials.save(stored).await.map_err(|error| oauth_error(error, &[]))?;
        auth_server.manager.set_credential_store(credentials);
        let secrets = [Some(refresh_token), secret.as_ref()];
        let issued =
            without_logs(auth_server.manager.refresh_token()).await.map_err(|error| match error {
                AuthError::TokenRefreshRejected(_) | AuthError::AuthorizationRequired => login_needed(),
                other => oauth_error(other, &secrets),
            })?;
        let client = OAuthClient {
            id: account.client_id.clone(),
            secret: account.client_secret.clone(),
            redirect_uri: account.redirect_uri.clone(),
        };
        let mut renewed = account_from(&issued, &auth_server, client, account.granted_scopes.clone())?;
        renewed.requested_scopes.clone_from(&account.requested_scopes);
        Ok(renewed)
    }

    /// A login in a browser on this machine.
    pub(super) async fn login(
        &self,
        auth_server: AuthorizationServer,
        browser: &dyn Browser,
        known_account: Option<&Account>,
        more_scopes: &[String],
    ) -> Result<Account, OAuthError> {
        let callback = self.listen(known_account.filter(|account| self.belongs_to_client(account))).await?;
        let login =
            self.prepare_login(auth_server, callback.redirect_uri(), known_account, more_scopes).await?;
        let response = self.await_login(browser, &login.url, callback, &login.state).await?;
        redeem(login, response).await
    }

    /// Identifies the client and builds the URL of the login page.
    pub(super) async fn prepare_login(
        &self,
        mut auth_server: AuthorizationServer,
        redirect_uri: String,
        known_account: Option<&Account>,
        more_scopes: &[String],
    ) -> Result<PreparedLogin, OAuthError> {
        let initial = auth_server.manager.select_initial_scopes(&[]).await;
        let known_account = known_account.filter(|account| self.belongs_to_client(account));
        let scopes = scopes_to_request(
            if self.server.scopes.is_empty() { &initial } else { &self.server.scopes },
            known_account.map_or(&[][..], |account| &account.requested_scopes),
            more_scopes,
            auth_server.metadata.scopes_supported.as_deref().unwrap_or_default(),
        );
        let client = self.identify_client(&mut auth_server, known_account, redirect_uri, &scopes).await?;
        let scope_names: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let url = without_logs(auth_server.manager.get_authorization_url(&scope_names))
            .await
            .map_err(|error| oauth_error(error, &[]))?;
        let url = BrowserUrl::new(&url, self.policy)?;
        let state = state_parameter(&url)?;
        Ok(PreparedLogin { auth_server, client, scopes, url, state })
    }

    /// Refuses to present a client to another issuer than the one it is registered with, unless the operator configured that
    /// issuer: a compromised server could collect the client secret.
    pub(super) fn check_issuer(
        &self,
        auth_server: &AuthorizationServer,
        stored: Option<&ServerTokens>,
    ) -> Result<(), OAuthError> {
        let (
            ClientIdentity::Registered { client_id, .. }
            | ClientIdentity::ClientCredentials { client_id, .. },
            None,
        ) = (&self.server.identity, &self.server.issuer)
        else {
            return Ok(());
        };
        let mut known_issuers = stored
            .iter()
            .flat_map(|stored| &stored.accounts)
            .filter(|account| account.client_id == *client_id)
            .map(|account| &account.issuer)
            .peekable();
        if known_issuers.peek().is_none() || known_issuers.any(|issuer| *issuer == auth_server.issuer) {
            return Ok(());
        }
        Err(self.issuer_mismatch(&auth_server.issuer))
    }

    pub(super) fn issuer_mismatch(&self, issuer: &str) -> OAuthError {
        OAuthError::IssuerMismatch { server: self.server.id.clone(), issuer: sanitize_line(issuer) }
    }

    fn belongs_to_client(&self, account: &Account) -> bool {
        match &self.server.identity {
            ClientIdentity::Unregistered { .. } => true,
            ClientIdentity::Registered { client_id, .. }
            | ClientIdentity::ClientCredentials { client_id, .. } => account.client_id == *client_id,
        }
    }

    /// Listens on the registered port, if it is free; on any port otherwise.
    async fn listen(&self, known_account: Option<&Account>) -> Result<LoopbackCallback, CallbackError> {
        let registered =
            known_account.and_then(|account| account.redirect_uri.as_deref()).and_then(redirect_port);
        match (self.server.callback_port, registered) {
            (Some(port), _) => LoopbackCallback::listen(Some(port)).await,
            (None, Some(port)) => match LoopbackCallback::listen(Some(port)).await {
                Err(_) => LoopbackCallback::listen(None).await,
                listening => listening,
            },
            (None, None) => LoopbackCallback::listen(None).await,
        }
    }

    /// Identifies the client: as configured, by a metadata document, as registered before, or by registration.
    async fn identify_client(
        &self,
        auth_server: &mut AuthorizationServer,
        known_account: Option<&Account>,
        redirect_uri: String,
        scopes: &[String],
    ) -> Result<OAuthClient, OAuthError> {
        let client = match &self.server.identity {
            ClientIdentity::Registered { client_id, client_secret } => {
                OAuthClient { id: client_id.clone(), secret: client_secret.clone(), redirect_uri: None }
            }
            ClientIdentity::ClientCredentials { client_id, .. } => {
                OAuthClient { id: client_id.clone(), secret: None, redirect_uri: None }
            }
            ClientIdentity::Unregistered { metadata_url: Some(url) }
                if auth_server.accepts_metadata_documents() =>
            {
                if !Url::parse(url).is_ok_and(|url| url.scheme() == "https" && url.path() != "/") {
                    return Err(OAuthError::Registration(
                        "the metadata document has no https URL".to_owned(),
                    ));
                }
                OAuthClient { id: url.clone(), secret: None, redirect_uri: None }
            }
            ClientIdentity::Unregistered { .. } => match known_account {
                Some(account) if account.redirect_uri.as_deref() == Some(&redirect_uri) => OAuthClient {
                    id: account.client_id.clone(),
                    secret: account.client_secret.clone(),
                    redirect_uri: account.redirect_uri.clone(),
                },
                _ => auth_server.register(redirect_uri.clone(), scopes).await?,
            },
        };
        auth_server.configure(&client, redirect_uri)?;
        Ok(client)
    }

    /// Opens the login page and waits for the authorization response.
    async fn await_login(
        &self,
        browser: &dyn Browser,
        login_url: &BrowserUrl,
        callback: LoopbackCallback,
        state: &SecretText,
    ) -> Result<AuthorizationResponse, OAuthError> {
        let opening = browser.open(&self.server.id, login_url);
        let waiting = callback.wait(state, self.server.login_timeout);
        tokio::pin!(opening, waiting);
        // Opening may return at once or only after the redirect.
        tokio::select! {
            response = &mut waiting => Ok(response?),
            opened = &mut opening => match opened {
                Ok(()) => Ok(waiting.await?),
                Err(reason) => Err(OAuthError::Browser(sanitize_line(&reason.to_string()))),
            },
        }
    }
}

impl AuthorizationServer {
    fn accepts_metadata_documents(&self) -> bool {
        self.metadata.additional_fields.get("client_id_metadata_document_supported") == Some(&json!(true))
    }

    /// Some servers issue a secret at registration and then do not accept it.
    fn accepts_client_secrets(&self) -> bool {
        let methods = self.metadata.additional_fields.get("token_endpoint_auth_methods_supported");
        methods.and_then(Value::as_array).is_none_or(|methods| {
            methods.contains(&json!("client_secret_basic")) || methods.contains(&json!("client_secret_post"))
        })
    }

    async fn register(&mut self, redirect_uri: String, scopes: &[String]) -> Result<OAuthClient, OAuthError> {
        if self.metadata.registration_endpoint.is_none() {
            return Err(OAuthError::Registration(
                "the authorization server does not support registration".to_owned(),
            ));
        }
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let registered = without_logs(self.manager.register_client(CLIENT_NAME, &redirect_uri, &scopes))
            .await
            .map_err(|error| oauth_error(error, &[]))?;
        Ok(OAuthClient {
            id: registered.client_id,
            secret: registered.client_secret.map(SecretText::new).filter(|_| self.accepts_client_secrets()),
            redirect_uri: Some(redirect_uri),
        })
    }

    fn configure(&mut self, client: &OAuthClient, redirect_uri: String) -> Result<(), OAuthError> {
        let mut config = OAuthClientConfig::new(client.id.clone(), redirect_uri);
        if let Some(secret) = &client.secret {
            config = config.with_client_secret(secret.expose());
        }
        self.manager.configure_client(config).map_err(|error| oauth_error(error, &[client.secret.as_ref()]))
    }
}

/// Redeems the code of an authorization response; its issuer is checked.
pub(super) async fn redeem(
    login: PreparedLogin,
    response: AuthorizationResponse,
) -> Result<Account, OAuthError> {
    let PreparedLogin { auth_server, client, scopes, state, .. } = login;
    let secrets = [Some(&response.code), client.secret.as_ref()];
    let issued = without_logs(auth_server.manager.exchange_code_for_token_with_issuer(
        response.code.expose(),
        state.expose(),
        response.issuer.as_deref(),
    ))
    .await
    .map_err(|error| oauth_error(error, &secrets))?;
    account_from(&issued, &auth_server, client, scopes)
}

/// The scopes to request, without duplicates: those requested `before`, the configured or initial ones (`base`) and `more`;
/// plus `offline_access`, if supported.
pub(super) fn scopes_to_request(
    base: &[String],
    before: &[String],
    more: &[String],
    supported: &[String],
) -> Vec<String> {
    let mut scopes: Vec<String> = Vec::new();
    let offline = "offline_access".to_owned();
    for scope in before.iter().chain(base).chain(more) {
        if !scope.is_empty() && !scopes.contains(scope) && scopes.len() < MAX_SCOPES {
            scopes.push(scope.clone());
        }
    }
    if !scopes.is_empty() && supported.contains(&offline) && !scopes.contains(&offline) {
        scopes.push(offline);
    }
    scopes
}

/// Runs rmcp without its logs, which contain codes and token responses at the lowest levels.
pub(super) async fn without_logs<T>(work: impl Future<Output = T>) -> T {
    work.with_subscriber(Dispatch::none()).await
}

/// Converts an error of rmcp, without secrets and sanitized.
pub(super) fn oauth_error(error: AuthError, secrets: &[Option<&SecretText>]) -> OAuthError {
    let redact = |text: &str| {
        let mut text = sanitize_line(text);
        for secret in secrets.iter().flatten().filter(|secret| !secret.expose().is_empty()) {
            text = text.replace(secret.expose(), "…");
        }
        text
    };
    match error {
        AuthError::MetadataError(text) => OAuthError::Discovery(redact(&text)),
        AuthError::AuthorizationServerMismatch { .. }
        | AuthError::AuthorizationServerMissingIssuer { .. } => {
            OAuthError::Refused(redact(&error.to_string()))
        }
        AuthError::RegistrationFailed(text) => OAuthError::Registration(redact(&text)),
        AuthError::TokenExchangeFailed(text)
        | AuthError::TokenRefreshFailed(text)
        | AuthError::TokenRefreshRejected(text)
        | AuthError::ClientCredentialsError(text) => {
            match text.split_once("Server returned error response: ") {
                Some((_, reason)) => OAuthError::Refused(redact(reason)),
                // Any other text may quote the response, which may contain a token.
                None if text.contains("Request failed") => {
                    OAuthError::Unavailable("the connection failed".to_owned())
                }
                None => invalid_token_response(),
            }
        }
        other => OAuthError::Unavailable(redact(&other.to_string())),
    }
}

pub(super) fn invalid_token_response() -> OAuthError {
    OAuthError::Unavailable("the response contains no valid token".to_owned())
}

fn state_parameter(login_url: &BrowserUrl) -> Result<SecretText, OAuthError> {
    let url = Url::parse(login_url.as_str()).ok();
    url.and_then(|url| {
        url.query_pairs().find(|(name, _)| name == "state").map(|(_, state)| SecretText::new(state))
    })
    .ok_or_else(|| OAuthError::Discovery("the authorization URL has no state".to_owned()))
}

pub(super) fn account_from(
    issued: &OAuthTokenResponse,
    auth_server: &AuthorizationServer,
    client: OAuthClient,
    requested: Vec<String>,
) -> Result<Account, OAuthError> {
    let value = serde_json::to_value(issued).map_err(|_| invalid_token_response())?;
    let issued: TokenResponse = serde_json::from_value(value).map_err(|_| invalid_token_response())?;
    // A token that is bound to a key (DPoP) would be refused without proofs of that key.
    if !issued.token_type.eq_ignore_ascii_case("bearer") || issued.access_token.expose().is_empty() {
        return Err(invalid_token_response());
    }
    let granted = issued.scope.map(|scope| scope.split_whitespace().map(str::to_owned).collect());
    Ok(Account {
        issuer: auth_server.issuer.clone(),
        client_id: client.id,
        client_secret: client.secret.filter(|_| client.redirect_uri.is_some()),
        redirect_uri: client.redirect_uri,
        access_token: issued.access_token,
        refresh_token: issued.refresh_token,
        obtained_at: unix_seconds(),
        lifetime: issued.expires_in,
        granted_scopes: granted.unwrap_or_else(|| requested.clone()),
        requested_scopes: requested,
    })
}
