//! [`InstanceOwner`]: the caller that a private instance of a server belongs to, as of its last call.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use toolyard_core::{CallerIdentity, PresentedToken};

use crate::sync::lock;

/// The caller of a private instance. An instance lives longer than a token, so that this is asked for the current one.
pub struct InstanceOwner(Mutex<OwnerState>);

struct OwnerState {
    identity: Arc<CallerIdentity>,
    token: Option<PresentedToken>,
}

impl InstanceOwner {
    /// An owner with the token of its identity.
    pub fn new(identity: Arc<CallerIdentity>) -> Self {
        let token = identity.presented_token().cloned();
        Self(Mutex::new(OwnerState { identity, token }))
    }

    /// The caller with its claims as of its last call.
    pub fn identity(&self) -> Arc<CallerIdentity> {
        Arc::clone(&lock(&self.0).identity)
    }

    /// The token of the caller that is valid longest. Other tokens come with calls of long runs, which may have begun with a
    /// token that has expired since; runs that were resumed have none.
    pub fn presented_token(&self) -> Option<PresentedToken> {
        lock(&self.0).token.clone()
    }

    /// Takes over the claims and the token of a call.
    pub(crate) fn renew(&self, identity: &Arc<CallerIdentity>) {
        let mut state = lock(&self.0);
        if Arc::ptr_eq(&state.identity, identity) {
            return;
        }
        let valid_until = |token: Option<&PresentedToken>| token.map(PresentedToken::valid_until);
        if valid_until(identity.presented_token()) >= valid_until(state.token.as_ref()) {
            state.token = identity.presented_token().cloned();
        }
        state.identity = Arc::clone(identity);
    }
}

impl fmt::Debug for InstanceOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InstanceOwner(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(token: Option<(&str, i64)>) -> Arc<CallerIdentity> {
        let identity = CallerIdentity::principal("https://issuer.example", "ada");
        Arc::new(match token {
            Some((text, valid_until)) => {
                identity.with_presented_token(PresentedToken::new(text, valid_until))
            }
            None => identity,
        })
    }

    #[test]
    fn the_token_that_is_valid_longest_is_kept() {
        let owner = InstanceOwner::new(identity(Some(("first", 10))));
        for (token, expected) in [
            (Some(("second", 20)), "second"),
            (Some(("of an old run", 10)), "second"),
            (None, "second"),
            (Some(("third", 20)), "third"),
        ] {
            owner.renew(&identity(token));
            assert_eq!(owner.presented_token().unwrap().expose(), expected);
        }
        let without = InstanceOwner::new(identity(None));
        assert!(without.presented_token().is_none());
        without.renew(&identity(Some(("first", 10))));
        assert_eq!(without.presented_token().unwrap().expose(), "first");
    }
}
