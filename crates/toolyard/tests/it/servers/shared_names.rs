//! Two real file servers of one program with different folders, through the binary.

use std::path::PathBuf;

use serde_json::Value;

use crate::test_home::TestHome;

/// The official file server, as `scripts/parts` installs it.
fn file_server() -> String {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap());
    let cache = || std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home().join(".cache"), PathBuf::from);
    let parts =
        std::env::var_os("TOOLYARD_PARTS").map_or_else(|| cache().join("toolyard-parts"), PathBuf::from);
    let program = parts.join("node/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    assert!(program.exists(), "{} is missing: run scripts/parts", program.display());
    program.to_str().unwrap().to_owned()
}

/// `files` with `~/docs` and `filesystem` with `HOME/data`, as six editors configure them.
fn two_file_servers() -> TestHome {
    let home = TestHome::new();
    home.write("docs/letter.txt", "dear Anna");
    home.write("data/sales.csv", "month,sales\nJuly,1890\n");
    let folder = |name: &str| home.path(name).canonicalize().unwrap().to_str().unwrap().to_owned();
    for (id, folder) in [("files", folder("docs")), ("filesystem", folder("data"))] {
        let added = home.run(&["servers", "add", id, "--", "node", &file_server(), &folder]);
        assert!(!added.contains("--- exit"), "{added}");
    }
    home
}

fn json_of(home: &TestHome, args: &[&str]) -> Vec<Value> {
    let output = home.command(&[args, &["--json"]].concat()).output().unwrap();
    serde_json::from_slice::<Vec<Value>>(&output.stdout).unwrap()
}

/// What the shell offers after `toolyard call` and these letters.
fn completed_tools(home: &TestHome, letters: &str) -> Vec<String> {
    let mut command = home.command(&["--", "toolyard", "call", letters]);
    command.env("TOOLYARD_COMPLETE", "fish").env("_CLAP_COMPLETE_INDEX", "2");
    let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let names = output.lines().map(|line| line.split('\t').next().unwrap().to_owned());
    names.filter(|name| !name.starts_with('-')).collect()
}

fn call(home: &TestHome, tool: &str, path: &str) -> String {
    let path = home.path(path).canonicalize().unwrap_or_else(|_| home.path(path));
    home.run(&["call", tool, "--args", &serde_json::json!({ "path": path }).to_string()])
}

#[test]
fn two_file_servers_are_told_apart() {
    let home = two_file_servers();
    // The first call finds both: the path is below the folder of the second.
    let read = call(&home, "read_text_file", "data/sales.csv");
    assert!(read.contains("July,1890"), "{read}");
    let read = call(&home, "read_text_file", "docs/letter.txt");
    assert!(read.contains("dear Anna"), "{read}");
    assert!(call(&home, "filesystem.read_text_file", "data/sales.csv").contains("July,1890"));
    assert!(call(&home, "read_text_file@filesystem", "data/sales.csv").contains("July,1890"));
    let denied = call(&home, "files.read_text_file", "data/sales.csv");
    assert!(denied.contains("Access denied"), "the source that is named is called: {denied}");

    // A path that says nothing reaches nobody, above all if the tool writes.
    let arguments = r#"{"path":"note.txt","content":"x"}"#;
    let refused = home.run(&["call", "write_file", "--args", arguments]);
    assert!(refused.contains("write_file: 2 servers have a tool of this name; none was called"), "{refused}");
    assert!(
        refused.contains("hint: call one of `files.write_file` (~/docs), `filesystem.write_file` (~/data)"),
        "{refused}"
    );

    // Every tool of both is listed, and every name that is printed can be called.
    let listed = json_of(&home, &["tools", "list"]);
    let names_of = |source: &str| -> Vec<&str> {
        let tools = listed.iter().filter(|tool| tool["source"] == *source);
        tools.map(|tool| tool["call_as"].as_str().unwrap()).collect()
    };
    let (files, filesystem) = (names_of("files"), names_of("filesystem"));
    assert!(files.len() >= 10 && files.len() == filesystem.len(), "{files:?} {filesystem:?}");
    for tool in &listed {
        let name = tool["call_as"].as_str().unwrap();
        let shown = json_of(&home, &["tools", "show", name]);
        let sources: Vec<&Value> = shown.iter().map(|shown| &shown["tool"]["source"]).collect();
        assert_eq!(sources, [&tool["source"]], "{name}");
    }
    let mut completed = completed_tools(&home, "");
    let mut callable: Vec<String> =
        listed.iter().map(|tool| tool["call_as"].as_str().unwrap().to_owned()).collect();
    completed.sort();
    callable.sort();
    assert_eq!(completed, callable);
    assert_eq!(completed_tools(&home, "files.read_text"), ["files.read_text_file"]);
    assert!(completed_tools(&home, "read_text").is_empty(), "the bare name reaches nobody");
    let table = home.run(&["tools", "list"]);
    assert!(table.contains("filesystem.read_text_file") && !table.contains("[~/data]"), "{table}");
    let found = home.run(&["tools", "search", "read the text of a file", "--limit", "1"]);
    let rows: Vec<&str> = found.lines().filter(|line| line.contains("read_")).collect();
    assert_eq!(rows.len(), 2, "{found}");
    for row in rows {
        let mut words = row.split_whitespace();
        let (name, source) = (words.next().unwrap(), words.next().unwrap());
        assert!(name.starts_with(&format!("{source}.")), "{row}");
    }

    // While one of them is disabled, the shared names reach the other.
    home.run(&["servers", "disable", "files"]);
    assert!(call(&home, "read_text_file", "data/sales.csv").contains("July,1890"));
    assert_eq!(completed_tools(&home, "read_text_file"), ["read_text_file"]);
    home.run(&["servers", "enable", "files"]);
    assert!(completed_tools(&home, "read_text_file").is_empty());

    // The doctor says it once, and the operator decides.
    let checked = home.run(&["doctor"]);
    assert_eq!(checked.matches("in several sources").count(), 1, "{checked}");
    home.run(&["servers", "approve", "files", "read_text_file", "--take-names", "--yes"]);
    let denied = call(&home, "read_text_file", "data/sales.csv");
    assert!(denied.contains("Access denied"), "the name is the operator's choice now: {denied}");
}
