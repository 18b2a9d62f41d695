//! [`PendingSignIns`]: the sign-ins in progress. Pure apart from random numbers and the clock: each step is taken once, in time.

use std::{sync::Arc, time::Duration};

use aws_lc_rs::{
    constant_time::verify_slices_are_equal,
    digest::{SHA256, digest},
    rand,
};
use tokio::time::Instant;
use toolyard_core::{CallerIdentity, ContentHash, PersonLogin, PersonSignIn};
use toolyard_mcp_client::oauth::{OAuthAuthorizer, WebLogin};

/// How long a link is valid, and how long each of the later steps may take.
pub(super) const STEP_TIMEOUT: Duration = Duration::from_mins(10);
/// Sign-ins of one caller at once: one per server.
pub(super) const MAX_PER_CALLER: usize = 16;
pub(super) const MAX_PENDING: usize = 1_024;
/// Attempts to prove to be the caller. Keys cannot be guessed; this only bounds the work.
pub(super) const MAX_ATTEMPTS: u32 = 10;

/// A sign-in that a call needs.
#[derive(Debug)]
pub struct SignInRequest {
    /// The upstream server.
    pub server: String,
    /// Who must sign in; the operator when absent.
    pub caller: Option<Arc<CallerIdentity>>,
    /// Gets and stores the tokens.
    pub authorizer: OAuthAuthorizer,
    /// The header `WWW-Authenticate` of the refused request.
    pub challenge: Option<String>,
}

/// A SHA-256 hash of a secret.
pub(super) type SecretHash = [u8; 32];

#[derive(Default)]
pub(super) struct PendingSignIns(Vec<PendingSignIn>);

struct PendingSignIn {
    id: String,
    subject: Arc<SignInSubject>,
    challenge: Option<String>,
    expires_at: Instant,
    stage: Stage,
}

/// What a sign-in is for.
pub(super) struct SignInSubject {
    pub(super) server: String,
    /// Who must sign in; the operator when absent.
    pub(super) caller: Option<Arc<CallerIdentity>>,
    pub(super) authorizer: OAuthAuthorizer,
}

enum Stage {
    /// Nobody has proved to be the caller yet.
    Offered { ticket: String, attempts: u32 },
    /// The person signs in at the issuer of the callers' tokens.
    Identifying(Box<Identification>),
    /// The page of the upstream server's authorization server is being prepared.
    Preparing,
    /// The person is at that page.
    Authorizing { login: Box<WebLogin>, browser: SecretHash },
}

/// A sign-in of a person at the issuer of the callers' tokens.
pub(super) struct Identification {
    pub(super) person_sign_in: Arc<dyn PersonSignIn>,
    pub(super) login: PersonLogin,
    pub(super) browser: SecretHash,
}

/// A link that was offered.
pub(super) struct OfferedSignIn {
    pub(super) id: String,
    pub(super) ticket: String,
}

/// A sign-in that goes on.
pub(super) struct ContinuedSignIn {
    pub(super) id: String,
    pub(super) subject: Arc<SignInSubject>,
    pub(super) challenge: Option<String>,
}

impl SignInSubject {
    fn owner(&self) -> Option<ContentHash> {
        self.caller.as_ref().map(|caller| *caller.owner())
    }
}

impl PendingSignIns {
    fn remove_expired(&mut self) {
        let now = Instant::now();
        self.0.retain(|pending| now < pending.expires_at);
    }

    /// Offers a sign-in. One that is offered already for the same caller and server stays, with its time.
    pub(super) fn offer(&mut self, request: SignInRequest) -> Option<OfferedSignIn> {
        self.remove_expired();
        let SignInRequest { server, caller, authorizer, challenge } = request;
        let subject = Arc::new(SignInSubject { server, caller, authorizer });
        let owner = subject.owner();
        let known = self.0.iter_mut().find(|pending| {
            let is_offered = matches!(pending.stage, Stage::Offered { .. });
            is_offered && pending.subject.owner() == owner && pending.subject.server == subject.server
        });
        if let Some(pending) = known
            && let Stage::Offered { ticket, .. } = &pending.stage
        {
            // The refusal of now counts: the server may have moved, or need other scopes.
            (pending.subject, pending.challenge) = (subject, challenge);
            return Some(OfferedSignIn { id: pending.id.clone(), ticket: ticket.clone() });
        }
        let of_caller = self.0.iter().filter(|pending| pending.subject.owner() == owner).count();
        if of_caller >= MAX_PER_CALLER || self.0.len() >= MAX_PENDING {
            return None;
        }
        let (id, ticket) = (random_hex::<16>()?, random_hex::<32>()?);
        self.0.push(PendingSignIn {
            id: id.clone(),
            subject,
            challenge,
            expires_at: Instant::now() + STEP_TIMEOUT,
            stage: Stage::Offered { ticket: ticket.clone(), attempts: 0 },
        });
        Some(OfferedSignIn { id, ticket })
    }

    /// What the sign-in with this ticket is for, if nobody has used it.
    pub(super) fn offered(&mut self, ticket: &str) -> Option<(String, Arc<SignInSubject>)> {
        self.remove_expired();
        self.0.iter().find_map(|pending| match &pending.stage {
            Stage::Offered { ticket: offered, .. } if is_same(offered, ticket) => {
                Some((pending.id.clone(), Arc::clone(&pending.subject)))
            }
            _ => None,
        })
    }

    /// Counts an attempt to prove to be the caller. Too many of them end the sign-in; returns false then.
    pub(super) fn count_attempt(&mut self, id: &str) -> bool {
        let Some(at) = self.0.iter().position(|pending| pending.id == id) else { return false };
        let Some(PendingSignIn { stage: Stage::Offered { attempts, .. }, .. }) = self.0.get_mut(at) else {
            return false;
        };
        *attempts += 1;
        let is_allowed = *attempts <= MAX_ATTEMPTS;
        if !is_allowed {
            self.0.remove(at);
        }
        is_allowed
    }

    /// Uses a ticket up: the person has proved to be the caller, or begins to at the issuer. `None` if it was used meanwhile.
    pub(super) fn redeem_ticket(&mut self, ticket: &str) -> Option<ContinuedSignIn> {
        self.remove_expired();
        let is_redeemed = |pending: &&mut PendingSignIn| matches!(&pending.stage, Stage::Offered { ticket: offered, .. } if is_same(offered, ticket));
        let pending = self.0.iter_mut().find(is_redeemed)?;
        Some(pending.prepare())
    }

    /// The person signs in at the issuer of the callers' tokens.
    pub(super) fn identify(&mut self, id: &str, identification: Identification) {
        self.set_stage(id, Stage::Identifying(Box::new(identification)));
    }

    /// Takes the sign-in at the issuer with this state. A redirect in another browser leaves it in place.
    pub(super) fn take_identification(
        &mut self,
        state: &str,
        is_browser: impl Fn(&str, &SecretHash) -> bool,
    ) -> Result<(ContinuedSignIn, Identification), StepError> {
        self.remove_expired();
        for pending in &mut self.0 {
            let Stage::Identifying(identification) = &pending.stage else { continue };
            if !is_same(&identification.login.state, state) {
                continue;
            }
            if !is_browser(&pending.id, &identification.browser) {
                return Err(StepError::OtherBrowser);
            }
            let stage = std::mem::replace(&mut pending.stage, Stage::Preparing);
            let Stage::Identifying(identification) = stage else { return Err(StepError::Unknown) };
            return Ok((pending.prepare(), *identification));
        }
        Err(StepError::Unknown)
    }

    /// The person goes to the authorization server of the upstream server.
    pub(super) fn authorize(&mut self, id: &str, login: WebLogin, browser: SecretHash) {
        self.set_stage(id, Stage::Authorizing { login: Box::new(login), browser });
    }

    /// Takes the login with this state. A redirect in another browser leaves it in place.
    pub(super) fn take_login(
        &mut self,
        state: &str,
        is_browser: impl Fn(&str, &SecretHash) -> bool,
    ) -> Result<(String, Arc<SignInSubject>, WebLogin), StepError> {
        self.remove_expired();
        let at = self.0.iter().position(|pending| {
            matches!(&pending.stage, Stage::Authorizing { login, .. } if is_same(login.state().expose(), state))
        });
        let Some((at, pending)) = at.and_then(|at| Some((at, self.0.get(at)?))) else {
            return Err(StepError::Unknown);
        };
        if !matches!(&pending.stage, Stage::Authorizing { browser, .. } if is_browser(&pending.id, browser)) {
            return Err(StepError::OtherBrowser);
        }
        let PendingSignIn { id, subject, stage, .. } = self.0.remove(at);
        match stage {
            Stage::Authorizing { login, .. } => Ok((id, subject, *login)),
            _ => Err(StepError::Unknown),
        }
    }

    /// Ends a sign-in that failed.
    pub(super) fn remove(&mut self, id: &str) {
        self.0.retain(|pending| pending.id != id);
    }

    fn set_stage(&mut self, id: &str, stage: Stage) {
        if let Some(pending) = self.0.iter_mut().find(|pending| pending.id == id) {
            pending.stage = stage;
            pending.expires_at = Instant::now() + STEP_TIMEOUT;
        }
    }
}

/// Why a redirect does not continue a sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepError {
    /// No sign-in has this state: it is forged, used or expired.
    Unknown,
    /// The redirect came in another browser than the one in which the person proved to be the caller.
    OtherBrowser,
}

impl PendingSignIn {
    fn prepare(&mut self) -> ContinuedSignIn {
        self.stage = Stage::Preparing;
        ContinuedSignIn {
            id: self.id.clone(),
            subject: Arc::clone(&self.subject),
            challenge: self.challenge.clone(),
        }
    }
}

fn is_same(one: &str, other: &str) -> bool {
    verify_slices_are_equal(one.as_bytes(), other.as_bytes()).is_ok()
}

/// The hash of a secret.
pub(super) fn hash(secret: &str) -> SecretHash {
    digest(&SHA256, secret.as_bytes()).as_ref().try_into().unwrap_or_default()
}

/// Random bytes in hexadecimal digits; `None` if the operating system has none.
pub(super) fn random_hex<const BYTES: usize>() -> Option<String> {
    use std::fmt::Write as _;
    let mut bytes = [0; BYTES];
    rand::fill(&mut bytes).ok()?;
    let mut text = String::with_capacity(2 * BYTES);
    bytes.iter().for_each(|byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    });
    Some(text)
}
