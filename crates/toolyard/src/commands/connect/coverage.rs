//! Which servers of a client Toolyard has too, with the same credentials, so that it can replace them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use serde_json::{Map, Value};
use toolyard_core::ContentHash;
use toolyard_mcp_client::config::{
    FileContext, ServerSettings, ToolFilter,
    import::{Client, ImportedServer, import_servers, single_server_document},
};

/// Command, arguments, folder, URL, and variables and headers of a server, with the content of `${…}` references replaced.
type ServerKey = (Option<String>, Vec<String>, Option<String>, Option<String>, Vec<(String, String)>);

/// Which servers of a client Toolyard can replace, by their names in the client's file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Coverage<'t> {
    /// Toolyard has the same servers with the same credentials.
    pub(super) covered: BTreeMap<&'t str, CoveredServer>,
    /// Toolyard has them, but these variables are not set, so they would stop working.
    pub(super) missing_variables: BTreeMap<&'t str, BTreeSet<String>>,
    /// Disabled in the client's file, or in Toolyard's settings.
    pub(super) disabled: BTreeSet<&'t str>,
}

/// A server of a client that Toolyard has too.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CoveredServer {
    /// Its name in Toolyard's settings.
    pub(super) name: String,
    /// The tools that the client may use.
    pub(super) tools: ToolFilter,
}

/// Compares a client's servers with Toolyard's by endpoint and credentials, not by name: two accounts of one program are two
/// servers.
pub(super) fn compare<'t>(
    client: Client,
    client_servers: &'t Map<String, Value>,
    own_servers: &BTreeMap<String, ServerSettings>,
    file_context: FileContext<'_>,
    variable: impl Fn(&str) -> Option<String>,
) -> Coverage<'t> {
    let variable_hash = |name: &str| variable(name).map(ContentHash::of);
    let mut usable = BTreeMap::new();
    let mut unusable: BTreeMap<ServerKey, BTreeSet<String>> = BTreeMap::new();
    for (name, settings) in own_servers {
        let mut missing = settings.required_variables();
        missing.retain(|name| variable(name).is_none());
        if missing.is_empty() {
            usable.insert(server_key(settings, |reference| resolve(reference, variable_hash)), name);
        } else {
            unusable.entry(server_key(settings, |_| String::new())).or_insert(missing);
        }
    }
    let mut coverage = Coverage::default();
    for (name, server) in client_servers {
        let read = import_servers(client, &single_server_document(client, name, server), file_context);
        let Some(imported) = read.ok().and_then(|read| read.servers.into_iter().next()) else { continue };
        let client_hash = |name: &str| literal_secret_hash(&imported, name).or_else(|| variable_hash(name));
        let own_name =
            usable.get(&server_key(&imported.settings, |reference| resolve(reference, client_hash)));
        if let Some(own_name) = own_name {
            let is_enabled = own_servers.get(*own_name).is_some_and(|own| own.enabled);
            if is_enabled && imported.settings.enabled {
                let tools = imported.settings.tool_filter();
                coverage.covered.insert(name, CoveredServer { name: (*own_name).clone(), tools });
            } else {
                coverage.disabled.insert(name);
            }
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
        compare(Client::Cursor, client_servers.as_object().unwrap(), &known, FileContext::default(), variable)
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
        let covered = coverage(&client_servers, &both).covered;
        let names: Vec<_> = covered.iter().map(|(name, own)| (*name, own.name.as_str())).collect();
        assert_eq!(names, [("again", "greeter-2"), ("greeter", "greeter-2")]);
        let one_key_set = coverage(&client_servers, &both[..1]);
        assert_eq!(one_key_set.covered, BTreeMap::new());
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
        assert_eq!(coverage(&client_servers, &set).covered["mine"].name, "greeter-2");
        assert_eq!(coverage(&client_servers, &[]).missing_variables.len(), 1);
        let covered_with_default = |default: &str| {
            let text = format!("${{TENANT:-{default}}}");
            let known =
                [("a".to_owned(), ServerSettings { args: vec![text], ..server_with_key("FIRST_KEY") })]
                    .into();
            let client_servers = json!({"a": {"command": "greeter", "args": ["${TENANT:-one}"], "env": {"API_KEY": "${FIRST_KEY}"}}});
            let set = |name: &str| (name == "FIRST_KEY").then(|| "one".to_owned());
            let client_servers = client_servers.as_object().unwrap();
            compare(Client::ClaudeCode, client_servers, &known, FileContext::default(), set).covered.len()
        };
        assert_eq!((covered_with_default("one"), covered_with_default("two")), (1, 0));
        let plain = json!({"mine": {"command": "greeter"}});
        assert_eq!(coverage(&plain, &set), Coverage::default());
    }

    #[test]
    fn a_client_keeps_its_list_of_tools_and_its_disabled_servers() {
        let server = json!({"command": "greeter", "env": {"API_KEY": "${env:SECOND_KEY}"}, "disabledTools": ["shout"]});
        let mut off = server.clone();
        off["disabled"] = json!(true);
        let client_servers = json!({"mine": server, "off": off});
        let coverage = coverage(&client_servers, &[("SECOND_KEY", "two")]);
        assert_eq!(coverage.covered["mine"].tools.without, ["shout"]);
        assert_eq!((coverage.covered.len(), coverage.disabled), (1, BTreeSet::from(["off"])));
    }
}
