//! Edits preserve the rest of the file.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const FILE: &str = r#"{
  // mine
  "theme": "dark",
  "mcpServers": {
    "excel": { "command": "uvx", "args": ["excel-mcp-server", "stdio"] }, // sheets
    /* kept */
    "notes": { "url": "https://notes.example.com/mcp" },
  },
  "other": [1,2, 3]
}
"#;

#[test]
fn comments_and_other_content_are_preserved() {
    let entry = json!({"command": "toolyard", "args": ["serve", "--stdio"]});
    let edit = ClientFileEdit { remove: vec!["excel"], insert: vec![("toolyard", &entry)], input: None };
    insta::assert_snapshot!(edit_client_file(Client::Cursor, FILE, &edit).unwrap(), @r#"
    {
      // mine
      "theme": "dark",
      "mcpServers": {
        /* kept */
        "notes": { "url": "https://notes.example.com/mcp" },
        "toolyard": {
          "command": "toolyard",
          "args": ["serve", "--stdio"],
        },
      },
      "other": [1,2, 3]
    }
    "#);
}

#[test]
fn a_toml_table_stays_a_table() {
    let text = "# mine\nmodel = \"x\"\n\n[mcp_servers.docs] # here\nurl = \"https://docs.example.com/mcp\"\n\n[tui]\ntheme = 1\n";
    let entry = json!({"command": "toolyard", "args": ["serve", "--stdio"]});
    let edit = ClientFileEdit { remove: vec!["docs"], insert: vec![("toolyard", &entry)], input: None };
    insta::assert_snapshot!(edit_client_file(Client::Codex, text, &edit).unwrap(), @r#"
    # mine
    model = "x"

    [mcp_servers.toolyard]
    command = "toolyard"
    args = ["serve", "--stdio"]

    [tui]
    theme = 1
    "#);
}

#[test]
fn an_invalid_file_is_not_changed() {
    let entry = json!({});
    let edit = || ClientFileEdit { remove: Vec::new(), insert: vec![("toolyard", &entry)], input: None };
    for text in ["{", "[]", "{\"mcpServers\": 3}", "{'a': 1}", "{\"a\" 1}", "null", "{} {}"] {
        assert!(edit_client_file(Client::ClaudeCode, text, &edit()).is_err(), "{text}");
    }
    for text in ["[", "mcp_servers = 3", "a = "] {
        assert!(edit_client_file(Client::Codex, text, &edit()).is_err(), "{text}");
    }
}

#[test]
fn an_input_of_vs_code_is_added_once_and_removed() {
    let entry = json!({"type": "http"});
    let prompt = json!({"id": "the-token"});
    let edit = |input| ClientFileEdit {
        remove: Vec::new(),
        insert: vec![("toolyard", &entry)],
        input: Some(InputEdit { id: "the-token", input }),
    };
    let edited = edit_client_file(Client::VsCode, "{\"servers\": {}}", &edit(Some(&prompt))).unwrap();
    assert_eq!(edited.matches("the-token").count(), 1, "{edited}");
    assert_eq!(edit_client_file(Client::VsCode, &edited, &edit(Some(&prompt))).unwrap(), edited);
    assert!(!edit_client_file(Client::VsCode, &edited, &edit(None)).unwrap().contains("inputs"));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-z\"é ]{0,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn only_the_servers_change(rest in any_json(), server in any_json(), pretty: bool) {
        let document = json!({"before": rest, "mcpServers": {"a": server, "b": {}}, "after": rest});
        let text = if pretty { serde_json::to_string_pretty(&document).unwrap() } else { document.to_string() };
        let entry = json!({"command": "toolyard", "args": ["serve"]});
        let edit = ClientFileEdit { remove: vec!["a"], insert: vec![("toolyard", &entry)], input: None };
        let after: Value = serde_json::from_str(&edit_client_file(Client::Cursor, &text, &edit).unwrap()).unwrap();
        prop_assert_eq!(after, json!({"before": rest, "mcpServers": {"b": {}, "toolyard": entry}, "after": rest}));
    }
}
