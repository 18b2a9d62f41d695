//! `toolyard doctor` for somebody with many servers.

use std::fmt::Write as _;

use serde_json::Value;

use crate::test_home::{TestHome, named_tool};

/// Nineteen servers: two pairs that share fourteen names each, five that fail in two ways each, four that were never started.
fn home_with_nineteen_servers() -> TestHome {
    let home = TestHome::new();
    let tools: Vec<Value> = (0..14).map(|number| named_tool(&format!("tool_{number}"))).collect();
    let mut settings = String::new();
    for (number, name) in ["files", "filesystem", "git", "git-work"].iter().enumerate() {
        let prefix = if number < 2 { "a" } else { "b" };
        let tools: Vec<Value> = tools
            .iter()
            .map(|tool| named_tool(&format!("{prefix}_{}", tool["name"].as_str().unwrap())))
            .collect();
        home.set_tools(name, &tools);
        let [program, script, file] = home.server_command(name);
        let _ = writeln!(settings, "[servers.{name}]\ncommand = {program:?}\nargs = [{script:?}, {file:?}]");
    }
    for number in 0..5 {
        let _ = writeln!(settings, "[servers.missing-{number}]\ncommand = \"no-such-program-{number}\"");
    }
    for number in 0..10 {
        let name = format!("other-{number}");
        home.set_tools(&name, &[named_tool(&name)]);
        let [program, script, file] = home.server_command(&name);
        let _ = writeln!(settings, "[servers.{name}]\ncommand = {program:?}\nargs = [{script:?}, {file:?}]");
    }
    home.write("config/toolyard/toolyard.toml", &settings);
    // The first server of a name owns it.
    home.run(&["servers", "test", "files", "git"]);
    let mut tested = vec!["servers", "test", "filesystem", "git-work"];
    tested.extend(["missing-0", "missing-1", "missing-2", "missing-3", "missing-4"]);
    tested.extend(["other-0", "other-1", "other-2", "other-3", "other-4", "other-5"]);
    home.run(&tested);
    home
}

#[test]
fn nineteen_servers_fit_on_a_screen_and_each_is_counted_once() {
    let home = home_with_nineteen_servers();
    let output = home.run(&["doctor"]);
    assert!(output.lines().count() < 40, "{output}");
    insta::assert_snapshot!(output, @r#"
    ok       settings  HOME/config/toolyard/toolyard.toml
    ok       store     HOME/data/toolyard/toolyard.db
    ok       tools     67 tools from 20 sources
    note     tools     2 groups of sources share names
                       `a_tool_0`, `a_tool_1`, `a_tool_10`, `a_tool_11`, `a_tool_12`, `a_tool_13` and 8 more exist in several sources: files, filesystem
                       `b_tool_0`, `b_tool_1`, `b_tool_10`, `b_tool_11`, `b_tool_12`, `b_tool_13` and 8 more exist in several sources: git, git-work
                       hint: call one as SOURCE.TOOL, or give one the name: toolyard servers approve SOURCE TOOL --take-names
    note     search    no search engine is set; the tool search_web is not available
                       hint: [web_search] engine = "searxng", url = "http://localhost:8888"
    ok       skills    0 found
    ok       servers   19 servers
    PROBLEM  servers   5 of 19 servers cannot be used
                       missing-0: program `no-such-program-0` not found: install it, or set its full path as `command`
                       missing-1: program `no-such-program-1` not found: install it, or set its full path as `command`
                       missing-2: program `no-such-program-2` not found: install it, or set its full path as `command`
                       missing-3: program `no-such-program-3` not found: install it, or set its full path as `command`
                       missing-4: program `no-such-program-4` not found: install it, or set its full path as `command`
                       hint: retry: toolyard servers test NAME · log: toolyard servers logs NAME
    note     servers   4 servers were never started; their tools are not known yet: other-6, other-7, other-8, other-9
                       hint: toolyard servers test
    --- stderr
    error: found 5 problems
    --- exit 1
    "#);
    let json = home.command(&["doctor", "--json"]).output().unwrap().stdout;
    let findings: Value = serde_json::from_slice(&json).unwrap();
    let problem =
        findings.as_array().unwrap().iter().find(|finding| finding["severity"] == "problem").unwrap();
    assert_eq!(problem["items"].as_array().unwrap().len(), 5, "JSON lists everything: {findings:#}");
}
