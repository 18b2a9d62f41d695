//! [`DataOwner`]: whose private data something is.

use std::{borrow::Cow, str::FromStr as _};

use crate::{CallerIdentity, ContentHash, InvalidHash};

/// Whose the data is that a call leaves behind: results, requests, shapes of results. Data of a caller is read by that caller
/// and by the operator, and by nobody else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DataOwner {
    /// Callers that are not told apart: the person at this machine, the gateway's own token, anonymous requests. Data of
    /// versions that did not record an owner is the operator's, too.
    #[default]
    Operator,
    /// A caller that is told apart from others ([`CallerIdentity::owner`]).
    Caller(ContentHash),
}

impl DataOwner {
    /// The owner of what a call for this caller leaves behind; `None` is the person at this machine.
    pub fn of(identity: Option<&CallerIdentity>) -> Self {
        match identity {
            Some(identity) if identity.is_distinguished() => Self::Caller(*identity.owner()),
            _ => Self::Operator,
        }
    }

    /// Whether this reader may read data of the given owner.
    pub fn may_read(&self, owner: &Self) -> bool {
        *self == Self::Operator || self == owner
    }

    /// The owner in a store: empty for the operator.
    pub fn as_text(&self) -> Cow<'static, str> {
        match self {
            Self::Operator => Cow::Borrowed(""),
            Self::Caller(owner) => Cow::Owned(owner.to_string()),
        }
    }

    /// Reads [`Self::as_text`].
    ///
    /// # Errors
    /// If the text is neither empty nor a hash. Nobody may be taken for the owner then.
    pub fn from_text(text: &str) -> Result<Self, InvalidHash> {
        match text {
            "" => Ok(Self::Operator),
            text => ContentHash::from_str(text).map(Self::Caller),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn owner() -> impl Strategy<Value = DataOwner> {
        let subject = "[a-c]{0,2}".prop_map(|subject| CallerIdentity::principal("https://issuer", &subject));
        prop_oneof![Just(DataOwner::Operator), subject.prop_map(|identity| DataOwner::of(Some(&identity)))]
    }

    proptest! {
        #[test]
        fn callers_read_their_own_data_and_the_operator_reads_everything(one in owner(), other in owner()) {
            prop_assert!(one.may_read(&one));
            prop_assert!(DataOwner::Operator.may_read(&one));
            prop_assert_eq!(one.may_read(&other), one == other || one == DataOwner::Operator);
        }

        #[test]
        fn the_text_of_an_owner_identifies_it(one in owner(), other in owner()) {
            prop_assert_eq!(DataOwner::from_text(&one.as_text()), Ok(one));
            prop_assert_eq!(one.as_text() == other.as_text(), one == other);
        }
    }

    #[test]
    fn callers_that_are_not_told_apart_are_the_operator() {
        for identity in [CallerIdentity::anonymous(), CallerIdentity::local_token([7; 32])] {
            assert_eq!(DataOwner::of(Some(&identity)), DataOwner::Operator);
        }
        assert_eq!(DataOwner::of(None), DataOwner::Operator);
        assert!(DataOwner::from_text("somebody").is_err());
    }
}
