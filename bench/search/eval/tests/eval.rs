//! `search-eval` as a user runs it, on a set small enough to check by hand.

#![expect(clippy::unwrap_used, reason = "a panic in a test helper fails the test, as intended")]

use std::{
    fmt::Write as _,
    path::Path,
    process::{Command, Stdio},
};

const TOOLS: &str = r#"{"id":"mail::send","name":"send_mail","description":"Send a mail to somebody","server":"mail","params":[{"name":"to","description":"Address of the recipient"}]}
{"id":"mail::list","name":"list_mails","description":"List the latest mails","server":"mail","params":[]}
{"id":"files::read","name":"read_file","description":"Read a text file","server":"files","params":[{"name":"path","description":"Where the file is"}]}
{"id":"files::write","name":"write_file","description":"Write a text file","server":"files","params":[{"name":"path","description":"Where the file is"}]}
"#;

const QUERIES: &str = r#"{"id":"1","text":"send a mail to Bob","relevant":["mail::send"],"split":"test"}
{"id":"2","text":"read the file and mail it to Bob","relevant":["files::read","mail::send"],"split":"test","steps":"1. read the file\n2. send it to the address"}
{"id":"3","text":"throw it away","relevant":["files::write"],"split":"test"}
{"id":"4","text":"list mails","relevant":["mail::list"],"split":"dev"}
"#;

fn folder_with_sets() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("sets/office")).unwrap();
    std::fs::write(folder.path().join("sets/office/tools.jsonl"), TOOLS).unwrap();
    std::fs::write(folder.path().join("sets/office/queries.jsonl"), QUERIES).unwrap();
    folder
}

/// The stdout and stderr of a command, and its exit code if that is not 0.
fn run(folder: &Path, args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_search-eval"))
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    if !errors.is_empty() {
        let _ = write!(text, "--- stderr\n{errors}");
    }
    if !output.status.success() {
        let _ = write!(text, "--- exit {}", output.status.code().unwrap_or(-1));
    }
    text
}

/// The quality table and stderr: what is the same on every machine.
fn without_costs(text: &str) -> String {
    let (quality, rest) = text.split_once("\n\n").unwrap();
    let stderr = rest.split_once("--- stderr").unwrap().1;
    format!("{quality}\n--- stderr{stderr}")
}

#[test]
fn a_set_is_measured_and_shown() {
    let folder = folder_with_sets();
    insta::assert_snapshot!(without_costs(&run(folder.path(), &["sets"])), @r"
    SET     ASKED                             QUERIES  HIT@1  HIT@3  RECALL@5  RECALL@10  NDCG@10  ALL@10  ENGINE
    office  whole text                              3   66.7   66.7      66.7       66.7     62.6    66.7  toolyard
                                                        66.7   66.7      66.7       66.7     66.7    66.7  baseline
    office  per step                                1  100.0  100.0     100.0      100.0    100.0   100.0  toolyard
                                                       100.0  100.0     100.0      100.0    100.0   100.0  baseline
    office  after 30 past uses                      3   66.7   66.7      66.7       66.7     62.6    66.7  toolyard
    office  several tools                           1  100.0  100.0     100.0      100.0     87.7   100.0  toolyard
    office  several tools after 30 past uses        1  100.0  100.0     100.0      100.0     87.7   100.0  toolyard
    --- stderr
    note: points of 100; tokens are of o200k_base; times can only be compared within one run
    ");
}

#[test]
fn json_output_has_the_figures_of_each_engine() {
    let folder = folder_with_sets();
    let text = run(folder.path(), &["sets/office", "--json", "--split", "dev"]);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let row = &value["report"]["rows"][0];
    assert_eq!(value["report"]["split"], "dev");
    assert_eq!(row["key"], "office");
    assert_eq!(row["tools"], 4);
    let figures = &row["figures"]["baseline"];
    assert_eq!((figures["queries"].as_u64(), figures["hit_at_1"].as_f64()), (Some(1), Some(100.0)));
    assert!(figures["tokens"].as_f64().unwrap() <= row["catalogue_tokens"].as_f64().unwrap());
}

#[test]
fn a_row_below_its_floor_fails_the_command() {
    let folder = folder_with_sets();
    let floors = r#"{"rows": {"office": {"recall_at_10": 90.0, "ndcg_at_10": 10.0}, "gone": {"recall_at_10": 1, "ndcg_at_10": 1}}}"#;
    std::fs::write(folder.path().join("floors.json"), floors).unwrap();
    insta::assert_snapshot!(without_costs(&run(folder.path(), &["sets", "--floor", "floors.json"])), @r"
    SET     ASKED                             QUERIES  HIT@1  HIT@3  RECALL@5  RECALL@10  NDCG@10  ALL@10  ENGINE
    office  whole text                              3   66.7   66.7      66.7       66.7     62.6    66.7  toolyard
                                                        66.7   66.7      66.7       66.7     66.7    66.7  baseline
    office  per step                                1  100.0  100.0     100.0      100.0    100.0   100.0  toolyard
                                                       100.0  100.0     100.0      100.0    100.0   100.0  baseline
    office  after 30 past uses                      3   66.7   66.7      66.7       66.7     62.6    66.7  toolyard
    office  several tools                           1  100.0  100.0     100.0      100.0     87.7   100.0  toolyard
    office  several tools after 30 past uses        1  100.0  100.0     100.0      100.0     87.7   100.0  toolyard
    --- stderr
    note: points of 100; tokens are of o200k_base; times can only be compared within one run
    error: 2 rows are below the floor (recall@10 / NDCG@10):
      gone: not measured, must be 1.0 / 1.0
      office: 66.7 / 62.6, must be 90.0 / 10.0
      hint: find out what changed; if the fall is meant, write it into floors.json
    --- exit 1
    ");
    let text = run(folder.path(), &["sets", "--floor", "floors.json", "--json"]);
    let (data, end) = text.split_once("--- exit ").unwrap();
    assert_eq!(end, "1");
    let value: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(value["below_floor"].as_array().unwrap().len(), 2);
    std::fs::write(folder.path().join("floors.json"), r#"{"rows": {"office": {}}}"#).unwrap();
    insta::assert_snapshot!(run(folder.path(), &["sets", "--floor", "floors.json"]), @r#"
    --- stderr
    error: failed to read the floors in floors.json: missing field `recall_at_10` at line 1 column 22
      hint: like this: {"rows": {"SET": {"recall_at_10": 80.0, "ndcg_at_10": 66.0}}}
    --- exit 2
    "#);
}

#[test]
fn a_plot_is_written() {
    let folder = folder_with_sets();
    run(folder.path(), &["sets", "--plot", "search.svg"]);
    let svg = std::fs::read_to_string(folder.path().join("search.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains(">office<"));
    insta::assert_snapshot!(run(folder.path(), &["sets", "--plot", "no/search.svg"]), @r"
    --- stderr
    error: failed to write no/search.svg: No such file or directory (os error 2)
      hint: name a file in a folder that exists: --plot search.svg
    --- exit 1
    ");
}

#[test]
fn an_unusable_folder_is_reported_with_the_expected_format() {
    let folder = folder_with_sets();
    insta::assert_snapshot!(run(folder.path(), &["nowhere"]), @r"
    --- stderr
    error: failed to read nowhere: No such file or directory (os error 2)
      hint: a set is a folder with tools.jsonl ({id, name, description, server, params: [{name, description}]}) and queries.jsonl ({id, text, relevant: [tool ids]}); give one, or a folder of them
    --- exit 2
    ");
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    insta::assert_snapshot!(run(folder.path(), &["empty"]), @r"
    --- stderr
    error: empty holds no test set
      hint: a set is a folder with tools.jsonl ({id, name, description, server, params: [{name, description}]}) and queries.jsonl ({id, text, relevant: [tool ids]}); give one, or a folder of them
    --- exit 2
    ");
    std::fs::write(folder.path().join("sets/office/queries.jsonl"), format!("{QUERIES}{{\"id\":")).unwrap();
    insta::assert_snapshot!(run(folder.path(), &["sets"]), @r"
    --- stderr
    error: sets/office/queries.jsonl line 5: EOF while parsing a value (column 6)
      hint: every line is one JSON object; tool ids are those of tools.jsonl
    --- exit 2
    ");
}

#[test]
fn lists_of_servers_are_measured_with_their_whole_definitions() {
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("desk");
    std::fs::create_dir_all(set.join("servers")).unwrap();
    let nested = r#"{"type": "object", "properties": {"options": {"type": "object", "properties": {"watermark": {"type": "string"}}}}}"#;
    let stamp = format!(
        r#"{{"name": "t1", "title": "Stamp", "description": "Marks a page", "inputSchema": {nested}}}"#
    );
    let other = r#"{"name": "t2", "description": "Does something else", "inputSchema": {"type": "object"}}"#;
    let server = format!(r#"{{"server": "office", "info": {{}}, "tools": [{stamp}, {other}]}}"#);
    std::fs::write(set.join("servers/office.json"), server).unwrap();
    let requests = r#"{"id": "1", "language": "en", "request": "stamp", "tools": ["t1@office"]}
{"id": "2", "language": "en", "request": "watermark", "tools": ["t1@office", "t9@gone"]}
{"id": "3", "language": "en", "request": "calculate 17 * 23", "tools": ["calculate@native"]}
"#;
    std::fs::write(set.join("dev.jsonl"), requests.replace(", \"t9@gone\"", "")).unwrap();
    let text = run(folder.path(), &["desk", "--json", "--split", "dev"]);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let row = &value["report"]["rows"][0];
    // The title, a nested parameter and a native tool are found.
    assert_eq!(
        (&row["key"], &row["figures"]["toolyard"]["hit_at_3"]),
        (&"desk, en everyday".into(), &100.0.into()),
        "{row}"
    );
    std::fs::write(set.join("dev.jsonl"), requests).unwrap();
    let text = run(folder.path(), &["desk", "--split", "dev"]);
    assert!(text.contains("no test set holds the tools"), "{text}");
}
