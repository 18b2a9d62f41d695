//! Malicious and random files: an error message, never a panic or a secret.

use proptest::prelude::*;

use super::{tests::CANARY, *};

#[test]
fn malicious_files_yield_errors_without_secrets() {
    let deep = format!("{{\"mcpServers\": {}", "{\"a\":".repeat(100_000));
    let large = format!("{{\"mcpServers\": {{\"a\": {{\"command\": \"{}\"}}}}}}", CANARY.repeat(700_000));
    let wrong = format!(
        "{{\"mcpServers\": {{\"a\": {{\"command\": 1, \"env\": \"{CANARY}\"}}, \"b\": {{\"command\": \"x\", \
         \"env\": {{\"A\": [\"{CANARY}\"]}}}}, \"c\": \"{CANARY}\", \"d\": {{\"url\": \"{CANARY}\"}}}}}}"
    );
    for client in Client::ALL {
        let import = |text: &str| import_servers(client, text, FileContext::default());
        assert!(import(&deep).is_err(), "{client:?}");
        let outcomes = [
            import(&large),
            import(&wrong),
            import(""),
            import("{}"),
            import("[]"),
            import("null"),
            import("mcp_servers = 1"),
        ];
        for outcome in outcomes {
            let message = outcome.as_ref().map_or_else(ToString::to_string, |imported| {
                imported.invalid.iter().map(|problem| format!("{problem}\n")).collect()
            });
            assert!(!message.contains(CANARY), "{client:?}: {message}");
            assert!(!format!("{outcome:?}").contains(&CANARY.repeat(8)), "{client:?}");
        }
    }
}

fn any_node() -> impl Strategy<Value = serde_json::Value> {
    let name = prop_oneof![
        "command|args|env|url|httpUrl|headers|type|oauth|timeout|env_vars|packages|remotes|name|value|variables",
        "registryType|identifier|packageArguments|environmentVariables|default|isSecret|isRequired|transport",
        ".{0,6}"
    ];
    let text = prop_oneof![
        "stdio|http|npm|pypi|oci|named",
        "https://[a-z]{1,5}/.{0,9}",
        "[$][{]?[a-zA-Z:-]{0,9}[}]?",
        "[$]{1,3}[{](secret:TOKEN|file:/etc/passwd|file:~/[.]ssh/id)[}]",
        ".{0,12}"
    ];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        text.prop_map(serde_json::Value::from)
    ];
    leaf.prop_recursive(5, 48, 8, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            proptest::collection::btree_map(name.clone(), inner, 0..8)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn parsing_never_panics(text in "([\\[\\]{}\",:=]|mcpServers|command|.){0,60}") {
        for client in Client::ALL {
            let _ = import_servers(client, &text, FileContext::default());
        }
    }

    #[test]
    fn imported_servers_are_valid(servers in proptest::collection::btree_map(".{0,9}", any_node(), 0..4)) {
        let list: Vec<_> = servers.values().collect();
        let texts = [
            serde_json::json!({"mcpServers": servers, "projects": {"/p": {"mcpServers": servers}}}).to_string(),
            serde_json::json!({ "servers": servers }).to_string(),
            serde_json::json!({ "servers": list }).to_string(),
            toml::to_string(&serde_json::json!({ "mcp_servers": servers })).unwrap_or_default(),
        ];
        for client in Client::ALL {
            for text in &texts {
                let Ok(imported) = import_servers(client, text, FileContext::default()) else { continue };
                for server in &imported.servers {
                    let config = server.settings.clone().into_config(&server.name, std::path::Path::new("/"));
                    prop_assert!(config.is_ok(), "{config:?} from {text}");
                    // A file of another client names no secret or file of the user: it could send it elsewhere.
                    let variables = server.settings.variables();
                    prop_assert!(!variables.iter().any(|name| crate::config::is_private_reference(name)), "{text}");
                    let written = toml::to_string(&server.settings).unwrap();
                    prop_assert_eq!(&toml::from_str::<ServerSettings>(&written).unwrap(), &server.settings);
                }
                let merged = merge_servers([("a".to_owned(), imported.servers.clone()), ("b".to_owned(), imported.servers)]);
                let plan = crate::config::plan_import("", &merged, crate::config::ConflictPolicy::Keep);
                prop_assert!(plan.is_ok());
            }
        }
    }
}
