//! The environment of a server process: a list of harmless variables, and those that the operator names.
//!
//! The library never reads the process environment; the embedder passes it in.

use std::collections::BTreeMap;

/// Variables that every server inherits. None of them holds secrets; proxy variables are left out because their URLs may
/// contain a password.
pub const INHERITED_VARIABLES: &[&str] = &[
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
/// The variable in which every server process finds the name of its server. Programs that it starts inherit it.
pub const SERVER_VARIABLE: &str = "TOOLYARD_SERVER";
/// Variables with this prefix are inherited, too.
const LOCALE_PREFIX: &str = "LC_";

/// The whole environment of a server: of ours only [`INHERITED_VARIABLES`] and those named in `inherit`, and everything in
/// `extra`.
pub fn server_environment(
    ours: impl IntoIterator<Item = (String, String)>,
    inherit: &[String],
    extra: &BTreeMap<String, String>,
) -> Vec<(String, String)> {
    let mut environment: BTreeMap<String, String> = ours
        .into_iter()
        .filter(|(name, value)| inherit.contains(name) || (is_inherited(name) && !is_shell_function(value)))
        .collect();
    environment.extend(extra.iter().map(|(name, value)| (name.clone(), value.clone())));
    environment.into_iter().collect()
}

fn is_inherited(name: &str) -> bool {
    INHERITED_VARIABLES.contains(&name) || name.starts_with(LOCALE_PREFIX)
}

/// Shells export functions as variables and execute their values.
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
    fn only_harmless_and_named_variables_are_inherited() {
        let host_variables = [
            pair("PATH", "/bin"),
            pair("LC_ALL", "C"),
            pair("AWS_SECRET_ACCESS_KEY", "secret"),
            pair("GITHUB_TOKEN", "named"),
            pair("TERM", "() { evil; }"),
        ];
        let extra = BTreeMap::from([pair("PATH", "/opt/bin:/bin"), pair("MODE", "fast")]);
        let environment = server_environment(host_variables, &["GITHUB_TOKEN".to_owned()], &extra);
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
        fn no_other_variable_is_inherited(host_variables in prop::collection::btree_map("[A-Z_]{1,6}", ".{0,4}", 0..20)) {
            for (name, value) in server_environment(host_variables.clone(), &[], &BTreeMap::new()) {
                prop_assert!(is_inherited(&name));
                prop_assert_eq!(host_variables.get(&name), Some(&value));
            }
        }
    }
}
