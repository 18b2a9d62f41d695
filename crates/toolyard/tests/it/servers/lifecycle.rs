//! Adding, listing, starting, stopping and removing servers.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::test_home::{TestHome, greet_tool, wait_until};

const CALL_GREET: [&str; 4] = ["call", "greet", "--args", r#"{"name":"Ada"}"#];

#[test]
fn a_hanging_server_is_skipped_for_a_while() {
    let home = TestHome::new();
    home.write(
        "config/toolyard/toolyard.toml",
        "[servers.hangs]\ncommand = \"sleep\"\nargs = [\"100\"]\nstartup_timeout = \"3s\"\n",
    );
    let first = home.run(&["tools", "list"]);
    assert!(first.contains("calculate") && first.contains("note: hangs failed to start: "), "{first}");
    let second = home.run(&["tools", "list"]);
    assert!(
        second.contains("note: skipped 1 unavailable server: hangs. Details: toolyard servers list"),
        "{second}"
    );
    let listed = home.run(&["servers", "list"]);
    assert!(listed.contains("failed less than a minute ago"), "{listed}");
    // A changed command is a different server.
    home.write("config/toolyard/toolyard.toml", "[servers.hangs]\ncommand = \"no-such-program\"\n");
    let listed = home.run(&["servers", "list"]);
    assert!(listed.contains("never started"), "{listed}");
    let outputs = [home.run(&["tools", "list"]), home.run(&["tools", "list"])];
    assert!(outputs[0].contains("note: hangs failed to start: "), "{outputs:?}");
    assert!(
        outputs[1].contains("skipped 1 unavailable server: hangs."),
        "the reason is reported only once: {outputs:?}"
    );
}

#[test]
fn interrupting_the_start_of_a_server_skips_it_next_time() {
    let home = TestHome::new();
    home.write(
        "config/toolyard/toolyard.toml",
        "[servers.hangs]\ncommand = \"sleep\"\nargs = [\"100\"]\nstartup_timeout = \"60s\"\n",
    );
    // No known source has this tool, so the server is started to learn its tools.
    let interrupted_call = home.command(&["call", "nobody_has_this"]).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(4));
    let pid = rustix::process::Pid::from_raw(i32::try_from(interrupted_call.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = home.output_text(&interrupted_call.wait_with_output().unwrap());
    assert!(
        output.contains("interrupted while waiting for hangs") && output.ends_with("--- exit 130"),
        "{output}"
    );
    let next = home.run(&["tools", "list"]);
    assert!(next.contains("calculate") && next.contains("skipped 1 unavailable server: hangs"), "{next}");
    let listed = home.run(&["servers", "list"]);
    assert!(listed.contains("interrupted while starting"), "{listed}");
}

#[test]
fn new_settings_files_are_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = TestHome::new();
    home.add_server("fake", &[]);
    let mode = home.path("config/toolyard/toolyard.toml").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_server_is_added_tested_used_and_removed() {
    let home = TestHome::new();
    insta::assert_snapshot!(home.add_server("fake", &[]), @r"
    --- stderr
    added fake: HOME/config/toolyard/toolyard.toml
      hint: test it: toolyard servers test fake
    ");
    insta::assert_snapshot!(home.run(&["servers", "list"]), @r"
    NAME  STATE          TOOLS  NOTE  ENDPOINT
    fake  never started  0            python3 HOME/server.py HOME/fake.json
    ");
    insta::assert_snapshot!(home.run(&["servers", "test"]), @r"
    fake   ready in N s, protocol 2025-06-18, 1 tool
    --- stderr
      fake: new tools, now enabled: greet
    ");
    insta::assert_snapshot!(home.run(&CALL_GREET), @"Hello, Ada!");
    for name in ["greet@fake", "fake.greet"] {
        assert_eq!(home.run(&["call", name, "--args", r#"{"name":"Ada"}"#]).trim_end(), "Hello, Ada!");
        let shown = home.run(&["tools", "show", name]);
        assert!(shown.starts_with("greet   fake (mcp, not trusted)"), "{shown}");
    }
    let unknown = home.run(&["call", "greet@nobody"]);
    assert!(unknown.contains("does not exist"), "{unknown}");
    insta::assert_snapshot!(home.run(&["servers", "show", "fake"]), @r"
    fake   not running
      Endpoint: python3 HOME/server.py HOME/fake.json
      Protocol: legacy
      Trusted: no
      Tools: greet
    ");
    insta::assert_snapshot!(home.run(&["servers", "list"]), @r"
    NAME  STATE        TOOLS  NOTE  ENDPOINT
    fake  not running  1            python3 HOME/server.py HOME/fake.json
    ");
    let shown = home.run(&["tools", "show", "greet"]);
    // What follows was learned from calls and contains a latency.
    insta::assert_snapshot!(shown.split("\n  About ").next().unwrap(), @r"
    greet   fake (mcp, not trusted), unverified effects
      Greets somebody
      Parameters:
        - name (string):  [optional]
    ");
    insta::assert_snapshot!(home.run(&["servers", "stop", "fake"]), @r"
    --- stderr
    fake was not running
    ");
    insta::assert_snapshot!(home.run(&["servers", "remove", "fake"]), @r"
    --- stderr
    removed fake: HOME/config/toolyard/toolyard.toml
    ");
    insta::assert_snapshot!(home.run(&["servers", "list"]), @r"
    --- stderr
    No servers yet. Add one with `toolyard servers add`, or import those of your editors: toolyard import
    ");
    insta::assert_snapshot!(home.run(&["servers", "show", "fake"]), @r"
    --- stderr
    error: server `fake` does not exist
      hint: add one with `toolyard servers add`, or run: toolyard import
    --- exit 2
    ");
    home.assert_stopped("fake");
}

#[test]
fn a_new_server_is_started_once_to_learn_its_tools() {
    let home = TestHome::new();
    home.add_server("fake", &[]);
    let first = home.run(&["tools", "list"]);
    assert!(first.contains("note: new server fake, 1 tool enabled: greet"), "{first}");
    assert_eq!(home.started_pids("fake").len(), 1);
    let second = home.run(&["tools", "list"]);
    assert!(second.contains("greet") && !second.contains("new server"), "{second}");
    assert_eq!(home.started_pids("fake").len(), 1, "a server whose tools are known is not started");
    home.assert_stopped("fake");
}

#[test]
fn listing_starts_no_server_whose_tools_are_known() {
    let home = TestHome::new();
    let names: Vec<String> = (0..10).map(|number| format!("fake{number}")).collect();
    for name in &names {
        home.add_server(name, &[]);
    }
    home.run(&["servers", "test"]);
    let starts = |home: &TestHome| names.iter().map(|name| home.started_pids(name).len()).sum::<usize>();
    assert_eq!(starts(&home), 10);
    for args in [&["tools", "list"][..], &["tools", "search", "greet"], &["servers", "list"], &["doctor"]] {
        home.run(args);
    }
    assert_eq!(starts(&home), 10, "listing, searching and checking start nothing");
}

#[test]
fn raw_prints_the_servers_response_verbatim() {
    let home = TestHome::new();
    home.add_server("fake", &[]);
    let raw = home.command(&[&CALL_GREET[..], &["--raw"]].concat()).output().unwrap();
    let raw = String::from_utf8(raw.stdout).unwrap();
    assert_eq!(raw.trim_end(), r#"{"content": [{"type": "text", "text": "Hello, Ada!"}], "x-extra": 1.5}"#);
}

#[test]
fn a_tools_error_is_reported() {
    let home = TestHome::new();
    home.add_server("fake", &[]);
    home.run(&["servers", "test"]);
    insta::assert_snapshot!(home.run(&["call", "greet", "--args", r#"{"name":"nobody"}"#]), @r"
    --- stderr
    error: greet (fake): there is nobody
    --- exit 1
    ");
}

#[test]
fn a_missing_program_does_not_affect_other_servers() {
    let home = TestHome::new();
    home.add_server("fake", &[]);
    home.run(&["servers", "add", "broken", "--", "no-such-program-here"]);
    let tested = home.run(&["servers", "test", "broken"]);
    assert!(tested.contains("the command `no-such-program-here` was not found in PATH"), "{tested}");
    assert!(
        tested.contains("hint: broken: program `no-such-program-here` not found: install it"),
        "{tested}"
    );
    assert!(!tested.contains("servers logs") && tested.ends_with("--- exit 3"), "{tested}");
    assert!(home.run(&CALL_GREET).contains("Hello, Ada!"));
    let unknown = home.run(&["call", "no_such_tool"]);
    assert!(unknown.contains("servers that could not be reached: broken"), "{unknown}");
    assert!(
        home.run(&["doctor"]).contains("PROBLEM  servers   broken: program `no-such-program-here` not found")
    );
}

#[test]
fn a_log_is_named_only_if_there_is_one() {
    let home = TestHome::new();
    home.run(&["servers", "add", "away", "--url", "http://127.0.0.1:9/mcp"]);
    home.run(&["servers", "add", "silent", "--", "sh", "-c", "exit 1"]);
    home.run(&["servers", "add", "talks", "--", "sh", "-c", "echo no key >&2; exit 1"]);
    let tested = home.run(&["servers", "test", "away", "silent"]);
    assert!(!tested.contains("servers logs") && tested.ends_with("--- exit 3"), "{tested}");
    let tested = home.run(&["servers", "test"]);
    assert!(tested.contains("hint: show the log: toolyard servers logs talks"), "{tested}");
}

#[test]
fn a_known_server_that_fails_to_start_is_unreachable() {
    let home = TestHome::new();
    home.add_server("fake", &[]);
    home.run(&["servers", "test"]);
    std::fs::remove_file(home.path("server.py")).unwrap();
    let output = home.run(&CALL_GREET);
    assert!(output.contains("hint:") && output.ends_with("--- exit 3"), "{output}");
}

#[test]
fn a_servers_stderr_is_logged() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = TestHome::new();
    home.add_server("fake", &[]);
    insta::assert_snapshot!(home.run(&["servers", "logs", "fake"]), @r"
    --- stderr
    the log of fake is empty
    ");
    home.run(&["servers", "test"]);
    insta::assert_snapshot!(home.run(&["servers", "logs", "fake"]), @"DATE the fake server is here");
    let logs = std::fs::metadata(home.path("data/toolyard/logs")).unwrap();
    assert_eq!(logs.permissions().mode() & 0o777, 0o700);
    insta::assert_snapshot!(home.run(&["servers", "logs", "nope"]), @r"
    --- stderr
    error: server `nope` does not exist
      hint: list servers: toolyard servers list
    --- exit 2
    ");
}

/// Starts a call that lasts longer than the test, and waits until it has reached the server.
fn start_long_call(home: &TestHome) -> std::process::Child {
    home.add_server("fake", &[]);
    let slow = json!({"name": "sleep_long", "description": "Sleeps", "inputSchema": {"type": "object"}});
    home.set_tools("fake", &[greet_tool("Greets somebody"), slow]);
    home.run(&["servers", "test"]);
    let child = home
        .command(&["call", "sleep_long", "--timeout", "100s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let called = home.path("fake.json.called");
    assert!(wait_until(10_000, || called.exists()), "the call did not reach the server");
    child
}

fn signal(name: &str, process: u32) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

#[test]
fn ctrl_c_during_a_call_stops_the_server_and_reports_an_unknown_outcome() {
    let home = TestHome::new();
    let child = start_long_call(&home);
    signal("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    let output = home.output_text(&output);
    assert!(output.contains("may have taken effect") && output.ends_with("--- exit 5"), "{output}");
    home.assert_stopped("fake");
}

#[test]
fn a_server_is_stopped_when_toolyard_is_killed() {
    let home = TestHome::new();
    let mut child = start_long_call(&home);
    signal("-KILL", child.id());
    child.wait().unwrap();
    home.assert_stopped("fake");
}

#[test]
fn instructions_are_shown_before_the_server_is_trusted() {
    let home = TestHome::new();
    home.add_server("fake", &[]);
    let instructions = "Greet twice.\nThen \u{202e}stop.";
    let state = json!({"tools": [greet_tool("Greets somebody")], "instructions": instructions});
    home.write("fake.json", &state.to_string());
    home.run(&["servers", "test"]);
    insta::assert_snapshot!(home.run(&["servers", "show", "fake"]), @r"
    fake   not running
      Endpoint: python3 HOME/server.py HOME/fake.json
      Protocol: legacy
      Trusted: no
      Tools: greet
      Instructions (not sent to clients: the server is not trusted):
        Greet twice.
        Then stop.
    ");
    home.run(&["servers", "trust", "fake", "--yes"]);
    let shown = home.run(&["servers", "show", "fake"]);
    assert!(
        shown.contains("  Instructions (sent to clients):\n    Greet twice.\n    Then stop.\n"),
        "{shown}"
    );
    let shown: Value = serde_json::from_str(&home.run(&["servers", "show", "fake", "--json"])).unwrap();
    assert_eq!(shown["instructions"], "Greet twice.\nThen stop.");
}
