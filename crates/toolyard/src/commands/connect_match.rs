//! Which servers of another client are in our own settings, so that the hub can stand in for them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use serde_json::{Map, Value};
use toolyard_core::ContentHash;
use toolyard_mcp::config::{
    Lifted, Place, ServerSettings,
    import::{Client, ImportedServer, read},
};

use super::connect_edit::alone;

/// How a server is reached, with something else in place of variables.
type Reach = (Option<String>, Vec<String>, Option<String>, Option<String>, Vec<(String, String)>);

/// What the hub can do for the servers of a client, by their names there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StandIns<'t> {
    /// The hub reaches the same servers with the same secrets.
    pub(super) ready: BTreeSet<&'t str>,
    /// The hub knows them, but these variables are not set: they would not work any more.
    pub(super) lacking: BTreeMap<&'t str, BTreeSet<String>>,
}

/// Compares the servers of a client with ours: how they are reached, and with which secrets. Two accounts of one program are
/// two servers, whatever they are called.
pub(super) fn stand_ins<'t>(
    client: Client,
    theirs: &'t Map<String, Value>,
    ours: &BTreeMap<String, ServerSettings>,
    variable: impl Fn(&str) -> Option<String>,
) -> StandIns<'t> {
    let mark = |name: &str| variable(name).map(ContentHash::of);
    let mut ready = BTreeSet::new();
    let mut lacking: BTreeMap<Reach, BTreeSet<String>> = BTreeMap::new();
    for settings in ours.values() {
        let mut needed = settings.needed_variables();
        needed.retain(|name| variable(name).is_none());
        if needed.is_empty() {
            ready.insert(reach(settings, |reference| told_apart(reference, mark)));
        } else {
            lacking.entry(reach(settings, |_| String::new())).or_insert(needed);
        }
    }
    let mut found = StandIns::default();
    for (name, server) in theirs {
        let read = read(client, &alone(client, name, server), Place::default());
        let Some(one) = read.ok().and_then(|read| read.servers.into_iter().next()) else { continue };
        let own = |name: &str| lifted(&one, name).or_else(|| mark(name));
        if ready.contains(&reach(&one.settings, |reference| told_apart(reference, own))) {
            found.ready.insert(name);
        } else if let Some(needed) = lacking.get(&reach(&one.settings, |_| String::new())) {
            found.lacking.insert(name, needed.clone());
        }
    }
    found
}

/// The mark of a secret that stands in the client's file itself.
fn lifted(server: &ImportedServer, variable: &str) -> Option<ContentHash> {
    server.secrets.iter().find(|secret| secret.variable == variable).map(Lifted::mark)
}

/// What a reference stands for: the mark of its value, else of its default; without both, its name.
fn told_apart(reference: &str, mark: impl Fn(&str) -> Option<ContentHash>) -> String {
    let (name, default) =
        reference.split_once(":-").map_or((reference, None), |(name, text)| (name, Some(text)));
    let mark = mark(name).or_else(|| default.map(ContentHash::of));
    mark.map_or_else(|| name.to_owned(), |mark| mark.to_string())
}

fn reach(settings: &ServerSettings, stands_for: impl Fn(&str) -> String) -> Reach {
    let ServerSettings { command, args, cwd, url, env, headers, .. } = settings;
    let pairs = env.iter().chain(headers).map(|(name, value)| (name.clone(), marked(value, &stands_for)));
    let url = url.as_deref().map(|url| marked(url.trim_end_matches('/'), &stands_for));
    let args = args.iter().map(|text| marked(text, &stands_for)).collect();
    (command.clone(), args, cwd.clone(), url, pairs.collect())
}

/// The text with what they stand for in place of all `${…}`.
fn marked(text: &str, stands_for: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (reference, after) = after.split_once('}').unwrap_or((after, ""));
        let _ = write!(out, "{before}${{{}}}", stands_for(reference));
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ours(variable: &str) -> ServerSettings {
        let env = BTreeMap::from([("API_KEY".to_owned(), format!("${{{variable}}}"))]);
        ServerSettings { command: Some("greeter".to_owned()), env, ..ServerSettings::default() }
    }

    fn found<'t>(theirs: &'t Value, set: &[(&str, &str)]) -> StandIns<'t> {
        let known = [("greeter", ours("FIRST_KEY")), ("greeter-2", ours("SECOND_KEY"))];
        let known = known.map(|(name, settings)| (name.to_owned(), settings)).into();
        let variable =
            |wanted: &str| set.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned());
        stand_ins(Client::Cursor, theirs.as_object().unwrap(), &known, variable)
    }

    #[test]
    fn accounts_are_told_apart_by_their_secrets_and_not_by_names() {
        let server = |key: &str| json!({"command": "greeter", "env": {"API_KEY": key}});
        let theirs = json!({
            "greeter": server("sk-second-1234567890"),
            "other": server("sk-third-1234567890"),
            "again": server("sk-second-1234567890"),
        });
        let both = [("FIRST_KEY", "sk-first-1234567890"), ("SECOND_KEY", "sk-second-1234567890")];
        assert_eq!(found(&theirs, &both).ready, BTreeSet::from(["again", "greeter"]));
        let first = found(&theirs, &both[..1]);
        assert_eq!(first.ready, BTreeSet::new());
        let needed = BTreeSet::from(["SECOND_KEY".to_owned()]);
        assert_eq!(first.lacking.get("greeter"), Some(&needed), "it would not work any more");
    }

    #[test]
    fn a_reference_is_the_same_where_it_means_the_same() {
        let theirs = json!({"mine": {"command": "greeter", "env": {"API_KEY": "${env:SECOND_KEY}"}}});
        let set = [("FIRST_KEY", "one"), ("SECOND_KEY", "two")];
        assert_eq!(found(&theirs, &set).ready, BTreeSet::from(["mine"]));
        assert_eq!(found(&theirs, &[]).lacking.len(), 1);
        let defaults = |default: &str| {
            let text = format!("${{TENANT:-{default}}}");
            let known = [("a".to_owned(), ServerSettings { args: vec![text], ..ours("FIRST_KEY") })].into();
            let theirs = json!({"a": {"command": "greeter", "args": ["${TENANT:-one}"], "env": {"API_KEY": "${FIRST_KEY}"}}});
            let set = |name: &str| (name == "FIRST_KEY").then(|| "one".to_owned());
            stand_ins(Client::ClaudeCode, theirs.as_object().unwrap(), &known, set).ready.len()
        };
        assert_eq!((defaults("one"), defaults("two")), (1, 0));
        let plain = json!({"mine": {"command": "greeter"}});
        assert_eq!(found(&plain, &set), StandIns::default());
    }
}
