//! [`InstanceOwner`]: the caller that a private instance of a server belongs to, as of its last call.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use toolyard_core::{CallerIdentity, PresentedToken, unix_seconds};

/// Clients of one caller may have tokens of their own.
const MAX_KNOWN_TOKENS: usize = 8;

/// The caller of a private instance. An instance lives longer than a token, so that this is asked for the current one.
pub struct InstanceOwner(Mutex<OwnerState>);

struct OwnerState {
    identity: Arc<CallerIdentity>,
    /// The last tokens of the caller, in the order of their first presentation.
    tokens: Vec<KnownToken>,
}

struct KnownToken {
    token: PresentedToken,
    /// An issuer did not accept it. It is kept, because calls of a long run go on presenting it.
    is_refused: bool,
}

impl InstanceOwner {
    /// An owner with the token of its identity.
    pub fn new(identity: Arc<CallerIdentity>) -> Self {
        let mut state = OwnerState { identity, tokens: Vec::new() };
        state.add_token();
        Self(Mutex::new(state))
    }

    /// The caller with its claims as of its last call.
    pub fn identity(&self) -> Arc<CallerIdentity> {
        Arc::clone(&self.0.lock().identity)
    }

    /// The newest token of the caller: the one that was issued last, or else presented last for the first time. Calls of long runs
    /// present older ones; runs that were resumed present none. Tokens that expired, or that an issuer refused, are returned only if
    /// there is no other.
    pub fn presented_token(&self) -> Option<PresentedToken> {
        let state = self.0.lock();
        let now = unix_seconds();
        let is_usable = |known: &&KnownToken| !known.is_refused && now < known.token.valid_until();
        let is_valid = |known: &&KnownToken| now < known.token.valid_until();
        newest(state.tokens.iter().filter(is_usable))
            .or_else(|| newest(state.tokens.iter().filter(is_valid)))
            .or_else(|| newest(state.tokens.iter()))
            .cloned()
    }

    /// Prefers other tokens to one that an issuer did not accept: it may be revoked. Returns whether there is another one.
    pub(crate) fn refuse_token(&self, refused: &PresentedToken) -> bool {
        let (mut state, now) = (self.0.lock(), unix_seconds());
        for known in state.tokens.iter_mut().filter(|known| known.token.expose() == refused.expose()) {
            known.is_refused = true;
        }
        state.tokens.iter().any(|known| !known.is_refused && now < known.token.valid_until())
    }

    /// Takes over the claims and the token of a call.
    pub(crate) fn renew(&self, identity: &Arc<CallerIdentity>) {
        let mut state = self.0.lock();
        if Arc::ptr_eq(&state.identity, identity) {
            return;
        }
        state.identity = Arc::clone(identity);
        state.add_token();
    }
}

impl OwnerState {
    /// Adds the token of the identity, if it is not known.
    fn add_token(&mut self) {
        let Some(token) = self.identity.presented_token() else { return };
        if self.tokens.iter().any(|known| known.token.expose() == token.expose()) {
            return;
        }
        let now = unix_seconds();
        self.tokens.retain(|known| now < known.token.valid_until());
        if self.tokens.len() >= MAX_KNOWN_TOKENS {
            self.tokens.remove(0);
        }
        self.tokens.push(KnownToken { token: token.clone(), is_refused: false });
    }
}

/// The token that was issued last. Where an issuer does not say when, the order of presentation counts.
fn newest<'a>(tokens: impl Iterator<Item = &'a KnownToken>) -> Option<&'a PresentedToken> {
    let later =
        |one: &'a PresentedToken, other: &'a PresentedToken| match (one.issued_at(), other.issued_at()) {
            (Some(first), Some(second)) if second < first => one,
            _ => other,
        };
    tokens.map(|known| &known.token).reduce(later)
}

impl fmt::Debug for InstanceOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InstanceOwner(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An identity with a token that is valid for `lifetime` seconds and was issued at a time.
    fn identity(token: Option<(&str, i64, Option<i64>)>) -> Arc<CallerIdentity> {
        let identity = CallerIdentity::principal("https://issuer.example", "ada");
        Arc::new(match token {
            Some((text, lifetime, issued_at)) => {
                let token = PresentedToken::new(text, unix_seconds() + lifetime).with_issued_at(issued_at);
                identity.with_presented_token(token)
            }
            None => identity,
        })
    }

    fn token_of(owner: &InstanceOwner) -> String {
        owner.presented_token().unwrap().expose().to_owned()
    }

    #[test]
    fn the_newest_token_counts_even_if_an_older_one_is_valid_longer() {
        let owner = InstanceOwner::new(identity(Some(("first", 900, Some(10)))));
        for (token, expected) in [
            (Some(("second", 600, Some(20))), "second"),
            (Some(("first", 900, Some(10))), "second"),
            (Some(("of an old run", 900, Some(15))), "second"),
            (None, "second"),
            (Some(("third", 500, Some(20))), "third"),
            (Some(("expired", -1, Some(30))), "third"),
        ] {
            owner.renew(&identity(token));
            assert_eq!(token_of(&owner), expected);
        }
        let without = InstanceOwner::new(identity(None));
        assert!(without.presented_token().is_none());
        without.renew(&identity(Some(("first", 10, None))));
        assert_eq!(token_of(&without), "first");
    }

    #[test]
    fn without_a_time_of_issue_the_first_presentation_counts() {
        let owner = InstanceOwner::new(identity(Some(("first", 900, None))));
        for (token, expected) in [("second", "second"), ("first", "second"), ("third", "third")] {
            owner.renew(&identity(Some((token, 600, None))));
            assert_eq!(token_of(&owner), expected);
        }
    }

    #[test]
    fn a_refused_token_is_used_only_if_there_is_no_other() {
        let owner = InstanceOwner::new(identity(Some(("first", 900, Some(10)))));
        owner.renew(&identity(Some(("second", 600, Some(20)))));
        assert!(owner.refuse_token(&owner.presented_token().unwrap()));
        assert_eq!(token_of(&owner), "first");
        owner.renew(&identity(Some(("second", 600, Some(20)))));
        assert_eq!(token_of(&owner), "first", "it stays refused");
        assert!(!owner.refuse_token(&owner.presented_token().unwrap()));
        assert_eq!(token_of(&owner), "second", "the refusal may have been temporary");
    }

    #[test]
    fn few_tokens_are_kept() {
        let owner = InstanceOwner::new(identity(None));
        for number in 0..100 {
            owner.renew(&identity(Some((&number.to_string(), 600, None))));
        }
        assert_eq!((token_of(&owner).as_str(), owner.0.lock().tokens.len()), ("99", MAX_KNOWN_TOKENS));
    }
}
