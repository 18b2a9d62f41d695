//! Servers of an untrusted project are not started.

use serde_json::json;

use crate::test_home::{TestHome, greet_tool};

const CALL_GREET: [&str; 4] = ["call", "greet", "--args", r#"{"name":"Ada"}"#];

fn assert_nothing_starts_until_trusted(home: &TestHome) {
    for args in [&["tools", "list"][..], &["servers", "test"], &["servers", "list"], &["doctor"], &CALL_GREET]
    {
        home.run(args);
    }
    assert!(home.started_pids("fake").is_empty(), "an untrusted server was started");
    home.run(&["trust", "--yes"]);
    assert!(home.run(&CALL_GREET).contains("Hello, Ada!"));
    assert_eq!(home.started_pids("fake").len(), 1);
}

#[test]
fn a_projects_mcp_json_starts_nothing_until_it_is_trusted() {
    let home = TestHome::new();
    home.set_tools("fake", &[greet_tool("Greets somebody")]);
    let [command, program, settings] = home.server_command("fake");
    let file = json!({"mcpServers": {"fake": {"command": command, "args": [program, settings]}}});
    home.write("project/.mcp.json", &file.to_string());
    insta::assert_snapshot!(home.run(&["servers", "list"]), @r"
    --- stderr
    note: ignored until trusted: servers of .mcp.json. Review it, then run: toolyard trust
    No servers yet. Add one with `toolyard servers add`, or import those of your editors: toolyard import
    ");
    assert_nothing_starts_until_trusted(&home);

    let other = json!({"mcpServers": {"evil": {"command": command, "args": [program, settings]}}});
    home.write("project/.mcp.json", &other.to_string());
    assert!(
        home.run(&["servers", "test"]).contains("ignored until trusted"),
        "a changed file must be trusted again"
    );
    assert_eq!(home.started_pids("fake").len(), 1);
}

#[test]
fn a_projects_settings_start_nothing_until_they_are_trusted() {
    let home = TestHome::new();
    home.set_tools("fake", &[greet_tool("Greets somebody")]);
    let [command, program, settings] = home.server_command("fake");
    let file = format!("[servers.fake]\ncommand = \"{command}\"\nargs = [\"{program}\", \"{settings}\"]\n");
    home.write("project/toolyard.toml", &file);
    insta::assert_snapshot!(home.run(&["servers", "list"]), @r"
    --- stderr
    note: ignored until trusted: servers of toolyard.toml. Review it, then run: toolyard trust
    No servers yet. Add one with `toolyard servers add`, or import those of your editors: toolyard import
    ");
    assert_nothing_starts_until_trusted(&home);
}
