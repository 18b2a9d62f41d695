//! Added, listed, started when needed, removed; and nothing left behind.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::json;

use crate::place::{Place, greet, wait_until};

const GREET: [&str; 4] = ["call", "greet", "--args", r#"{"name":"Ada"}"#];

#[test]
fn nobody_waits_again_and_again_for_a_server_that_hangs() {
    let place = Place::new();
    place.write(
        "config/toolyard/toolyard.toml",
        "[servers.hangs]\ncommand = \"sleep\"\nargs = [\"100\"]\nstartup_timeout = \"3s\"\n",
    );
    let first = place.run(&["tools", "list"]);
    assert!(first.contains("calculate") && first.contains("note: hangs could not be used: "), "{first}");
    let second = place.run(&["tools", "list"]);
    assert!(
        second.contains("left out, because it could not be used lately: hangs; why: toolyard servers list"),
        "{second}"
    );
    let listed = place.run(&["servers", "list"]);
    assert!(listed.contains("failed less than a minute ago"), "{listed}");
    // Another program under the same name is another server.
    place.write("config/toolyard/toolyard.toml", "[servers.hangs]\ncommand = \"no-such-program\"\n");
    let listed = place.run(&["servers", "list"]);
    assert!(listed.contains("never started"), "{listed}");
    let fails = [place.run(&["tools", "list"]), place.run(&["tools", "list"])];
    assert!(fails[0].contains("note: hangs could not be used: "), "{fails:?}");
    assert!(fails[1].contains("could not be used lately: hangs;"), "a reason is told once: {fails:?}");
}

#[test]
fn whoever_ends_the_waiting_ends_the_command_and_does_not_wait_again() {
    let place = Place::new();
    place.write(
        "config/toolyard/toolyard.toml",
        "[servers.hangs]\ncommand = \"sleep\"\nargs = [\"100\"]\nstartup_timeout = \"60s\"\n",
    );
    // Nobody has a tool of this name, so that it is looked for at the server.
    let waiting = place.command(&["call", "nobody_has_this"]).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(4));
    let number = rustix::process::Pid::from_raw(i32::try_from(waiting.id()).unwrap()).unwrap();
    rustix::process::kill_process(number, rustix::process::Signal::INT).unwrap();
    let ended = place.seen(&waiting.wait_with_output().unwrap());
    assert!(ended.contains("hangs was stopped") && ended.ends_with("--- exit 130"), "{ended}");
    let next = place.run(&["tools", "list"]);
    assert!(next.contains("calculate") && next.contains("could not be used lately: hangs"), "{next}");
    let listed = place.run(&["servers", "list"]);
    assert!(listed.contains("nobody waited for it any longer"), "{listed}");
}

#[test]
fn settings_that_are_written_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    place.add("fake", &[]);
    let mode = place.path("config/toolyard/toolyard.toml").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_server_is_added_tested_used_and_removed() {
    let place = Place::new();
    insta::assert_snapshot!(place.add("fake", &[]), @r"
    --- stderr
    added fake: HOME/config/toolyard/toolyard.toml
      hint: see whether it works: toolyard servers test fake
    ");
    insta::assert_snapshot!(place.run(&["servers", "list"]), @r"
    NAME  STATE          TOOLS  NOTE  REACHED BY
    fake  never started  0            python3 HOME/server.py HOME/fake.json
    ");
    insta::assert_snapshot!(place.run(&["servers", "test"]), @r"
    fake   ready in N s, protocol 2025-06-18, 1 tool
    --- stderr
      fake: seen for the first time and in service: greet
    ");
    insta::assert_snapshot!(place.run(&GREET), @"Hello, Ada!");
    for name in ["greet@fake", "fake.greet"] {
        assert_eq!(place.run(&["call", name, "--args", r#"{"name":"Ada"}"#]).trim_end(), "Hello, Ada!");
        let shown = place.run(&["tools", "show", name]);
        assert!(shown.starts_with("greet   fake (mcp, not trusted)"), "{shown}");
    }
    let unknown = place.run(&["call", "greet@nobody"]);
    assert!(unknown.contains("does not exist"), "{unknown}");
    insta::assert_snapshot!(place.run(&["servers", "show", "fake"]), @r"
    fake   known, not running
      Reached by: python3 HOME/server.py HOME/fake.json
      Protocol: legacy
      Trusted: no
      Tools: greet
    ");
    insta::assert_snapshot!(place.run(&["servers", "list"]), @r"
    NAME  STATE               TOOLS  NOTE  REACHED BY
    fake  known, not running  1            python3 HOME/server.py HOME/fake.json
    ");
    insta::assert_snapshot!(place.run(&["tools", "show", "greet"]), @r"
    greet   fake (mcp, not trusted), writes
      Greets somebody
      Parameters:
        - name (string):  [optional]
    ");
    insta::assert_snapshot!(place.run(&["servers", "stop", "fake"]), @r"
    --- stderr
    fake was not running
    ");
    insta::assert_snapshot!(place.run(&["servers", "remove", "fake"]), @r"
    --- stderr
    removed fake: HOME/config/toolyard/toolyard.toml
    ");
    insta::assert_snapshot!(place.run(&["servers", "list"]), @r"
    --- stderr
    no servers yet; add one with `toolyard servers add`, or take over those of your editors: toolyard import
    ");
    insta::assert_snapshot!(place.run(&["servers", "show", "fake"]), @r"
    --- stderr
    error: server `fake` does not exist
      hint: there are none yet: toolyard servers add, or toolyard import
    --- exit 2
    ");
    place.assert_gone("fake");
}

#[test]
fn the_first_list_starts_it_and_says_so_and_the_second_starts_nothing() {
    let place = Place::new();
    place.add("fake", &[]);
    let first = place.run(&["tools", "list"]);
    assert!(
        first.contains("note: fake was seen for the first time, its tool is in service: greet"),
        "{first}"
    );
    assert_eq!(place.starts("fake").len(), 1);
    let second = place.run(&["tools", "list"]);
    assert!(second.contains("greet") && !second.contains("first time"), "{second}");
    assert_eq!(place.starts("fake").len(), 1, "nothing is started when everything is known");
    place.assert_gone("fake");
}

#[test]
fn ten_servers_with_a_warm_cache_cost_no_process() {
    let place = Place::new();
    let names: Vec<String> = (0..10).map(|number| format!("fake{number}")).collect();
    for name in &names {
        place.add(name, &[]);
    }
    place.run(&["servers", "test"]);
    let starts = |place: &Place| names.iter().map(|name| place.starts(name).len()).sum::<usize>();
    assert_eq!(starts(&place), 10);
    for words in [&["tools", "list"][..], &["tools", "search", "greet"], &["servers", "list"], &["doctor"]] {
        place.run(words);
    }
    assert_eq!(starts(&place), 10, "listing, searching and checking start nothing");
}

#[test]
fn the_servers_own_bytes_come_through() {
    let place = Place::new();
    place.add("fake", &[]);
    let raw = place.command(&[&GREET[..], &["--raw"]].concat()).output().unwrap();
    let raw = String::from_utf8(raw.stdout).unwrap();
    assert_eq!(raw.trim_end(), r#"{"content": [{"type": "text", "text": "Hello, Ada!"}], "x-extra": 1.5}"#);
}

#[test]
fn a_tools_failure_is_its_own() {
    let place = Place::new();
    place.add("fake", &[]);
    place.run(&["servers", "test"]);
    insta::assert_snapshot!(place.run(&["call", "greet", "--args", r#"{"name":"nobody"}"#]), @r"
    --- stderr
    error: greet (fake): there is nobody
    --- exit 1
    ");
}

#[test]
fn a_program_that_is_not_there_harms_nobody_else() {
    let place = Place::new();
    place.add("fake", &[]);
    place.run(&["servers", "add", "broken", "--", "no-such-program-here"]);
    let tested = place.run(&["servers", "test", "broken"]);
    assert!(tested.contains("the command `no-such-program-here` was not found in PATH"), "{tested}");
    assert!(tested.contains("hint: see what it said: toolyard servers logs broken"), "{tested}");
    assert!(tested.ends_with("--- exit 3"), "{tested}");
    assert!(place.run(&GREET).contains("Hello, Ada!"));
    let unknown = place.run(&["call", "no_such_tool"]);
    assert!(unknown.contains("these servers could not be asked: broken"), "{unknown}");
    assert!(
        place
            .run(&["doctor"])
            .contains("PROBLEM  servers   broken: the program `no-such-program-here` was not found")
    );
}

#[test]
fn a_known_server_that_is_gone_is_unreachable() {
    let place = Place::new();
    place.add("fake", &[]);
    place.run(&["servers", "test"]);
    std::fs::remove_file(place.path("server.py")).unwrap();
    let seen = place.run(&GREET);
    assert!(seen.contains("hint:") && seen.ends_with("--- exit 3"), "{seen}");
}

#[test]
fn what_a_server_said_is_kept() {
    let place = Place::new();
    place.add("fake", &[]);
    insta::assert_snapshot!(place.run(&["servers", "logs", "fake"]), @r"
    --- stderr
    fake said nothing yet
    ");
    place.run(&["servers", "test"]);
    insta::assert_snapshot!(place.run(&["servers", "logs", "fake"]), @"DATE the fake server is here");
    insta::assert_snapshot!(place.run(&["servers", "logs", "nope"]), @r"
    --- stderr
    error: server `nope` does not exist
      hint: list what there is: toolyard servers list
    --- exit 2
    ");
}

/// A call that lasts, seen from outside once it is under way.
fn long_call(place: &Place) -> std::process::Child {
    place.add("fake", &[]);
    let slow = json!({"name": "sleep_long", "description": "Sleeps", "inputSchema": {"type": "object"}});
    place.offer("fake", &[greet("Greets somebody"), slow]);
    place.run(&["servers", "test"]);
    let child = place
        .command(&["call", "sleep_long", "--timeout", "100s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let called = place.path("fake.json.called");
    assert!(wait_until(10_000, || called.exists()), "the call did not begin");
    child
}

fn signal(name: &str, process: u32) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

#[test]
fn ctrl_c_during_a_call_leaves_nothing_behind_and_says_what_is_not_known() {
    let place = Place::new();
    let child = long_call(&place);
    signal("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    let seen = place.seen(&output);
    assert!(seen.contains("may have taken effect") && seen.ends_with("--- exit 5"), "{seen}");
    place.assert_gone("fake");
}

#[test]
fn a_server_does_not_survive_the_sudden_death_of_toolyard() {
    let place = Place::new();
    let mut child = long_call(&place);
    signal("-KILL", child.id());
    child.wait().unwrap();
    place.assert_gone("fake");
}
