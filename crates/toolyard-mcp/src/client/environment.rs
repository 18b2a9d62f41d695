//! What a server may see of our environment: a list of harmless variables, and what the operator names.
//!
//! The library never looks at the environment itself; whoever calls it hands over what there is.

use std::collections::BTreeMap;

/// Variables every server gets when we have them. Nothing that holds a secret: proxies, for one, may carry a password.
pub const HARMLESS: &[&str] = &[
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];
/// Variables of this kind are harmless, too.
const HARMLESS_START: &str = "LC_";

/// The whole environment of a server: of ours only what is harmless or named in `inherit`, and everything of `extra`.
pub fn allowed(
    ours: impl IntoIterator<Item = (String, String)>,
    inherit: &[String],
    extra: &BTreeMap<String, String>,
) -> Vec<(String, String)> {
    let mut environment: BTreeMap<String, String> = ours
        .into_iter()
        .filter(|(name, value)| inherit.contains(name) || (is_harmless(name) && !is_shell_function(value)))
        .collect();
    environment.extend(extra.iter().map(|(name, value)| (name.clone(), value.clone())));
    environment.into_iter().collect()
}

fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name) || name.starts_with(HARMLESS_START)
}

/// Shells export functions as variables, and run what they read from them.
fn is_shell_function(value: &str) -> bool {
    value.starts_with("()")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn only_what_is_harmless_or_named() {
        let ours = [
            pair("PATH", "/bin"),
            pair("LC_ALL", "C"),
            pair("AWS_SECRET_ACCESS_KEY", "secret"),
            pair("GITHUB_TOKEN", "named"),
            pair("TERM", "() { evil; }"),
        ];
        let extra = BTreeMap::from([pair("PATH", "/opt/bin:/bin"), pair("MODE", "fast")]);
        let environment = allowed(ours, &["GITHUB_TOKEN".to_owned()], &extra);
        let expected = [
            pair("GITHUB_TOKEN", "named"),
            pair("LC_ALL", "C"),
            pair("MODE", "fast"),
            pair("PATH", "/opt/bin:/bin"),
        ];
        assert_eq!(environment, expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn nothing_else_gets_through(ours in prop::collection::btree_map("[A-Z_]{1,6}", ".{0,4}", 0..20)) {
            for (name, value) in allowed(ours.clone(), &[], &BTreeMap::new()) {
                prop_assert!(is_harmless(&name));
                prop_assert_eq!(ours.get(&name), Some(&value));
            }
        }
    }
}
