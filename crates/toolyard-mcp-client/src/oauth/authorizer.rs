//! Provides the tokens of one server: renews them before they expire and obtains new ones when the server refuses them.

use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rmcp::transport::auth::WWWAuthenticateParams;
use tokio::{sync::Mutex as AsyncMutex, time::Instant};
use toolyard_core::BoxFuture;

use super::{
    Browser, CallerTokenError, ClientIdentity, OAuthError, OAuthServer, TokenKey, TokenStore,
    TokenStoreError,
    address_policy::AddressPolicy,
    flow::Flow,
    token_removal::SaveCondition,
    token_store::{Account, ServerTokens, unix_seconds},
};
use crate::{Authorizer, ChallengeError, SecretHeader, sanitize::sanitize_line};

/// Tokens are renewed this long before they expire, or after nine tenths of their lifetime if that is later.
const RENEW_AHEAD_SECS: u64 = 60;
/// The delay after a failed renewal, while the token is still valid.
const RENEWAL_RETRY_DELAY: Duration = Duration::from_secs(30);
/// Renewals within a period for a server that refuses fresh tokens; after that, the user must log in.
const MAX_RENEWALS: (usize, Duration) = (2, Duration::from_mins(1));
/// Logins within a period.
const MAX_LOGINS: (usize, Duration) = (3, Duration::from_mins(10));
/// Client credentials grants within a period; these tokens may be short-lived and need no user.
const MAX_CLIENT_CREDENTIAL_GRANTS: (usize, Duration) = (5, Duration::from_mins(1));

/// The [`Authorizer`] of one server. Renewals and logins are exclusive; concurrent callers wait for the result. They run to
/// completion even if the caller is cancelled, because the refresh token may be spent or the user may be logging in.
#[derive(Debug)]
pub struct OAuthAuthorizer(pub(super) Arc<TokenManager>);

pub(super) struct TokenManager {
    pub(super) server: OAuthServer,
    policy: AddressPolicy,
    pub(super) store: TokenStore,
    pub(super) key: TokenKey,
    browser: Option<Arc<dyn Browser>>,
    active: Mutex<Option<ActiveToken>>,
    pub(super) state: AsyncMutex<RenewalState>,
    /// When the stored tokens were last looked for.
    pub(super) removal_checked_at: Mutex<Option<Instant>>,
}

/// The login at a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginState {
    /// The issuer of the token.
    pub issuer: String,
    /// The granted scopes.
    pub scopes: Vec<String>,
    /// Whether the token can be renewed without the user.
    pub is_renewable: bool,
}

#[derive(Clone)]
struct ActiveToken {
    header: SecretHeader,
    renew_at: Option<u64>,
    expires_at: Option<u64>,
}

/// The account in use, and the recent attempts that the limits above count.
#[derive(Default)]
pub(super) struct RenewalState {
    is_loaded: bool,
    pub(super) account: Option<Account>,
    renewals: Vec<Instant>,
    grants: Vec<Instant>,
    retry_at: Option<Instant>,
}

impl OAuthAuthorizer {
    /// An authorizer that renews stored tokens. Fails for an address over which tokens would be sent unencrypted.
    pub fn new(server: OAuthServer, store: TokenStore) -> Result<Self, OAuthError> {
        let policy = AddressPolicy::new(&server.url);
        let mut address = server.url.clone();
        // User information in the URL is allowed here, but never sent.
        let _ = address.set_username("");
        let _ = address.set_password(None);
        policy.check(&address)?;
        if server.identity.caller().is_some() && server.issuer.is_none() {
            return Err(CallerTokenError::NoIssuer { server: server.id }.into());
        }
        Ok(Self(Arc::new(TokenManager::new(server, policy, store, None))))
    }

    /// The same authorizer with a browser in which the user can log in.
    #[must_use]
    pub fn with_browser(self, browser: Arc<dyn Browser>) -> Self {
        let TokenManager { server, policy, store, .. } = &*self.0;
        Self(Arc::new(TokenManager::new(server.clone(), policy.clone(), store.clone(), Some(browser))))
    }

    /// Lets the user log in, with the scopes that the server needs and these. Ignores stored tokens.
    pub async fn login(&self, scopes: &[String]) -> Result<(), OAuthError> {
        let mut state = self.0.state.lock().await;
        let account = Box::pin(self.0.obtain(None, None, scopes)).await?;
        self.0.store_account(&mut state, account).await?;
        Ok(())
    }

    /// Removes the stored tokens. Returns whether there were any.
    pub async fn logout(&self) -> Result<bool, OAuthError> {
        let mut state = self.0.state.lock().await;
        let existed = self.0.store.remove(&self.0.key)?;
        *state = RenewalState::default();
        self.0.set_active_token(None);
        Ok(existed)
    }

    /// The current login, if there is one.
    pub async fn state(&self) -> Result<Option<LoginState>, OAuthError> {
        let mut state = self.0.state.lock().await;
        self.0.load(&mut state)?;
        Ok(state.account.as_ref().map(|account| LoginState {
            issuer: account.issuer.clone(),
            scopes: account.granted_scopes.clone(),
            is_renewable: account.refresh_token.is_some() || self.0.uses_client_credentials(),
        }))
    }
}

impl Authorizer for OAuthAuthorizer {
    fn token(&self) -> BoxFuture<'_, Option<SecretHeader>> {
        Box::pin(async {
            if let Some(header) = self.0.fresh_token() {
                return Some(header);
            }
            let manager = Arc::clone(&self.0);
            tokio::spawn(async move { manager.current_token().await }).await.unwrap_or_default()
        })
    }

    fn handle_challenge<'a>(
        &'a self,
        sent_token: Option<&'a SecretHeader>,
        status: u16,
        www_authenticate: Option<&'a str>,
    ) -> BoxFuture<'a, Result<bool, ChallengeError>> {
        let (manager, sent_token) = (Arc::clone(&self.0), sent_token.cloned());
        let challenge = www_authenticate.unwrap_or_default().to_owned();
        let is_of_caller = self.0.server.caller.is_some();
        Box::pin(async move {
            let handled =
                tokio::spawn(
                    async move { manager.handle_refusal(sent_token.as_ref(), status, &challenge).await },
                );
            match handled.await {
                Ok(handled) => handled.map_err(|error| challenge_error(&error, is_of_caller)),
                Err(_) => Err(ChallengeError::Failed("authorization ended unexpectedly".to_owned())),
            }
        })
    }
}

impl TokenManager {
    fn new(
        server: OAuthServer,
        policy: AddressPolicy,
        store: TokenStore,
        browser: Option<Arc<dyn Browser>>,
    ) -> Self {
        Self {
            key: server.token_key(),
            server,
            policy,
            store,
            browser,
            active: Mutex::default(),
            state: AsyncMutex::default(),
            removal_checked_at: Mutex::default(),
        }
    }

    pub(super) fn flow(&self) -> Flow<'_> {
        Flow { server: &self.server, policy: &self.policy }
    }

    fn uses_client_credentials(&self) -> bool {
        matches!(self.server.identity, ClientIdentity::ClientCredentials { .. })
    }

    /// Whether a new token needs a login of the user, and no browser is available.
    fn needs_browser(&self) -> bool {
        self.browser.is_none() && !self.uses_client_credentials()
    }

    /// Fails if tokens are requested on behalf of a caller that has no valid token, before anything is sent.
    fn check_caller(&self) -> Result<(), OAuthError> {
        if let Some(caller) = self.server.identity.caller() {
            caller.subject_token(&self.server.id)?;
        }
        Ok(())
    }

    fn login_required(&self) -> OAuthError {
        OAuthError::LoginRequired { server: self.server.id.clone() }
    }

    fn active_token(&self) -> Option<ActiveToken> {
        self.active.lock().clone()
    }

    fn set_active_token(&self, active: Option<ActiveToken>) {
        *self.active.lock() = active;
    }

    /// Drops the token: the sign-in was removed, and must not come back.
    pub(super) fn forget(&self, state: &mut RenewalState) {
        state.account = None;
        self.set_active_token(None);
    }

    /// Loads the stored tokens once.
    fn load(&self, state: &mut RenewalState) -> Result<(), TokenStoreError> {
        if !state.is_loaded {
            let stored = self.store.load(&self.key)?;
            state.is_loaded = true;
            if let Some(account) = stored.as_ref().and_then(|stored| stored.account(&self.server.resource()))
            {
                self.activate(state, account.clone());
            }
        }
        Ok(())
    }

    pub(super) fn activate(&self, state: &mut RenewalState, account: Account) {
        let is_renewable = account.refresh_token.is_some() || self.uses_client_credentials();
        let renew_at = account.lifetime.filter(|_| is_renewable).map(|lifetime| {
            let ahead = RENEW_AHEAD_SECS.min(lifetime / 10);
            account.obtained_at.saturating_add(lifetime.saturating_sub(ahead))
        });
        let header = SecretHeader::bearer(account.access_token.expose());
        let expires_at = account.expires_at();
        self.set_active_token(header.map(|header| ActiveToken { header, renew_at, expires_at }));
        state.account = Some(account);
        state.is_loaded = true;
        state.retry_at = None;
    }

    async fn store_account(&self, state: &mut RenewalState, account: Account) -> Result<(), TokenStoreError> {
        self.activate(state, account.clone());
        self.save_account(account, SaveCondition::Always).await.map(drop)
    }

    /// Stores an account, if the condition is met; returns whether it was.
    pub(super) async fn save_account(
        &self,
        account: Account,
        condition: SaveCondition<'_>,
    ) -> Result<bool, TokenStoreError> {
        let locked = self.store.lock(&self.key).await?;
        let mut stored = locked.load()?.unwrap_or_default();
        stored.put(&self.server.resource(), account);
        stored.caller = self.server.caller.as_ref().map(|caller| caller.name.to_string());
        locked.save(stored, condition)
    }

    /// The active token, if neither a renewal nor a check of the stored tokens is due.
    fn fresh_token(&self) -> Option<SecretHeader> {
        self.active_token()
            .filter(|_| !self.is_removal_check_due())
            .filter(|active| active.renew_at.is_none_or(|at| unix_seconds() < at))
            .map(|active| active.header)
    }

    /// The token to send, renewed if that is due. While another task renews, a token that is still valid is returned.
    async fn current_token(&self) -> Option<SecretHeader> {
        let valid_token =
            self.active_token().filter(|active| active.expires_at.is_some_and(|at| unix_seconds() < at));
        let mut state = match (self.state.try_lock(), valid_token) {
            (Ok(state), _) => state,
            (Err(_), Some(active)) => return Some(active.header),
            (Err(_), None) => self.state.lock().await,
        };
        if let Err(error) = self.load(&mut state) {
            tracing::warn!(server = self.server.id, %error, "failed to load stored tokens");
        }
        self.check_removal(&mut state);
        if let Some(header) = self.fresh_token() {
            return Some(header);
        }
        let waits_to_retry = state.retry_at.is_some_and(|until| Instant::now() < until);
        if state.account.is_some()
            && !waits_to_retry
            && let Err(error) = Box::pin(self.renew(&mut state, None)).await
        {
            // The server may still accept the old token; if not, its challenge triggers a login.
            tracing::warn!(server = self.server.id, %error, "failed to renew a token");
            state.retry_at = Some(Instant::now() + RENEWAL_RETRY_DELAY);
        }
        self.active_token().map(|active| active.header)
    }

    /// Renews the active token under the file lock. Another process may have renewed it already, and a refresh token may be
    /// valid only once, so the stored tokens are checked first.
    async fn renew(&self, state: &mut RenewalState, challenge: Option<&str>) -> Result<(), OAuthError> {
        let locked = self.store.lock(&self.key).await?;
        let stored = locked.load()?;
        let stored_account = stored.as_ref().and_then(|stored| stored.account(&self.server.resource()));
        if self.activate_newer(state, stored_account) {
            return Ok(());
        }
        if self.server.caller.is_some() && stored_account.is_none() {
            self.forget(state);
        }
        let account = state.account.clone().ok_or_else(|| self.login_required())?;
        self.check_caller()?;
        let flow = self.flow();
        let auth_server = flow.discover(challenge).await?;
        flow.check_issuer(&auth_server, stored.as_ref())?;
        let renewed = match &self.server.identity {
            ClientIdentity::ClientCredentials { client_id, authentication } => {
                flow.request_client_credentials(
                    auth_server,
                    client_id,
                    authentication,
                    &account.requested_scopes,
                )
                .await?
            }
            _ => flow.renew(auth_server, &account).await?,
        };
        let mut updated = stored.clone().unwrap_or_default();
        updated.put(&self.server.resource(), renewed.clone());
        match locked.save(updated, SaveCondition::Unchanged(stored.as_ref())) {
            Ok(true) => {}
            Ok(false) => {
                self.forget(state);
                return Err(self.login_required());
            }
            Err(error) => tracing::warn!(server = self.server.id, %error, "failed to store a token"),
        }
        self.activate(state, renewed);
        Ok(())
    }

    /// Activates a token that another process stored in the meantime.
    fn activate_newer(&self, state: &mut RenewalState, stored: Option<&Account>) -> bool {
        let ours = state.account.as_ref().map(|account| &account.access_token);
        match stored {
            Some(stored) if ours != Some(&stored.access_token) => {
                self.activate(state, stored.clone());
                true
            }
            _ => false,
        }
    }

    /// Obtains a new token by client credentials or by a login of the user.
    async fn obtain(
        &self,
        challenge: Option<&str>,
        stored: Option<&ServerTokens>,
        scopes: &[String],
    ) -> Result<Account, OAuthError> {
        let flow = self.flow();
        if self.needs_browser() {
            return Err(self.login_required());
        }
        let auth_server = flow.discover(challenge).await?;
        flow.check_issuer(&auth_server, stored)?;
        if let ClientIdentity::ClientCredentials { client_id, authentication } = &self.server.identity {
            return flow.request_client_credentials(auth_server, client_id, authentication, scopes).await;
        }
        let Some(browser) = &self.browser else { return Err(self.login_required()) };
        tracing::info!(
            server = self.server.id,
            issuer = auth_server.issuer,
            "requesting a login from the user"
        );
        let known_account =
            stored.and_then(|stored| stored.account_at(&self.server.resource(), &auth_server.issuer));
        flow.login(auth_server, browser.as_ref(), known_account, scopes).await
    }

    /// Handles a 401 or 403 response. Returns whether to send the request again.
    async fn handle_refusal(
        &self,
        sent_token: Option<&SecretHeader>,
        status: u16,
        challenge: &str,
    ) -> Result<bool, OAuthError> {
        let mut state = self.state.lock().await;
        self.load(&mut state)?;
        if self.active_token().is_some_and(|active| Some(&active.header) != sent_token) {
            return Ok(true);
        }
        let stored = self.store.load(&self.key)?;
        let stored = stored.as_ref().and_then(|stored| stored.account(&self.server.resource()));
        if self.activate_newer(&mut state, stored) {
            return Ok(true);
        }
        match status {
            401 => self.handle_unauthorized(&mut state, challenge).await?,
            403 => {
                let refusal = WWWAuthenticateParams::parse(challenge, &self.server.url);
                if !refusal.is_insufficient_scope() {
                    return Ok(false);
                }
                self.handle_insufficient_scope(&mut state, challenge, &refusal.scope.unwrap_or_default())
                    .await?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    async fn handle_unauthorized(&self, state: &mut RenewalState, challenge: &str) -> Result<(), OAuthError> {
        let is_renewable = state.account.as_ref().is_some_and(|account| account.refresh_token.is_some());
        if is_renewable && record_attempt(&mut state.renewals, MAX_RENEWALS) {
            match Box::pin(self.renew(state, Some(challenge))).await {
                Err(OAuthError::LoginRequired { .. }) => {}
                outcome => return outcome,
            }
        }
        self.obtain_for_request(state, challenge, &[]).await
    }

    async fn handle_insufficient_scope(
        &self,
        state: &mut RenewalState,
        challenge: &str,
        missing_scopes: &str,
    ) -> Result<(), OAuthError> {
        let scopes: Vec<String> = missing_scopes.split_whitespace().map(str::to_owned).collect();
        let already_requested =
            state.account.as_ref().map(|account| account.requested_scopes.clone()).unwrap_or_default();
        let missing_scopes = if missing_scopes.is_empty() {
            already_requested.join(" ")
        } else {
            sanitize_line(missing_scopes)
        };
        if scopes.iter().all(|scope| already_requested.contains(scope)) {
            return Err(OAuthError::ScopeRefused { server: self.server.id.clone(), scopes: missing_scopes });
        }
        if self.needs_browser() {
            return Err(OAuthError::InsufficientScope {
                server: self.server.id.clone(),
                scopes: missing_scopes,
            });
        }
        self.obtain_for_request(state, challenge, &scopes).await
    }

    /// Obtains a token for a pending request.
    async fn obtain_for_request(
        &self,
        state: &mut RenewalState,
        challenge: &str,
        scopes: &[String],
    ) -> Result<(), OAuthError> {
        if self.needs_browser() {
            return Err(self.login_required());
        }
        self.check_caller()?;
        let limit = if self.uses_client_credentials() { MAX_CLIENT_CREDENTIAL_GRANTS } else { MAX_LOGINS };
        if !record_attempt(&mut state.grants, limit) {
            return Err(OAuthError::TooManyAttempts { server: self.server.id.clone(), times: limit.0 });
        }
        let stored = self.store.load(&self.key)?;
        let account = Box::pin(self.obtain(Some(challenge), stored.as_ref(), scopes)).await?;
        if let Err(error) = self.store_account(state, account).await {
            tracing::warn!(server = self.server.id, %error, "failed to store a token");
        }
        Ok(())
    }
}

impl fmt::Debug for TokenManager {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TokenManager")
            .field("server", &self.server.id)
            .field("browser", &self.browser.is_some())
            .finish_non_exhaustive()
    }
}

/// Tokens of a caller need a sign-in of that caller, which the gateway offers; those of the operator need a command.
fn challenge_error(error: &OAuthError, is_of_caller: bool) -> ChallengeError {
    match error {
        OAuthError::LoginRequired { .. } | OAuthError::InsufficientScope { .. } if is_of_caller => {
            ChallengeError::SignInRequired(error.to_string())
        }
        _ => ChallengeError::Failed(error.to_string()),
    }
}

/// Records an attempt, unless the limit for the period is reached. Returns whether it was recorded.
fn record_attempt(times: &mut Vec<Instant>, (max, period): (usize, Duration)) -> bool {
    let now = Instant::now();
    times.retain(|time| now.saturating_duration_since(*time) < period);
    let is_allowed = times.len() < max;
    if is_allowed {
        times.push(now);
    }
    is_allowed
}
