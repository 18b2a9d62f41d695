//! What a person wrote stays, whatever else is in the file.

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
fn comments_and_everything_else_stay() {
    let own = json!({"command": "toolyard", "args": ["serve", "--stdio"]});
    let edit = Edit { out: vec!["excel"], put: vec![(OWN, &own)], input: None };
    insta::assert_snapshot!(edited(Client::Cursor, FILE, &edit).unwrap(), @r#"
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
fn a_table_of_toml_stays_a_table() {
    let text = "# mine\nmodel = \"x\"\n\n[mcp_servers.docs] # here\nurl = \"https://docs.example.com/mcp\"\n\n[tui]\ntheme = 1\n";
    let own = json!({"command": "toolyard", "args": ["serve", "--stdio"]});
    let edit = Edit { out: vec!["docs"], put: vec![(OWN, &own)], input: None };
    insta::assert_snapshot!(edited(Client::Codex, text, &edit).unwrap(), @r#"
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
fn what_cannot_be_understood_is_not_changed() {
    let own = json!({});
    let edit = || Edit { out: Vec::new(), put: vec![(OWN, &own)], input: None };
    for text in ["{", "[]", "{\"mcpServers\": 3}", "{'a': 1}", "{\"a\" 1}", "null", "{} {}"] {
        assert!(edited(Client::ClaudeCode, text, &edit()).is_err(), "{text}");
    }
    for text in ["[", "mcp_servers = 3", "a = "] {
        assert!(edited(Client::Codex, text, &edit()).is_err(), "{text}");
    }
}

#[test]
fn vs_code_is_told_to_ask_once_and_no_more_afterwards() {
    let own = json!({"type": "http"});
    let edit = |input| Edit { out: Vec::new(), put: vec![(OWN, &own)], input: Some(input) };
    let with = edited(Client::VsCode, "{\"servers\": {}}", &edit(true)).unwrap();
    assert_eq!(with.matches(INPUT).count(), 1, "{with}");
    assert_eq!(edited(Client::VsCode, &with, &edit(true)).unwrap(), with);
    assert!(!edited(Client::VsCode, &with, &edit(false)).unwrap().contains("inputs"));
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
    fn nothing_but_the_servers_changes(rest in any_json(), server in any_json(), pretty: bool) {
        let document = json!({"before": rest, "mcpServers": {"a": server, "b": {}}, "after": rest});
        let text = if pretty { serde_json::to_string_pretty(&document).unwrap() } else { document.to_string() };
        let own = json!({"command": "toolyard", "args": ["serve"]});
        let edit = Edit { out: vec!["a"], put: vec![(OWN, &own)], input: None };
        let after: Value = serde_json::from_str(&edited(Client::Cursor, &text, &edit).unwrap()).unwrap();
        prop_assert_eq!(after, json!({"before": rest, "mcpServers": {"b": {}, "toolyard": own}, "after": rest}));
    }
}
