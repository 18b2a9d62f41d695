//! [`share_key`]: calls with one key share the slots of a source, and their failures count together.

use std::sync::Arc;

use toolyard_core::CallerIdentity;

/// The same for all calls of one authenticated caller, whatever its display name is, and for no other caller; without authentication, the
/// name that the client claims.
pub(crate) fn share_key(identity: Option<&CallerIdentity>, caller_name: &Arc<str>) -> Arc<str> {
    match identity.filter(|identity| identity.is_distinguished()) {
        Some(identity) => identity.owner().to_string().into(),
        None => Arc::clone(caller_name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_of_the_same_display_name_do_not_share() {
        let key = |issuer: &str, subject: &str, name: &str| {
            let mut identity = CallerIdentity::principal(issuer, subject);
            identity.name = name.into();
            share_key(Some(&identity), &name.into())
        };
        let ada = key("https://id.example", "1", "ada");
        assert_ne!(ada, key("https://id.example", "2", "ada"));
        assert_ne!(ada, key("https://other.example", "1", "ada"));
        assert_ne!(ada, share_key(None, &"ada".into()), "a client that claims the name");
        assert_eq!(ada, key("https://id.example", "1", "renamed"));
    }

    #[test]
    fn clients_that_are_not_told_apart_share_by_the_name_they_claim() {
        let local = CallerIdentity::local_token([1; 32]);
        assert_eq!(&*share_key(Some(&local), &"editor".into()), "editor");
        assert_eq!(&*share_key(None, &"editor".into()), "editor");
    }
}
