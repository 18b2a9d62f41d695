//! The profile of a connected client: what it had before, as a table of `toolyard.toml`.

use std::{collections::BTreeMap, path::Path};

use toml_edit::{Array, DocumentMut, Item, Table, Value};
use toolyard::{Settings, settings::ProfileSettings};
use toolyard_mcp_client::config::ToolFilter;

use crate::error::CliError;

/// A profile with these servers, and these tools of each.
pub(super) fn client_profile(servers: &BTreeMap<String, ToolFilter>) -> ProfileSettings {
    extended(&ProfileSettings::default(), servers)
}

/// A profile with more servers. Servers that it has already keep their rules.
pub(super) fn extended(profile: &ProfileSettings, servers: &BTreeMap<String, ToolFilter>) -> ProfileSettings {
    let is_new = |(name, _): &(&String, &ToolFilter)| !profile.servers.contains(name);
    let new: Vec<(&String, &ToolFilter)> = servers.iter().filter(is_new).collect();
    let mut extended = profile.clone();
    // An empty list means all tools: the first server with a list of its own turns it into one.
    if profile.tools.is_empty() && new.iter().any(|(_, tools)| listed(tools).is_some()) {
        extended.tools.extend(profile.servers.iter().map(|server| format!("*@{server}")));
    }
    let is_list = !profile.tools.is_empty() || new.iter().any(|(_, tools)| listed(tools).is_some());
    for (server, tools) in new {
        extended.servers.push(server.clone());
        match listed(tools) {
            Some(names) if names.is_empty() => extended.deny.push(format!("*@{server}")),
            Some(names) => extended.tools.extend(names.iter().map(|name| format!("{name}@{server}"))),
            None if is_list => extended.tools.push(format!("*@{server}")),
            None => {}
        }
        extended.deny.extend(tools.without.iter().map(|name| format!("{name}@{server}")));
    }
    extended
}

/// The tools that a filter lists. Names that would be patterns are left out: a client takes them literally, and no tool has
/// such a name.
fn listed(tools: &ToolFilter) -> Option<Vec<&String>> {
    Some(tools.only.as_ref()?.iter().filter(|name| !name.contains(['*', '@'])).collect())
}

/// The text of a settings file with this profile.
pub(super) fn put_profile(
    text: &str,
    file: &Path,
    name: &str,
    profile: &ProfileSettings,
) -> Result<String, CliError> {
    let mut document = parse_document(text, file)?;
    let not_a_table = |key: &str| CliError::failed(format!("{}: `{key}` is not a table", file.display()));
    let implicit_table = || {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    };
    let serve = document.entry("serve").or_insert_with(implicit_table);
    let serve = serve.as_table_like_mut().ok_or_else(|| not_a_table("serve"))?;
    let profiles = serve.entry("profiles").or_insert_with(implicit_table);
    let profiles = profiles.as_table_like_mut().ok_or_else(|| not_a_table("serve.profiles"))?;
    if profiles.get(name).is_none() {
        profiles.insert(name, Item::Table(Table::new()));
    }
    let table = profiles.get_mut(name).and_then(Item::as_table_like_mut);
    let table = table.ok_or_else(|| not_a_table(&format!("serve.profiles.{name}")))?;
    for (key, list) in [("servers", &profile.servers), ("tools", &profile.tools), ("deny", &profile.deny)] {
        if list.is_empty() {
            table.remove(key);
        } else {
            table.insert(key, Item::Value(Value::Array(list.iter().collect::<Array>())));
        }
    }
    let text = document.to_string();
    Settings::parse(&text, file)?;
    Ok(text)
}

/// The text of a settings file without a profile; `None` if it is not there or was changed since.
pub(super) fn remove_profile(
    text: &str,
    file: &Path,
    name: &str,
    expected: &ProfileSettings,
) -> Result<Option<String>, CliError> {
    if Settings::parse(text, file)?.serve.profiles.get(name) != Some(expected) {
        return Ok(None);
    }
    let mut document = parse_document(text, file)?;
    let Some(serve) = document.get_mut("serve").and_then(Item::as_table_like_mut) else { return Ok(None) };
    let Some(profiles) = serve.get_mut("profiles").and_then(Item::as_table_like_mut) else { return Ok(None) };
    profiles.remove(name);
    let is_empty = profiles.is_empty();
    if is_empty {
        serve.remove("profiles");
    }
    if document
        .get("serve")
        .and_then(Item::as_table)
        .is_some_and(|serve| serve.is_empty() && serve.is_implicit())
    {
        document.remove("serve");
    }
    Ok(Some(document.to_string()))
}

fn parse_document(text: &str, file: &Path) -> Result<DocumentMut, CliError> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        CliError::failed(format!("{}: {}", file.display(), error.message()))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toolyard::settings::ServeSettings;

    use super::*;

    fn filter(only: Option<&[&str]>, without: &[&str]) -> ToolFilter {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        ToolFilter { only: only.map(owned), without: owned(without) }
    }

    fn servers(list: &[(&str, ToolFilter)]) -> BTreeMap<String, ToolFilter> {
        list.iter().map(|(name, tools)| ((*name).to_owned(), tools.clone())).collect()
    }

    #[test]
    fn a_profile_is_written_and_removed_in_place() {
        let before = "# mine\n[serve]\nsurface = \"full\" # all\n\n[servers.files]\ncommand = \"x\"\n";
        let file = Path::new("toolyard.toml");
        let list =
            servers(&[("files", filter(Some(&["read", "list"]), &[])), ("git", filter(None, &["push"]))]);
        let profile = client_profile(&list);
        let after = put_profile(before, file, "codex", &profile).unwrap();
        insta::assert_snapshot!(after, @r#"
        # mine
        [serve]
        surface = "full" # all

        [serve.profiles.codex]
        servers = ["files", "git"]
        tools = ["read@files", "list@files", "*@git"]
        deny = ["push@git"]

        [servers.files]
        command = "x"
        "#);
        assert_eq!(Settings::parse(&after, file).unwrap().serve.profiles["codex"], profile);
        assert_eq!(remove_profile(&after, file, "codex", &profile).unwrap().as_deref(), Some(before));
        let edited = after.replace("\"push@git\"", "\"push@git\", \"reset@git\"");
        assert_eq!(remove_profile(&edited, file, "codex", &profile).unwrap(), None, "edited by the operator");
        let alone = put_profile("", file, "codex", &profile).unwrap();
        assert_eq!(remove_profile(&alone, file, "codex", &profile).unwrap().as_deref(), Some(""));
        assert!(put_profile("serve = 1", file, "codex", &profile).is_err());
    }

    fn any_servers() -> impl Strategy<Value = BTreeMap<String, ToolFilter>> {
        let names = || proptest::collection::vec("[ab]|[*]|a@s1", 0..3);
        let tools =
            (proptest::option::of(names()), names()).prop_map(|(only, without)| ToolFilter { only, without });
        proptest::collection::btree_map("s[123]", tools, 1..4)
    }

    fn allows(settings: &ProfileSettings, tool: &str, server: &str) -> bool {
        let profiles = [("p".to_owned(), settings.clone())].into();
        ServeSettings { profiles, ..ServeSettings::default() }.profile("p").unwrap().allows(tool, server)
    }

    proptest! {
        /// A client gets what it had, never more; also if its servers come in two steps.
        #[test]
        fn a_profile_allows_what_the_client_had(first in any_servers(), second in any_servers()) {
            let settings = extended(&client_profile(&first), &second);
            for server in ["s1", "s2", "s3", "other"] {
                let had = first.get(server).or_else(|| second.get(server));
                for tool in ["a", "b", "c"] {
                    let expected = had.is_some_and(|had| had.allows(tool) && !had.without.iter().any(|name| name == "*"));
                    prop_assert_eq!(allows(&settings, tool, server), expected, "{}@{} {:?}", tool, server, settings);
                }
            }
        }
    }
}
