//! What messages, hints, tables and exit codes say to a person.

use std::time::{Duration, Instant};

use crate::test_home::{TestHome, greet_tool};

const HANGING_SERVER: &str =
    "[servers.hangs]\ncommand = \"sleep\"\nargs = [\"100\"]\nstartup_timeout = \"60s\"\n";

#[test]
fn searching_starts_nothing_and_says_which_tools_are_unknown() {
    let home = TestHome::new();
    home.write("config/toolyard/toolyard.toml", HANGING_SERVER);
    home.add_server("fake", &[]);
    let started = Instant::now();
    let output = home.run(&["tools", "search", "calculate"]);
    assert!(started.elapsed() < Duration::from_secs(30), "a server that hangs does not block the search");
    assert!(output.contains("calculate"), "{output}");
    let note =
        "note: the tools of 2 servers are not known yet: fake, hangs. Start them once: toolyard servers test";
    assert!(output.contains(note), "{output}");
    assert!(home.started_pids("fake").is_empty());
    home.run(&["servers", "test", "fake"]);
    let output = home.run(&["tools", "search", "greet somebody"]);
    assert!(
        output.contains("greet") && output.contains("the tools of 1 server are not known yet: hangs."),
        "{output}"
    );
    home.run(&["servers", "add", "broken", "--", "no-such-program-here"]);
    home.run(&["servers", "test", "broken"]);
    let output = home.run(&["tools", "search", "greet somebody"]);
    assert!(output.contains("the tools of 1 server are not known yet: hangs."), "{output}");
    assert!(
        output.contains("note: 1 server failed to start: broken. Details: toolyard servers list;"),
        "{output}"
    );
    assert_eq!(home.started_pids("fake").len(), 1);
}

#[test]
fn effects_that_nobody_vouched_for_are_unverified() {
    let home = TestHome::new();
    home.add_server("fake", &[]);
    home.run(&["servers", "test"]);
    insta::assert_snapshot!(home.run(&["tools", "list", "--source", "fake"]), @r"
    NAME   SOURCE  EFFECT      DESCRIPTION
    greet  fake    unverified  Greets somebody
    ");
    let json = home.command(&["tools", "list", "--source", "fake", "--json"]).output().unwrap().stdout;
    let tools: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(tools[0]["effect"], "unverified");
    home.write("config/toolyard/mine.toml", "");
    let settings = std::fs::read_to_string(home.path("config/toolyard/toolyard.toml")).unwrap();
    home.write(
        "config/toolyard/toolyard.toml",
        &format!("{settings}\n[hints.fake.greet]\nread_only = true\n"),
    );
    let vouched = home.run(&["tools", "list", "--source", "fake"]);
    assert!(vouched.contains("read-only"), "{vouched}");
}

#[test]
fn a_server_that_exits_is_reported_with_the_line_that_says_why() {
    let home = TestHome::new();
    let script = "echo starting >&2; echo \"Error: key sk-proj-abcdefghijklmnopqrstuvwxyz012345 is not valid\" >&2; exit 1";
    home.run(&["servers", "add", "broken", "--", "sh", "-c", script]);
    let tested = home.run(&["servers", "test", "broken"]);
    assert!(tested.contains("the server exited (exit code 1): Error: key [redacted"), "{tested}");
    assert!(
        !tested.contains("abcdefghij") && tested.lines().next().unwrap().starts_with("broken"),
        "{tested}"
    );
    let listed = home.run(&["servers", "list"]);
    assert!(listed.contains("Error: key [redacted"), "{listed}");
}

#[test]
fn testing_servers_tells_some_failures_from_all() {
    let home = TestHome::new();
    home.add_server("fake", &[]);
    home.run(&["servers", "add", "broken", "--", "no-such-program-here"]);
    let some = home.run(&["servers", "test"]);
    assert!(some.contains("error: 1 of 2 servers failed: broken") && some.ends_with("--- exit 1"), "{some}");
    assert!(home.run(&["servers", "test", "broken"]).ends_with("--- exit 3"));
    assert!(!home.run(&["servers", "test", "fake"]).contains("--- exit"));
}

#[test]
fn importing_an_unsuitable_file_is_answered_with_what_is_wrong_with_it() {
    let home = TestHome::new();
    home.write("project/broken.json", "{\"mcpServers\": {\n  \"a\": {\"command\": }\n}}");
    insta::assert_snapshot!(home.run(&["import", "broken.json"]), @r"
    --- stderr
    error: failed to read broken.json: the file is not JSON: unexpected close brace (line 2, column 20)
      hint: correct the JSON at line 2, then import again
    --- exit 2
    ");
    home.write("project/hello.json", "{\"hello\":1}");
    insta::assert_snapshot!(home.run(&["import", "hello.json"]), @r"
    --- stderr
    error: failed to read hello.json: the file contains no servers: `mcpServers`, `servers` or `packages` is missing
      hint: choose the format with --client claude-code, cursor, vscode, codex, gemini or registry
    --- exit 2
    ");
    home.write("project/.cursor/mcp.json", "{\"hello\":1}");
    insta::assert_snapshot!(home.run(&["import", ".cursor/mcp.json"]), @r"
    --- stderr
    error: failed to read .cursor/mcp.json: the file contains no servers: `mcpServers` is missing
      hint: it was read as a file of Cursor; choose the format with --client claude-code, cursor, vscode, codex, gemini or registry
    --- exit 2
    ");
}

#[test]
fn a_duration_without_a_unit_is_answered_with_the_right_spelling() {
    let home = TestHome::new();
    home.write("config/toolyard/toolyard.toml", "[call]\ntimeout = 30\n");
    insta::assert_snapshot!(home.run(&["tools", "list"]), @r#"
    --- stderr
    error: failed to parse HOME/config/toolyard/toolyard.toml: TOML parse error at line 2, column 11
      |
    2 | timeout = 30
      |           ^^
    a duration needs a unit: write "30s" for seconds

      hint: all settings: toolyard settings schema; check them: toolyard doctor
    --- exit 2
    "#);
    home.write("config/toolyard/toolyard.toml", "");
    let output = home.run(&["call", "get_time", "--timeout", "30"]);
    assert!(output.contains("write for example `30s`"), "{output}");
}

#[test]
fn the_schema_of_the_settings_is_in_the_program() {
    let schema = TestHome::new().command(&["settings", "schema"]).output().unwrap().stdout;
    let schema: serde_json::Value = serde_json::from_slice(&schema).unwrap();
    assert_eq!(schema["title"], "toolyard.toml");
    assert!(schema["properties"]["servers"].is_object());
}

#[test]
fn arguments_may_follow_the_name_of_the_tool() {
    let home = TestHome::new();
    let call = |args: &[&str]| home.run(&[&["call"], args].concat());
    assert_eq!(call(&["calculate", r#"{"expression":"6*7"}"#]), "42\n");
    assert_eq!(call(&["calculate", "--args", r#"{"expression":"6*7"}"#]), "42\n");
    assert_eq!(call(&["--capability", "calculate", r#"{"expression":"6*7"}"#]), "42\n");
    insta::assert_snapshot!(call(&["calculate", "6*7"]), @r#"
    --- stderr
    error: failed to parse the arguments: invalid JSON: trailing characters at line 1 column 2
      hint: pass a JSON object in single quotes: toolyard call calculate '{"expression":"1+1"}'
    --- exit 2
    "#);
}

#[test]
fn sizes_count_once_if_text_and_structured_content_are_the_same() {
    let home = TestHome::new();
    home.add_server("fake", &[]);
    home.set_tools("fake", &[greet_tool("Greets somebody"), crate::test_home::named_tool("copy")]);
    home.run(&["servers", "test"]);
    home.run(&["servers", "approve", "fake", "--yes"]);
    let output = home.run(&["call", "copy", r#"{"characters":1000}"#, "--limit", "100"]);
    assert!(
        output.ends_with("note: truncated to 100 of 1,000 characters; without --limit, all are printed\n"),
        "{output}"
    );
    assert!(output.starts_with(&"x".repeat(100)) && !output.contains("read_result"), "{output}");
}
