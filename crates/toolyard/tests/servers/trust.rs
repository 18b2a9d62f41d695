//! Servers of a project start nothing until its files are trusted.

use serde_json::json;

use crate::place::{Place, greet};

const GREET: [&str; 4] = ["call", "greet", "--args", r#"{"name":"Ada"}"#];

fn starts_nothing_until_trusted(place: &Place) {
    for words in [&["tools", "list"][..], &["servers", "test"], &["servers", "list"], &["doctor"], &GREET] {
        place.run(words);
    }
    assert!(place.starts("fake").is_empty(), "nobody trusted it");
    place.run(&["trust", "--yes"]);
    assert!(place.run(&GREET).contains("Hello, Ada!"));
    assert_eq!(place.starts("fake").len(), 1);
}

#[test]
fn a_projects_mcp_json_starts_nothing_until_it_is_trusted() {
    let place = Place::new();
    place.offer("fake", &[greet("Greets somebody")]);
    let [command, program, settings] = place.words("fake");
    let file = json!({"mcpServers": {"fake": {"command": command, "args": [program, settings]}}});
    place.write("project/.mcp.json", &file.to_string());
    insta::assert_snapshot!(place.run(&["servers", "list"]), @r"
    --- stderr
    note: not used, because nobody trusted it: servers of .mcp.json; look at it, then: toolyard trust
    no servers yet; add one with `toolyard servers add`, or take over those of your editors: toolyard import
    ");
    starts_nothing_until_trusted(&place);

    let other = json!({"mcpServers": {"evil": {"command": command, "args": [program, settings]}}});
    place.write("project/.mcp.json", &other.to_string());
    assert!(
        place.run(&["servers", "test"]).contains("nobody trusted it"),
        "a changed file must be trusted again"
    );
    assert_eq!(place.starts("fake").len(), 1);
}

#[test]
fn a_projects_settings_start_nothing_until_they_are_trusted() {
    let place = Place::new();
    place.offer("fake", &[greet("Greets somebody")]);
    let [command, program, settings] = place.words("fake");
    let file = format!("[servers.fake]\ncommand = \"{command}\"\nargs = [\"{program}\", \"{settings}\"]\n");
    place.write("project/toolyard.toml", &file);
    insta::assert_snapshot!(place.run(&["servers", "list"]), @r"
    --- stderr
    note: not used, because nobody trusted it: servers of toolyard.toml; look at it, then: toolyard trust
    no servers yet; add one with `toolyard servers add`, or take over those of your editors: toolyard import
    ");
    starts_nothing_until_trusted(&place);
}
