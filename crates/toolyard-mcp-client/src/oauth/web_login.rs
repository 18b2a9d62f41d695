//! A login whose redirect comes back to a web server of the program, instead of to a listener on this machine.

use std::{fmt, sync::Arc};

use rmcp::transport::auth::WWWAuthenticateParams;

use super::{
    AuthorizationResponse, ClientIdentity, OAuthError,
    authorizer::{OAuthAuthorizer, TokenManager},
    flow::{PreparedLogin, redeem},
    token_removal::{RemovalMarker, SaveCondition},
    token_store::Account,
};
use crate::SecretText;

/// A login in progress: the person is at the page of the authorization server. Ends without effect when dropped.
pub struct WebLogin {
    manager: Arc<TokenManager>,
    login: Box<PreparedLogin>,
    /// The removals before the login began.
    removals: RemovalMarker,
}

impl WebLogin {
    /// Begins a login. `challenge` is the header `WWW-Authenticate` of the refused request.
    async fn begin(
        manager: Arc<TokenManager>,
        redirect_uri: &str,
        challenge: Option<&str>,
    ) -> Result<Self, OAuthError> {
        if matches!(manager.server.identity, ClientIdentity::ClientCredentials { .. }) {
            return Err(OAuthError::Registration("the client has tokens without a user".to_owned()));
        }
        let removals = manager.store.removal_marker(&manager.key)?;
        let login = manager.prepare_web_login(redirect_uri, challenge).await?;
        Ok(Self { manager, login: Box::new(login), removals })
    }

    /// The page of the authorization server.
    pub fn url(&self) -> &str {
        self.login.url.as_str()
    }

    /// The origin of [`Self::url`], for display.
    pub fn origin(&self) -> String {
        self.login.url.origin()
    }

    /// The state that the authorization response must repeat.
    pub fn state(&self) -> &SecretText {
        &self.login.state
    }

    /// Redeems the code of the authorization response and stores the tokens. The caller has compared the state. Fails if tokens of
    /// the same owner were removed in the meantime: the owner may have lost its access.
    pub async fn finish(self, response: AuthorizationResponse) -> Result<(), OAuthError> {
        let account = Box::pin(redeem(*self.login, response)).await?;
        self.manager.store_login(account, &self.removals).await
    }
}

impl OAuthAuthorizer {
    /// Begins a login whose redirect comes to `redirect_uri`, a page of the program. `challenge` is the header
    /// `WWW-Authenticate` of a refused request, which may say where tokens are issued and which scopes are missing.
    pub async fn begin_web_login(
        &self,
        redirect_uri: &str,
        challenge: Option<&str>,
    ) -> Result<WebLogin, OAuthError> {
        WebLogin::begin(Arc::clone(&self.0), redirect_uri, challenge).await
    }
}

impl TokenManager {
    /// Stores the tokens of a login that is complete.
    async fn store_login(&self, account: Account, removals: &RemovalMarker) -> Result<(), OAuthError> {
        let mut state = self.state.lock().await;
        let condition = SaveCondition::NotRemovedSince(removals);
        if !self.save_account(account.clone(), condition).await? {
            return Err(OAuthError::SignInRemoved { server: self.server.id.clone() });
        }
        self.activate(&mut state, account);
        Ok(())
    }

    async fn prepare_web_login(
        &self,
        redirect_uri: &str,
        challenge: Option<&str>,
    ) -> Result<PreparedLogin, OAuthError> {
        let stored = self.store.load(&self.key)?;
        let flow = self.flow();
        let auth_server = flow.discover(challenge).await?;
        flow.check_issuer(&auth_server, stored.as_ref())?;
        let known_account = stored
            .as_ref()
            .and_then(|stored| stored.account_at(&self.server.resource(), &auth_server.issuer));
        let scopes =
            challenge.and_then(|challenge| WWWAuthenticateParams::parse(challenge, &self.server.url).scope);
        let scopes: Vec<String> = scopes.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
        flow.prepare_login(auth_server, redirect_uri.to_owned(), known_account, &scopes).await
    }
}

impl fmt::Debug for WebLogin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("WebLogin").field("server", &self.manager.server.id).finish_non_exhaustive()
    }
}
