//! Which servers of a client Toolyard has too, with the same credentials, so that it can replace them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use serde_json::{Map, Value};
use toolyard_core::ContentHash;
use toolyard_mcp_client::config::{
    FileContext, ServerSettings,
    import::{Client, ImportedServer, import_servers, single_server_document},
};

/// Command, arguments, folder, URL, and variables and headers of a server, with the content of `${…}` references replaced.
type ServerKey = (Option<String>, Vec<String>, Option<String>, Option<String>, Vec<(String, String)>);

/// Which servers of a client Toolyard can replace, by their names in the client's file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Coverage<'t> {
    /// Toolyard has the same servers with the same credentials.
    pub(super) covered: BTreeSet<&'t str>,
    /// Toolyard has them, but these variables are not set, so they would stop working.
    pub(super) missing_variables: BTreeMap<&'t str, BTreeSet<String>>,
}

/// Compares a client's servers with Toolyard's by endpoint and credentials, not by name: two accounts of one program are two
/// servers.
pub(super) fn compare<'t>(
    client: Client,
    client_servers: &'t Map<String, Value>,
    own_servers: &BTreeMap<String, ServerSettings>,
    variable: impl Fn(&str) -> Option<String>,
) -> Coverage<'t> {
    let variable_hash = |name: &str| variable(name).map(ContentHash::of);
    let mut usable = BTreeSet::new();
    let mut unusable: BTreeMap<ServerKey, BTreeSet<String>> = BTreeMap::new();
    for settings in own_servers.values() {
        let mut missing = settings.required_variables();
        missing.retain(|name| variable(name).is_none());
        if missing.is_empty() {
            usable.insert(server_key(settings, |reference| resolve(reference, variable_hash)));
        } else {
            unusable.entry(server_key(settings, |_| String::new())).or_insert(missing);
        }
    }
    let mut coverage = Coverage::default();
    for (name, server) in client_servers {
        let read =
            import_servers(client, &single_server_document(client, name, server), FileContext::default());
        let Some(imported) = read.ok().and_then(|read| read.servers.into_iter().next()) else { continue };
        let client_hash = |name: &str| literal_secret_hash(&imported, name).or_else(|| variable_hash(name));
        if usable.contains(&server_key(&imported.settings, |reference| resolve(reference, client_hash))) {
            coverage.covered.insert(name);
        } else if let Some(missing) = unusable.get(&server_key(&imported.settings, |_| String::new())) {
            coverage.missing_variables.insert(name, missing.clone());
        }
    }
    coverage
}

/// The hash of a secret that is written in the client's file itself.
fn literal_secret_hash(server: &ImportedServer, variable: &str) -> Option<ContentHash> {
    server.secrets.iter().find(|secret| secret.variable == variable).map(|secret| secret.fingerprint)
}

/// The hash of a reference's value, else of its default; without both, its name.
fn resolve(reference: &str, hash: impl Fn(&str) -> Option<ContentHash>) -> String {
    let (name, default) =
        reference.split_once(":-").map_or((reference, None), |(name, text)| (name, Some(text)));
    let hash = hash(name).or_else(|| default.map(ContentHash::of));
    hash.map_or_else(|| name.to_owned(), |hash| hash.to_string())
}

fn server_key(settings: &ServerSettings, replacement: impl Fn(&str) -> String) -> ServerKey {
    let ServerSettings { command, args, cwd, url, env, headers, .. } = settings;
    let replace = |text: &str| replace_references(text, &replacement);
    let pairs = env.iter().chain(headers).map(|(name, value)| (name.clone(), replace(value)));
    let url = url.as_deref().map(|url| replace(url.trim_end_matches('/')));
    let args = args.iter().map(|text| replace(text)).collect();
    (command.clone(), args, cwd.clone(), url, pairs.collect())
}

/// The text with the content of every `${…}` replaced.
fn replace_references(text: &str, replacement: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (reference, after) = after.split_once('}').unwrap_or((after, ""));
        let _ = write!(out, "{before}${{{}}}", replacement(reference));
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn server_with_key(variable: &str) -> ServerSettings {
        let env = BTreeMap::from([("API_KEY".to_owned(), format!("${{{variable}}}"))]);
        ServerSettings { command: Some("greeter".to_owned()), env, ..ServerSettings::default() }
    }

    fn coverage<'t>(client_servers: &'t Value, variables: &[(&str, &str)]) -> Coverage<'t> {
        let known = [("greeter", server_with_key("FIRST_KEY")), ("greeter-2", server_with_key("SECOND_KEY"))];
        let known = known.map(|(name, settings)| (name.to_owned(), settings)).into();
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        compare(Client::Cursor, client_servers.as_object().unwrap(), &known, variable)
    }

    #[test]
    fn accounts_are_distinguished_by_their_secrets_and_not_by_name() {
        let server = |key: &str| json!({"command": "greeter", "env": {"API_KEY": key}});
        let client_servers = json!({
            "greeter": server("sk-second-1234567890"),
            "other": server("sk-third-1234567890"),
            "again": server("sk-second-1234567890"),
        });
        let both = [("FIRST_KEY", "sk-first-1234567890"), ("SECOND_KEY", "sk-second-1234567890")];
        assert_eq!(coverage(&client_servers, &both).covered, BTreeSet::from(["again", "greeter"]));
        let one_key_set = coverage(&client_servers, &both[..1]);
        assert_eq!(one_key_set.covered, BTreeSet::new());
        let missing = BTreeSet::from(["SECOND_KEY".to_owned()]);
        assert_eq!(
            one_key_set.missing_variables.get("greeter"),
            Some(&missing),
            "without its variable the server would stop working"
        );
    }

    #[test]
    fn references_with_the_same_value_are_equal() {
        let client_servers = json!({"mine": {"command": "greeter", "env": {"API_KEY": "${env:SECOND_KEY}"}}});
        let set = [("FIRST_KEY", "one"), ("SECOND_KEY", "two")];
        assert_eq!(coverage(&client_servers, &set).covered, BTreeSet::from(["mine"]));
        assert_eq!(coverage(&client_servers, &[]).missing_variables.len(), 1);
        let covered_with_default = |default: &str| {
            let text = format!("${{TENANT:-{default}}}");
            let known =
                [("a".to_owned(), ServerSettings { args: vec![text], ..server_with_key("FIRST_KEY") })]
                    .into();
            let client_servers = json!({"a": {"command": "greeter", "args": ["${TENANT:-one}"], "env": {"API_KEY": "${FIRST_KEY}"}}});
            let set = |name: &str| (name == "FIRST_KEY").then(|| "one".to_owned());
            compare(Client::ClaudeCode, client_servers.as_object().unwrap(), &known, set).covered.len()
        };
        assert_eq!((covered_with_default("one"), covered_with_default("two")), (1, 0));
        let plain = json!({"mine": {"command": "greeter"}});
        assert_eq!(coverage(&plain, &set), Coverage::default());
    }
}
