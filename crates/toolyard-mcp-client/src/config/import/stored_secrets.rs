//! Moves the secrets of imported servers: each gets a name in the store of secrets, and its server refers to it as
//! `${secret:NAME}`.

use std::collections::BTreeMap;

use toolyard_core::ContentHash;

use super::{MergedServer, merge::unused_name, not_copied_note};
use crate::{
    SecretText,
    config::{ExtractedSecret, template::STORED_SECRET_PREFIX},
};

/// A secret of an imported server, under its name in the store of secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedSecret {
    /// The server that refers to it, by its name after merging.
    pub server: String,
    /// The name in the store.
    pub name: String,
    /// The secret.
    pub value: SecretText,
}

/// Replaces the variables of secrets with references to stored secrets. A secret that is stored already keeps its name there,
/// and no name ever stands for two secrets. Secrets of values that also have references cannot be moved: they stay variables,
/// and a note says so.
pub fn move_secrets(servers: &mut [MergedServer], stored: &BTreeMap<String, SecretText>) -> Vec<MovedSecret> {
    let mut hashes: BTreeMap<String, ContentHash> =
        stored.iter().map(|(name, value)| (name.clone(), ContentHash::of(value.expose()))).collect();
    let mut moved = Vec::new();
    for MergedServer { server, .. } in servers {
        for index in 0..server.secrets.len() {
            let Some(ExtractedSecret { variable, value: Some(value), .. }) =
                server.secrets.get(index).cloned()
            else {
                continue;
            };
            if !server.settings.variables().contains(&variable) {
                continue;
            }
            let name = stored_name(&variable, ContentHash::of(value.expose()), &hashes);
            hashes.insert(name.clone(), ContentHash::of(value.expose()));
            let reference = format!("{STORED_SECRET_PREFIX}{name}");
            server.settings.rename_variable(&variable, &reference);
            for secret in server.secrets.iter_mut().filter(|secret| secret.variable == variable) {
                let note = not_copied_note(&secret.field, &variable);
                let moved_note = format!("the secret in {} is kept as `${{{reference}}}`", secret.field);
                server
                    .notes
                    .iter_mut()
                    .filter(|known| **known == note)
                    .for_each(|known| known.clone_from(&moved_note));
                secret.variable.clone_from(&reference);
            }
            moved.push(MovedSecret { server: server.name.clone(), name, value });
        }
    }
    moved
}

/// The name of a secret in the store: the one it has, else its own if that is free, else its own with a number.
fn stored_name(wanted: &str, value: ContentHash, stored: &BTreeMap<String, ContentHash>) -> String {
    if stored.get(wanted) == Some(&value) {
        return wanted.to_owned();
    }
    let known = stored.iter().find(|(_, known)| **known == value).map(|(name, _)| name.clone());
    known.unwrap_or_else(|| unused_name(wanted, |name| stored.contains_key(name)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::{
        FileContext,
        import::{Client, import_servers, merge_servers},
    };

    fn merged(texts: &[&str]) -> Vec<MergedServer> {
        let files = texts.iter().enumerate().map(|(index, text)| {
            let imported = import_servers(Client::Cursor, text, FileContext::default()).unwrap();
            (format!("file {index}"), imported.servers)
        });
        merge_servers(files)
    }

    fn stored(pairs: &[(&str, &str)]) -> BTreeMap<String, SecretText> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), SecretText::new(*value))).collect()
    }

    const GITHUB: &str = r#"{"mcpServers": {"github": {"url": "https://example.org/mcp",
        "headers": {"Authorization": "Bearer Swordfish-canary-1"}}}}"#;

    #[test]
    fn a_secret_is_replaced_by_a_reference_to_the_store() {
        let mut servers = merged(&[GITHUB]);
        let moved = move_secrets(&mut servers, &BTreeMap::new());
        assert_eq!((moved[0].name.as_str(), moved[0].value.expose()), ("GITHUB_TOKEN", "Swordfish-canary-1"));
        let server = &servers[0].server;
        assert_eq!(server.settings.headers["Authorization"], "Bearer ${secret:GITHUB_TOKEN}");
        assert_eq!(server.notes, ["the secret in headers.Authorization is kept as `${secret:GITHUB_TOKEN}`"]);
        assert!(!format!("{moved:?}{servers:?}").contains("canary"));
    }

    #[test]
    fn a_stored_secret_keeps_its_name_and_another_value_gets_a_new_one() {
        let name = |stored: &BTreeMap<String, SecretText>| {
            move_secrets(&mut merged(&[GITHUB]), stored).pop().unwrap().name
        };
        assert_eq!(name(&stored(&[("GITHUB_TOKEN", "Swordfish-canary-1")])), "GITHUB_TOKEN");
        assert_eq!(name(&stored(&[("GITHUB_TOKEN", "another")])), "GITHUB_TOKEN_2");
        let both = stored(&[("GITHUB_TOKEN", "another"), ("WORK", "Swordfish-canary-1")]);
        assert_eq!(name(&both), "WORK", "a second import finds the same server");
    }

    #[test]
    fn a_value_with_references_stays_a_variable() {
        let mut servers = merged(&[
            r#"{"mcpServers": {"a": {"command": "x", "env": {"API_KEY": "${REGION} Swordfish-canary-12345678901234"}}}}"#,
        ]);
        assert_eq!(move_secrets(&mut servers, &BTreeMap::new()), []);
        assert_eq!(servers[0].server.settings.env["API_KEY"], "${API_KEY}");
        assert!(
            servers[0].server.notes[0].contains("was not copied: set the environment variable `API_KEY`")
        );
    }

    proptest! {
        /// Every moved secret resolves to what the client's file says, whatever is stored already.
        #[test]
        fn moved_secrets_resolve_to_their_values(
            values in proptest::collection::vec("[a-z$]{0,3}Swordfish[0-9a-z]{3}", 1..5),
            known in proptest::collection::btree_map("(TOKEN|B?_?API_KEY|S[0-9]_API_KEY)(_2)?", "[a-z]{1,2}", 0..4),
        ) {
            let servers: serde_json::Map<String, serde_json::Value> = values.iter().enumerate().map(|(index, value)| {
                let args = [format!("--api-key={value}"), "--token".to_owned(), value.clone()];
                (format!("s{index}"), serde_json::json!({"command": "x", "args": args, "env": {"API_KEY": value}}))
            }).collect();
            let text = serde_json::json!({"mcpServers": servers}).to_string();
            let mut servers = merged(&[&text]);
            let known: BTreeMap<String, SecretText> = known.into_iter().map(|(name, value)| (name, SecretText::new(value))).collect();
            let moved = move_secrets(&mut servers, &known);
            let mut all = known.clone();
            for secret in moved {
                let before = all.insert(secret.name, secret.value.clone());
                prop_assert!(before.is_none_or(|before| before == secret.value), "a stored secret was replaced");
            }
            for server in &servers {
                prop_assert_eq!(server.server.settings.warnings("s"), [""; 0]);
                let config = server.server.settings.clone().into_config(&server.server.name, std::path::Path::new("/")).unwrap();
                let lookup = |name: &str| all.get(name.strip_prefix(STORED_SECRET_PREFIX)?).map(|value| value.expose().to_owned());
                let resolved = config.resolve(lookup).unwrap();
                let crate::config::TransportConfig::Stdio { env, args, .. } = resolved.transport else { unreachable!() };
                let value = &env["API_KEY"];
                prop_assert!(values.contains(value), "{}", value);
                prop_assert_eq!(args, [format!("--api-key={value}"), "--token".to_owned(), value.clone()]);
            }
        }
    }
}
