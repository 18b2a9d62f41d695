//! How a caller is named in the audit log: readable, and never like another one.

use std::sync::Arc;

use super::identity::{API_KEY_ISSUER, CallerIdentity};

/// Names that the audit log uses for others than callers. No caller has a name that begins like the first, or is the second.
pub const RESERVED_CALLER_NAMES: [&str; 2] = ["operator", "http"];

/// Longer pairs of issuer and subject are replaced by a hash: a record would cut them, so that two callers could look the same.
const MAX_ID_BYTES: usize = 200;
/// Characters of the display name.
const MAX_NAME_CHARS: usize = 64;
/// Characters of the owner's hash, if it takes the place of issuer and subject.
const HASH_CHARS: usize = 32;

impl CallerIdentity {
    /// The name in the audit log. People may choose their display name at an identity provider, so that of another issuer than this
    /// gateway is followed by issuer and subject: `ada`, `ada (toolyard:proxy)`, `Ada L. (https://id.example#4711)`.
    pub fn audit_name(&self) -> Arc<str> {
        let is_reserved = is_reserved(&self.name);
        if !is_reserved && (*self.issuer == *API_KEY_ISSUER || !self.is_distinguished()) {
            return Arc::clone(&self.name);
        }
        let name: String = self.name.chars().take(MAX_NAME_CHARS).collect();
        let id = if self.issuer.len() + self.subject.len() > MAX_ID_BYTES {
            self.owner().to_string().chars().take(HASH_CHARS).collect()
        } else if name == *self.subject {
            self.issuer.to_string()
        } else {
            format!("{}#{}", self.issuer, self.subject)
        };
        let prefix = if is_reserved { "caller " } else { "" };
        format!("{prefix}{name} ({id})").into()
    }
}

/// Whether the name looks like one of [`RESERVED_CALLER_NAMES`].
fn is_reserved(name: &str) -> bool {
    let [operator, http] = RESERVED_CALLER_NAMES;
    let start = name.trim_start().get(..operator.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(operator)) || name.trim().eq_ignore_ascii_case(http)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::PROXY_ISSUER;

    fn caller(issuer: &str, subject: &str, name: &str) -> CallerIdentity {
        let mut identity = CallerIdentity::principal(issuer, subject);
        identity.name = name.into();
        identity
    }

    #[test]
    fn names_are_readable_and_show_who_vouches_for_them() {
        let issuer = "https://id.example";
        for (identity, expected) in [
            (caller(API_KEY_ISSUER, "ada", "ada"), "ada"),
            (caller(PROXY_ISSUER, "ada", "ada"), "ada (toolyard:proxy)"),
            (caller(issuer, "ada", "ada"), "ada (https://id.example)"),
            (caller(issuer, "4711", "Ada L."), "Ada L. (https://id.example#4711)"),
            (caller(issuer, "4712", "Operator"), "caller Operator (https://id.example#4712)"),
            (caller(API_KEY_ISSUER, "http", "http"), "caller http (toolyard:api-key)"),
        ] {
            assert_eq!(&*identity.audit_name(), expected);
        }
    }

    #[test]
    fn long_ids_do_not_make_callers_look_the_same_when_a_record_is_cut() {
        let long = "x".repeat(250);
        let names =
            ["a", "b"].map(|end| caller("https://id.example", &format!("{long}{end}"), "ada").audit_name());
        assert_ne!(names[0], names[1]);
        assert!(names.iter().all(|name| name.len() < 512));
    }

    proptest! {
        #[test]
        fn a_display_name_never_makes_one_caller_look_like_another(
            name in r"(ada|operator|http|[ -~]{0,12})( \((https://id\.example#1|toolyard:proxy|ada)\))?",
            issuer in prop::sample::select(vec!["https://id.example", "https://other.example"]),
        ) {
            let eve = caller(issuer, "eve", &name).audit_name();
            for other in [
                caller(API_KEY_ISSUER, "ada", "ada"),
                caller(API_KEY_ISSUER, "eve", "eve"),
                caller(PROXY_ISSUER, "eve", "eve"),
                caller("https://id.example", "1", "ada"),
                caller("https://id.example", "ada", "ada"),
            ] {
                prop_assert_ne!(&eve, &other.audit_name());
            }
            prop_assert!(!is_reserved(&eve), "{}", eve);
        }
    }
}
