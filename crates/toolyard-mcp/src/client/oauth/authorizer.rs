//! The tokens of one server: handed out, renewed ahead of their end, and got anew when the server refuses them.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rmcp::transport::auth::WWWAuthenticateParams;
use tokio::{sync::Mutex as AsyncMutex, time::Instant};
use toolyard_core::BoxFuture;
use url::Url;

use super::{
    Browser, ClientIdentity, OAuthError, OAuthServer, TokenStore, TokenStoreError,
    address::AddressPolicy,
    dpop::{ProofKey, usable_nonce},
    flow::{Flow, now},
    tokens::{Account, Kept},
};
use crate::client::{Authorizer, SecretHeader, http_target::harmless};

/// How long before its end a token is renewed, in seconds; a tenth of its life, if that is less.
const AHEAD: u64 = 60;
/// How long a failed renewal rests before the next one, while the token is still good.
const REST: Duration = Duration::from_secs(30);
/// A server that refuses fresh tokens gets this many of them within the window, then a person is asked.
const MOST_RENEWALS: (usize, Duration) = (2, Duration::from_mins(1));
/// And a person is asked this often within the window, then nobody is.
const MOST_CONSENTS: (usize, Duration) = (3, Duration::from_mins(10));
/// The same for programs, whose tokens may be short-lived and whom nobody is bothered with.
const MOST_GRANTS: (usize, Duration) = (5, Duration::from_mins(1));

/// How a token that is bound to a key is sent.
const BOUND: &str = "DPoP ";

/// The [`Authorizer`] of one server. One at a time renews or logs in; the others wait for the result. What was begun is
/// brought to its end even if nobody waits any more: a refresh token may be used up by then, or a person be on the way back.
#[derive(Debug)]
pub struct OAuthAuthorizer(Arc<Keeper>);

/// Whoever keeps the tokens.
struct Keeper {
    server: OAuthServer,
    policy: AddressPolicy,
    store: TokenStore,
    browser: Option<Arc<dyn Browser>>,
    hand: Mutex<Option<Hand>>,
    /// What the server wants to see in the next proof.
    nonce: Mutex<Option<String>>,
    work: AsyncMutex<Work>,
}

/// Whether and how someone is logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginState {
    /// Who issued the token.
    pub issuer: String,
    /// What it allows.
    pub scopes: Vec<String>,
    /// When it ends, in seconds since 1970.
    pub ends_at: Option<u64>,
    /// Whether it can be renewed without a person.
    pub renewable: bool,
}

/// The token at hand.
#[derive(Clone)]
struct Hand {
    header: SecretHeader,
    renew_at: Option<u64>,
    ends_at: Option<u64>,
    /// What the token is bound to.
    key: Option<Arc<ProofKey>>,
}

/// What whoever renews or logs in knows.
#[derive(Default)]
struct Work {
    loaded: bool,
    account: Option<Account>,
    renewals: Vec<Instant>,
    consents: Vec<Instant>,
    rest_until: Option<Instant>,
}

impl OAuthAuthorizer {
    /// An authorizer that renews what is kept. It refuses an address over which tokens would be readable for others.
    pub fn new(server: OAuthServer, store: TokenStore) -> Result<Self, OAuthError> {
        let policy = AddressPolicy::new(&server.url, server.private_network);
        let mut address = server.url.clone();
        // What it says about users is not ours to send, but the operator may have written it.
        let _ = address.set_username("");
        let _ = address.set_password(None);
        policy.check(&address)?;
        Ok(Self(Arc::new(Keeper::new(server, policy, store, None))))
    }

    /// A new one for the same server, with a person who can be asked.
    #[must_use]
    pub fn with_browser(self, browser: Arc<dyn Browser>) -> Self {
        let Keeper { server, policy, store, .. } = &*self.0;
        Self(Arc::new(Keeper::new(server.clone(), policy.clone(), store.clone(), Some(browser))))
    }

    /// Asks a person for consent, to what the server needs and these scopes. Nothing that was known before is used.
    pub async fn login(&self, scopes: &[String]) -> Result<(), OAuthError> {
        let mut work = self.0.work.lock().await;
        let account = Box::pin(self.0.obtain(None, None, scopes)).await?;
        self.0.keep(&mut work, account).await?;
        Ok(())
    }

    /// Parts with the tokens. Whether there were any.
    pub async fn logout(&self) -> Result<bool, OAuthError> {
        let mut work = self.0.work.lock().await;
        let there_was = self.0.store.forget(&self.0.server.id)?;
        *work = Work::default();
        self.0.put_in_hand(None);
        Ok(there_was)
    }

    /// Whether and how someone is logged in.
    pub async fn state(&self) -> Result<Option<LoginState>, OAuthError> {
        let mut work = self.0.work.lock().await;
        self.0.load(&mut work)?;
        Ok(work.account.as_ref().map(|account| LoginState {
            issuer: account.issuer.clone(),
            scopes: account.granted_scopes.clone(),
            ends_at: account.ends_at(),
            renewable: account.refresh_token.is_some() || self.0.is_machine(),
        }))
    }
}

impl Authorizer for OAuthAuthorizer {
    fn token(&self) -> BoxFuture<'_, Option<SecretHeader>> {
        Box::pin(async {
            if let Some(header) = self.0.fresh() {
                return Some(header);
            }
            let keeper = Arc::clone(&self.0);
            tokio::spawn(async move { keeper.current().await }).await.unwrap_or_default()
        })
    }

    fn proof(&self, token: &SecretHeader, method: &str, url: &Url) -> Option<SecretHeader> {
        let key = self.0.at_hand().filter(|hand| hand.header == *token)?.key?;
        let token = token.value.to_str().ok()?.strip_prefix(BOUND)?;
        let nonce = self.0.nonce.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let proof = key.proof(method, url, Some(token), nonce.as_deref(), now()).ok()?;
        SecretHeader::new("dpop", &proof)
    }

    fn nonce(&self, nonce: &str) {
        if let Some(nonce) = usable_nonce(nonce) {
            *self.0.nonce.lock().unwrap_or_else(PoisonError::into_inner) = Some(nonce);
        }
    }

    fn challenged<'a>(
        &'a self,
        sent: Option<&'a SecretHeader>,
        status: u16,
        www_authenticate: Option<&'a str>,
    ) -> BoxFuture<'a, Result<bool, String>> {
        let (keeper, sent) = (Arc::clone(&self.0), sent.cloned());
        let challenge = www_authenticate.unwrap_or_default().to_owned();
        Box::pin(async move {
            let met = tokio::spawn(async move { keeper.meet(sent.as_ref(), status, &challenge).await });
            match met.await {
                Ok(met) => met.map_err(|error| error.to_string()),
                Err(_) => Err("authorization ended unexpectedly".to_owned()),
            }
        })
    }
}

impl Keeper {
    fn new(
        server: OAuthServer,
        policy: AddressPolicy,
        store: TokenStore,
        browser: Option<Arc<dyn Browser>>,
    ) -> Self {
        Self {
            server,
            policy,
            store,
            browser,
            hand: Mutex::default(),
            nonce: Mutex::default(),
            work: AsyncMutex::default(),
        }
    }

    fn flow(&self) -> Flow<'_> {
        Flow { server: &self.server, policy: &self.policy }
    }

    fn is_machine(&self) -> bool {
        matches!(self.server.identity, ClientIdentity::Machine { .. })
    }

    fn at_hand(&self) -> Option<Hand> {
        self.hand.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn put_in_hand(&self, hand: Option<Hand>) {
        *self.hand.lock().unwrap_or_else(PoisonError::into_inner) = hand;
    }

    /// Reads what is kept, once.
    fn load(&self, work: &mut Work) -> Result<(), TokenStoreError> {
        if !work.loaded {
            let kept = self.store.load(&self.server.id)?;
            work.loaded = true;
            if let Some(account) = kept.as_ref().and_then(|kept| kept.account(&self.server.resource())) {
                self.adopt(work, account.clone());
            }
        }
        Ok(())
    }

    /// Takes a token into use.
    fn adopt(&self, work: &mut Work, account: Account) {
        let renewable = account.refresh_token.is_some() || self.is_machine();
        let renew_at = account.lifetime.filter(|_| renewable).map(|lifetime| {
            let ahead = AHEAD.min(lifetime / 10);
            account.obtained_at.saturating_add(lifetime.saturating_sub(ahead))
        });
        let key = account.proof_key.as_ref().and_then(|key| ProofKey::restore(key).ok()).map(Arc::new);
        let token = account.access_token.reveal();
        let header = match &key {
            Some(_) => SecretHeader::new("authorization", &format!("{BOUND}{token}")),
            None => SecretHeader::bearer(token),
        };
        self.put_in_hand(header.map(|header| Hand { header, renew_at, ends_at: account.ends_at(), key }));
        work.account = Some(account);
        work.loaded = true;
        work.rest_until = None;
    }

    /// Takes a token into use and keeps it.
    async fn keep(&self, work: &mut Work, account: Account) -> Result<(), TokenStoreError> {
        self.adopt(work, account.clone());
        let held = self.store.hold(&self.server.id).await?;
        let mut kept = held.load()?;
        kept.put(&self.server.resource(), account);
        held.save(kept)
    }

    /// The token at hand, if it need not be renewed yet.
    fn fresh(&self) -> Option<SecretHeader> {
        self.at_hand().filter(|hand| hand.renew_at.is_none_or(|at| now() < at)).map(|hand| hand.header)
    }

    /// The token to send, renewed if that is due. While someone else is at work, one that is still good will do.
    async fn current(&self) -> Option<SecretHeader> {
        let good = self.at_hand().filter(|hand| hand.ends_at.is_some_and(|at| now() < at));
        let mut work = match (self.work.try_lock(), good) {
            (Ok(work), _) => work,
            (Err(_), Some(hand)) => return Some(hand.header),
            (Err(_), None) => self.work.lock().await,
        };
        if let Err(error) = self.load(&mut work) {
            tracing::warn!(server = self.server.id, %error, "kept tokens cannot be used");
        }
        if let Some(header) = self.fresh() {
            return Some(header);
        }
        let resting = work.rest_until.is_some_and(|until| Instant::now() < until);
        if work.account.is_some()
            && !resting
            && let Err(error) = Box::pin(self.renew(&mut work, None)).await
        {
            // The server may take the old one still; if not, its refusal starts what is needed.
            tracing::warn!(server = self.server.id, %error, "a token could not be renewed");
            work.rest_until = Some(Instant::now() + REST);
        }
        self.at_hand().map(|hand| hand.header)
    }

    /// Renews the token in use. Another process may have been quicker, and the old refresh token may be good only once: so
    /// only whoever holds the file renews, and looks into it first.
    async fn renew(&self, work: &mut Work, challenge: Option<&str>) -> Result<(), OAuthError> {
        let held = self.store.hold(&self.server.id).await?;
        let mut kept = held.load()?;
        if self.adopt_newer(work, kept.account(&self.server.resource())) {
            return Ok(());
        }
        let login_needed = || OAuthError::LoginNeeded { server: self.server.id.clone() };
        let account = work.account.clone().ok_or_else(login_needed)?;
        let flow = self.flow();
        let found = flow.discover(challenge).await?;
        flow.check_issuer(&found, Some(&kept))?;
        let renewed = match &self.server.identity {
            ClientIdentity::Machine { client_id, proof } => {
                flow.machine(found, client_id, proof, &account.requested_scopes).await?
            }
            _ => flow.renew(found, &account).await?,
        };
        self.adopt(work, renewed.clone());
        kept.put(&self.server.resource(), renewed);
        if let Err(error) = held.save(kept) {
            tracing::warn!(server = self.server.id, %error, "a token works but could not be kept");
        }
        Ok(())
    }

    /// Takes over what someone else has kept in the meantime.
    fn adopt_newer(&self, work: &mut Work, kept: Option<&Account>) -> bool {
        let ours = work.account.as_ref().map(|account| &account.access_token);
        match kept {
            Some(kept) if ours != Some(&kept.access_token) => {
                self.adopt(work, kept.clone());
                true
            }
            _ => false,
        }
    }

    /// Gets a token without an old one: as a program, or by a person's consent.
    async fn obtain(
        &self,
        challenge: Option<&str>,
        kept: Option<&Kept>,
        scopes: &[String],
    ) -> Result<Account, OAuthError> {
        let flow = self.flow();
        if self.browser.is_none() && !self.is_machine() {
            return Err(OAuthError::LoginNeeded { server: self.server.id.clone() });
        }
        let found = flow.discover(challenge).await?;
        flow.check_issuer(&found, kept)?;
        if let ClientIdentity::Machine { client_id, proof } = &self.server.identity {
            return flow.machine(found, client_id, proof, scopes).await;
        }
        let Some(browser) = &self.browser else {
            return Err(OAuthError::LoginNeeded { server: self.server.id.clone() });
        };
        tracing::info!(server = self.server.id, issuer = found.issuer, "asking a person for consent");
        let known = kept.and_then(|kept| kept.account_of(&self.server.resource(), &found.issuer));
        flow.login(found, browser.as_ref(), known, scopes).await
    }

    /// What to do about a refusal. Whether to send the message once more.
    async fn meet(
        &self,
        sent: Option<&SecretHeader>,
        status: u16,
        challenge: &str,
    ) -> Result<bool, OAuthError> {
        let mut work = self.work.lock().await;
        self.load(&mut work)?;
        if self.at_hand().is_some_and(|hand| Some(&hand.header) != sent) {
            return Ok(true);
        }
        let kept = self.store.load(&self.server.id)?;
        let kept = kept.as_ref().and_then(|kept| kept.account(&self.server.resource()));
        if self.adopt_newer(&mut work, kept) {
            return Ok(true);
        }
        match status {
            401 => self.unauthorized(&mut work, challenge).await?,
            403 => {
                let refusal = WWWAuthenticateParams::parse(challenge, &self.server.url);
                if !refusal.is_insufficient_scope() {
                    return Ok(false);
                }
                self.insufficient(&mut work, challenge, &refusal.scope.unwrap_or_default()).await?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    async fn unauthorized(&self, work: &mut Work, challenge: &str) -> Result<(), OAuthError> {
        let renewable = work.account.as_ref().is_some_and(|account| account.refresh_token.is_some());
        if renewable && may_again(&mut work.renewals, MOST_RENEWALS, Instant::now()) {
            match Box::pin(self.renew(work, Some(challenge))).await {
                Err(OAuthError::LoginNeeded { .. }) => {}
                outcome => return outcome,
            }
        }
        self.obtain_now(work, challenge, &[]).await
    }

    async fn insufficient(&self, work: &mut Work, challenge: &str, wanted: &str) -> Result<(), OAuthError> {
        let scopes: Vec<String> = wanted.split_whitespace().map(str::to_owned).collect();
        let asked = work.account.as_ref().map(|account| account.requested_scopes.clone()).unwrap_or_default();
        let wanted = if wanted.is_empty() { asked.join(" ") } else { harmless(wanted) };
        if scopes.iter().all(|scope| asked.contains(scope)) {
            return Err(OAuthError::StillRefused { server: self.server.id.clone(), scopes: wanted });
        }
        if self.browser.is_none() && !self.is_machine() {
            return Err(OAuthError::ScopeNeeded { server: self.server.id.clone(), scopes: wanted });
        }
        self.obtain_now(work, challenge, &scopes).await
    }

    /// Gets a token because a message waits for it.
    async fn obtain_now(
        &self,
        work: &mut Work,
        challenge: &str,
        scopes: &[String],
    ) -> Result<(), OAuthError> {
        if self.browser.is_none() && !self.is_machine() {
            return Err(OAuthError::LoginNeeded { server: self.server.id.clone() });
        }
        let limit = if self.is_machine() { MOST_GRANTS } else { MOST_CONSENTS };
        if !may_again(&mut work.consents, limit, Instant::now()) {
            return Err(OAuthError::TooOften { server: self.server.id.clone(), times: limit.0 });
        }
        let kept = self.store.load(&self.server.id)?;
        let account = Box::pin(self.obtain(Some(challenge), kept.as_ref(), scopes)).await?;
        if let Err(error) = self.keep(work, account).await {
            tracing::warn!(server = self.server.id, %error, "a token works but could not be kept");
        }
        Ok(())
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Keeper")
            .field("server", &self.server.id)
            .field("browser", &self.browser.is_some())
            .finish_non_exhaustive()
    }
}

/// Whether something may be done once more within a window of time; if so, it counts.
fn may_again(times: &mut Vec<Instant>, (most, window): (usize, Duration), now: Instant) -> bool {
    times.retain(|time| now.saturating_duration_since(*time) < window);
    let may = times.len() < most;
    if may {
        times.push(now);
    }
    may
}
