//! The command line: output, messages and exit codes.

use std::{
    fmt::Write as _,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// An isolated home and project folder.
struct TestHome {
    folder: tempfile::TempDir,
}

impl TestHome {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("project/.git")).unwrap();
        Self { folder }
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let file = self.project().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        file
    }

    fn command(&self, args: &[&str]) -> Command {
        let home = self.folder.path();
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolyard"));
        command
            .args(args)
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", home)
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_DATA_HOME", home.join("data"))
            .env("XDG_CACHE_HOME", home.join("cache"))
            .stdin(Stdio::null());
        command
    }

    /// The output of a command, and its exit code if that is not 0.
    fn run(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        let mut text = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        if !errors.is_empty() {
            let _ = write!(text, "--- stderr\n{errors}");
        }
        if !output.status.success() {
            let _ = write!(text, "--- exit {}", output.status.code().unwrap_or(-1));
        }
        let home = self.folder.path().canonicalize().unwrap();
        text.replace(home.to_str().unwrap(), "HOME").replace(self.folder.path().to_str().unwrap(), "HOME")
    }

    fn copy_example_skills(&self) {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/skills");
        let target = self.project().join(".agents/skills");
        std::fs::create_dir_all(&target).unwrap();
        let copied = Command::new("cp").arg("-r").arg(examples.join(".")).arg(&target).status().unwrap();
        assert!(copied.success());
    }
}

#[test]
fn a_call_prints_only_its_output() {
    let home = TestHome::new();
    insta::assert_snapshot!(home.run(&["call", "calculate", "--args", r#"{"expression":"(3+4)*12/7"}"#]), @"12");
    insta::assert_snapshot!(home.run(&["call", "calculate", "--args", r#"{"expression":"0.1+0.2"}"#]), @"0.3");
}

#[test]
fn native_tools_are_listed() {
    insta::assert_snapshot!(TestHome::new().run(&["tools", "list"]), @r#"
    NAME                      SOURCE  EFFECT     DESCRIPTION
    calculate                 native  read-only  Calculate an arithmetic expression exactly, or over `values`: sum(values), average(values), min(values), max(values), median(values), count(values). Knows units, powers, roots, logarithms and trigonometry. Results that are not exact begin with `approx.`
    get_conversation_history  native  read-only  Recall earlier messages of this conversation, all of them or those that contain a text
    get_time                  native  read-only  Tell the current date, time and weekday in a time zone
    read_result               native  read-only  Read the rest of a result that was too long to be shown whole, page by page
    search_web                native  read-only  Search the web and list the best results with their addresses
    "#);
}

#[test]
fn a_misspelt_tool_is_suggested() {
    insta::assert_snapshot!(TestHome::new().run(&["call", "calcualte"]), @r"
    --- stderr
    error: tool `calcualte` does not exist
      hint: did you mean `calculate`? · list all tools: toolyard tools list
    --- exit 2
    ");
}

#[test]
fn invalid_arguments_are_explained() {
    let home = TestHome::new();
    insta::assert_snapshot!(home.run(&["call", "read_result", "--args", r#"{"reference":7}"#]), @r#"
    --- stderr
    error: read_result (native): invalid arguments: /reference: value is not of type "string"
      hint: show its parameters: toolyard tools show read_result
    --- exit 2
    "#);
    insta::assert_snapshot!(home.run(&["call", "calculate", "--args", "{expression: 1}"]), @r#"
    --- stderr
    error: failed to parse the arguments: invalid JSON: key must be a string at line 1 column 2
      hint: pass a JSON object in single quotes: toolyard call calculate '{"expression":"1+1"}'
    --- exit 2
    "#);
    insta::assert_snapshot!(home.run(&["call", "calculate", "--source", "nativ"]), @r"
    --- stderr
    error: calculate: source `nativ` does not exist
      hint: omit the source to route automatically
    --- exit 2
    ");
}

#[test]
fn json_output_has_the_specified_format_for_failures_too() {
    let home = TestHome::new();
    insta::assert_snapshot!(home.run(&["call", "calculate", "--args", r#"{"expression":"1/0"}"#, "--json"]), @r#"
    {
      "success": false,
      "result": null,
      "error": "division by zero",
      "_meta": {
        "kind": "failed",
        "tool": "calculate",
        "source": "native",
        "retryable": false,
        "attempts": 1,
        "hint": null
      }
    }
    --- exit 1
    "#);
}

#[test]
fn explain_prints_decisions_to_stderr() {
    let output =
        TestHome::new().run(&["call", "calculate", "--args", r#"{"expression":"1+1"}"#, "--explain"]);
    let without_times =
        output.lines().map(|line| line.split("answered").next().unwrap()).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(without_times, @r"
    2
    --- stderr
    route     calculate         1 candidate: native (trusted); source not given: automatic
    order     calculate         calculate@native: the only one
    strategy  direct            one candidate
    call      calculate@native  read-only, attempt 1: 
    result    calculate         shown whole
    ");
}

#[test]
fn a_tool_is_found_by_capability() {
    assert!(TestHome::new().run(&["call", "--capability", "time"]).contains("[UTC]"));
    let fallback = ["call", "calc", "--capability", "calculate", "--args", r#"{"expression":"2*21"}"#];
    insta::assert_snapshot!(TestHome::new().run(&fallback), @"42");
}

#[test]
fn arguments_come_from_a_file_or_standard_input() {
    let home = TestHome::new();
    home.write("args.json", r#"{"expression":"6*7"}"#);
    insta::assert_snapshot!(home.run(&["call", "calculate", "--args", "@args.json"]), @"42");
    let mut child = home
        .command(&["call", "calculate", "--args", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(br#"{"expression":"6*7"}"#).unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"42\n");
}

#[test]
fn truncated_output_is_readable_by_the_next_process() {
    let home = TestHome::new();
    home.copy_example_skills();
    let numbers = (0..100).map(|n| n.to_string()).collect::<Vec<_>>().join("+");
    let arguments = serde_json::json!({ "expression": format!("({numbers}) to words") }).to_string();
    let long = home.run(&["call", "calculate", "--args", &arguments, "--limit", "20", "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&long).unwrap();
    let reference = answer["_meta"]["truncation"]["reference"].as_str().unwrap();
    let whole = home.run(&["call", "read_result", "--args", &format!(r#"{{"reference":"{reference}"}}"#)]);
    let full = home.run(&["call", "calculate", "--args", &arguments]);
    assert!(whole.starts_with(full.trim_end()), "{whole}");
    assert!(full.len() > 30, "{full}");
}

#[test]
fn settings_are_found_in_ancestors_and_errors_are_located() {
    let home = TestHome::new();
    home.write("toolyard.toml", "[time]\nzoen = 3\n");
    insta::assert_snapshot!(home.run(&["tools", "list"]), @r"
    --- stderr
    error: failed to parse HOME/project/toolyard.toml: TOML parse error at line 2, column 1
      |
    2 | zoen = 3
      | ^^^^
    unknown field `zoen`, expected `zone`

      hint: all settings: toolyard settings schema; check them: toolyard doctor
    --- exit 2
    ");
    home.write("toolyard.toml", "[time]\nzone = \"Asia/Shanghai\"\n");
    let subfolder = home.project().join("deep/down");
    std::fs::create_dir_all(&subfolder).unwrap();
    let output = home.command(&["call", "get_time"]).current_dir(subfolder).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("[Asia/Shanghai]"));
}

#[test]
fn untrusted_project_settings_are_ignored() {
    let home = TestHome::new();
    home.write("toolyard.toml", "[routing]\npin = { calculate = \"nativ\" }\n");
    let note = "note: ignored until trusted: routing of toolyard.toml. Review it, then run: toolyard trust";
    assert!(home.run(&["tools", "list"]).contains(note));
    insta::assert_snapshot!(home.run(&["doctor"]), @r#"
    ok       settings  HOME/project/toolyard.toml
    note     settings  ignored until trusted: routing of toolyard.toml
                       hint: review it, then run: toolyard trust
    ok       store     HOME/data/toolyard/toolyard.db
    ok       tools     5 tools from 1 source
    note     search    no search engine is set; the tool search_web is not available
                       hint: [web_search] engine = "searxng", url = "http://localhost:8888"
    ok       skills    0 found
    "#);
    assert!(home.run(&["trust"]).contains("confirmation needs a terminal"));
    home.run(&["trust", "--yes"]);
    insta::assert_snapshot!(home.run(&["doctor"]), @r#"
    ok       settings  HOME/project/toolyard.toml
    ok       store     HOME/data/toolyard/toolyard.db
    ok       tools     5 tools from 1 source
    PROBLEM  settings  [routing.pin] calculate: source `nativ` does not exist
                       hint: list sources: toolyard tools list
    note     search    no search engine is set; the tool search_web is not available
                       hint: [web_search] engine = "searxng", url = "http://localhost:8888"
    ok       skills    0 found
    --- stderr
    error: found 1 problem
    --- exit 1
    "#);
    home.write("toolyard.toml", "[routing]\npin = { calculate = \"evil\" }\n");
    assert!(home.run(&["tools", "list"]).contains(note), "a changed file must be trusted again");
}

#[test]
fn doctor_works_with_invalid_settings() {
    let home = TestHome::new();
    home.write("toolyard.toml", "store = [");
    let output = home.run(&["doctor"]);
    assert!(output.starts_with("PROBLEM  settings  failed to parse"), "{output}");
    let json: serde_json::Value =
        serde_json::from_str(home.run(&["doctor", "--json"]).split("---").next().unwrap()).unwrap();
    assert_eq!(json[0]["severity"], "problem");
}

#[test]
fn calls_are_audited_and_the_log_is_verified() {
    let home = TestHome::new();
    home.run(&["call", "calculate", "--args", r#"{"expression":"1+1"}"#]);
    home.run(&["call", "calculate", "--args", r#"{"expression":"1/0"}"#]);
    let tail: serde_json::Value = serde_json::from_str(&home.run(&["audit", "tail", "--json"])).unwrap();
    let outcomes: Vec<&str> =
        tail.as_array().unwrap().iter().map(|row| row["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["ok", "failed"]);
    assert_eq!((tail[0]["caller"].as_str(), tail[0]["tool"].as_str()), (Some("cli"), Some("calculate")));
    let found = home.run(&["audit", "search", "--outcome", "failed", "--json"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&found).unwrap().as_array().unwrap().len(), 1);
    let verified = home.run(&["audit", "verify"]);
    assert!(verified.starts_with("2 records, none missing or altered"), "{verified}");
    let checkpoint = verified.trim().rsplit(' ').next().unwrap();
    assert!(home.run(&["audit", "verify", "--expect", checkpoint]).starts_with("2 records"));
    let other_checkpoint = checkpoint.replace("2:", "1:");
    assert!(
        home.run(&["audit", "verify", "--expect", &other_checkpoint])
            .contains("the audit log is corrupt at record 1")
    );
    let exported = home.run(&["audit", "export", "-", "--after", "1"]);
    let records: Vec<&str> = exported.lines().filter(|line| line.starts_with('{')).collect();
    assert!(records.len() == 1 && records[0].contains("\"number\":2"), "{exported}");
    assert!(exported.contains("exported 1 record; continue later with --after 2"), "{exported}");
    let later = home.run(&["audit", "search", "--since", "2100-01-01T00:00:00Z", "--json"]);
    assert_eq!(later.trim(), "[]");
    let earlier = home.run(&["audit", "search", "--until", "2100-01-01T00:00:00Z", "--json"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&earlier).unwrap().as_array().unwrap().len(), 2);
}

#[test]
fn an_export_that_follows_the_audit_log_has_later_records() {
    let home = TestHome::new();
    let call = || home.run(&["call", "calculate", "--args", r#"{"expression":"1+1"}"#]);
    call();
    let mut command = home.command(&["audit", "export", "-", "--after", "0", "--follow"]);
    let mut export = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(export.stdout.take().unwrap()).lines();
    let mut next_number = || {
        let line = lines.next().unwrap().unwrap();
        serde_json::from_str::<serde_json::Value>(&line).unwrap()["number"].clone()
    };
    assert_eq!(next_number(), 1);
    call();
    assert_eq!(next_number(), 2);
    let process = rustix::process::Pid::from_raw(export.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let ended = export.wait_with_output().unwrap();
    let message = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.success(), "{message}");
    assert!(message.contains("exported 2 records; continue later with --after 2"), "{message}");
}

#[test]
fn a_journalled_call_is_a_run_of_one_step() {
    let home = TestHome::new();
    let config = home.write("mine.toml", "journal = \"always\"\nstore = \"own.db\"\n");
    let config = config.to_str().unwrap();
    home.run(&["--config", config, "call", "calculate", "--args", r#"{"expression":"6*7"}"#]);
    let runs: serde_json::Value =
        serde_json::from_str(&home.run(&["--config", config, "runs", "list", "--json"])).unwrap();
    assert_eq!(runs[0]["state"], "done");
    let run = runs[0]["id"].as_str().unwrap();
    let shown: serde_json::Value =
        serde_json::from_str(&home.run(&["--config", config, "runs", "show", run, "--json"])).unwrap();
    assert_eq!(shown["steps"][0]["state"], "done");
    assert_eq!(shown["steps"][0]["outcome"]["output"]["content"][0]["text"], "42");
    assert!(home.project().join("own.db").exists());
    insta::assert_snapshot!(home.run(&["--config", config, "runs", "unknown"]), @r"
    --- stderr
    No steps with an unknown outcome.
    ");
    insta::assert_snapshot!(home.run(&["--config", config, "runs", "resolve", "nowhere", "call", "done"]), @r#"
    --- stderr
    error: run `nowhere` does not exist
      hint: list runs: toolyard runs list
    --- exit 2
    "#);
}

#[test]
fn the_store_is_checked_exported_and_imported() {
    let home = TestHome::new();
    home.run(&["call", "calculate", "--args", r#"{"expression":"1+1"}"#]);
    assert!(home.run(&["store", "check"]).contains("audit      1 records, hash chain intact"));
    home.run(&["store", "export", "all.jsonl"]);
    home.run(&["store", "backup", "copy.db"]);
    let config = home.write("other.toml", "store = \"other.db\"\n");
    let config = config.to_str().unwrap();
    let imported = home.run(&["--config", config, "store", "import", "all.jsonl"]);
    assert!(imported.contains("imported"), "{imported}");
    assert!(home.run(&["--config", config, "audit", "verify"]).starts_with("1 records"));
    let again = home.run(&["--config", config, "store", "import", "all.jsonl"]);
    assert!(again.contains("the store is not empty"), "{again}");
    home.run(&["store", "vacuum"]);
    assert!(home.project().join("copy.db").exists());
}

#[test]
fn a_write_error_on_stdout_fails_the_command() {
    let home = TestHome::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = home.command(&["tools", "list"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn project_skills_need_trust() {
    let home = TestHome::new();
    home.copy_example_skills();
    insta::assert_snapshot!(home.run(&["call", "count_words", "--args", r#"{"text":"a b"}"#]), @r"
    --- stderr
    error: tool `count_words` does not exist
      hint: programs of these skills are not trusted: disk-usage, word-count (toolyard skills trust NAME) · list all tools: toolyard tools list
    --- exit 2
    ");
    insta::assert_snapshot!(home.run(&["skills", "trust", "word-count"]), @r"
    --- stderr
    word-count in HOME/project/.agents/skills/word-count
    Its programs will run with your permissions when its tools are listed or called.
    error: word-count was not trusted: confirmation needs a terminal
      hint: review the above, then pass --yes
    --- exit 4
    ");
    insta::assert_snapshot!(home.run(&["skills", "trust", "word-count", "--yes"]), @r"
    --- stderr
    trusted word-count; a changed skill must be trusted again
    ");
    insta::assert_snapshot!(home.run(&["call", "count_words", "--args", r#"{"text":"a b"}"#]), @r#"{"words": 2, "characters": 3, "lines": 1}"#);

    home.write(".agents/skills/word-count/helper.py", "import os");
    let changed = home.run(&["skills", "list"]);
    assert!(
        changed.contains("word-count: programs are disabled: the skill changed since it was trusted"),
        "{changed}"
    );
}

#[test]
fn ctrl_c_stops_the_processes_of_a_skill() {
    let home = TestHome::new();
    let skill = home.write(".agents/skills/slow/SKILL.md", "---\nname: slow\ndescription: Sleeps\n---\n");
    let program = skill.parent().unwrap().join("slow.sh");
    let pid_file = home.project().join("pid");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --describe ]; then echo '{{\"name\":\"slow_one\",\"description\":\"d\"}}'; exit; fi\nsleep 300 &\necho $! > {}\nwait\n",
        pid_file.display()
    );
    std::fs::write(&program, script).unwrap();
    Command::new("chmod").arg("+x").arg(&program).status().unwrap();
    home.run(&["skills", "trust", "slow", "--yes"]);
    let child = home.command(&["call", "slow_one"]).stderr(Stdio::piped()).spawn().unwrap();
    let grandchild = loop {
        match std::fs::read_to_string(&pid_file) {
            Ok(pid) if pid.ends_with('\n') => break pid.trim().to_owned(),
            _ => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
    };
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "exit code 5: the outcome is unknown");
    assert!(String::from_utf8_lossy(&output.stderr).contains("may have taken effect"));
    let is_gone = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let state = std::fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
        state.is_empty() || state.contains(") Z ")
    });
    assert!(is_gone, "the sleeping grandchild {grandchild} still runs");
}

#[test]
fn a_closed_pipe_causes_no_panic() {
    let home = TestHome::new();
    let mut child = home
        .command(&["tools", "list", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(TestHome::new().run(&["completions", shell]).contains("toolyard"), "{shell}");
    }
}

#[test]
fn the_shell_completes_tools_and_servers_and_starts_none() {
    let home = TestHome::new();
    let settings = "[servers.files]\ncommand = \"touch\"\nargs = [\"started\"]\n[servers.git]\ncommand = \"touch\"\nargs = [\"started\"]\n";
    std::fs::create_dir_all(home.folder.path().join("config/toolyard")).unwrap();
    std::fs::write(home.folder.path().join("config/toolyard/toolyard.toml"), settings).unwrap();
    let complete = |words: &[&str]| {
        let words: Vec<&str> = ["--", "toolyard"].iter().chain(words).copied().collect();
        let mut command = home.command(&words);
        command.env("TOOLYARD_COMPLETE", "fish").env("_CLAP_COMPLETE_INDEX", (words.len() - 2).to_string());
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let names = text.lines().map(|line| line.split('\t').next().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(complete(&["call", "calc"]), ["calculate"]);
    assert_eq!(complete(&["tools", "show", "get_t"]), ["get_time"]);
    assert_eq!(complete(&["servers", "logs", "f"]), ["files"]);
    assert_eq!(complete(&["call", "x", "--source", ""]), ["files", "git", "native"]);
    assert!(complete(&["serv"]).contains(&"servers".to_owned()));
    assert!(!home.project().join("started").exists(), "no server was started");
}

#[test]
fn an_unreachable_database_is_reported() {
    let home = TestHome::new();
    let file = home.write("x.toml", "store = \"postgres://127.0.0.1:9/toolyard\"\n");
    let output = home.run(&["--config", file.to_str().unwrap(), "tools", "list"]);
    assert!(
        output.to_lowercase().contains("connection refused") && output.ends_with("--- exit 3"),
        "{output}"
    );
}

#[test]
fn a_misspelt_store_url_creates_no_file() {
    let home = TestHome::new();
    let file = home.write("x.toml", "store = \"mysql://h/d\"\n");
    let output = home.run(&["--config", file.to_str().unwrap(), "audit", "tail"]);
    assert!(output.contains("expected `postgres://") && output.ends_with("--- exit 2"), "{output}");
    assert_eq!(std::fs::read_dir(home.project()).unwrap().count(), 2, "only the settings and .git are there");
}

#[test]
fn a_store_that_exists_but_cannot_be_opened_is_not_ignored() {
    let home = TestHome::new();
    let call = ["call", "calculate", r#"{"expression": "1"}"#];
    assert!(!home.run(&call).contains("exit"), "this creates the store");
    let database = home.folder.path().join("data/toolyard/toolyard.db");
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", database.display()));
    }
    std::fs::write(&database, "This is no database. ".repeat(500)).unwrap();
    let refused = home.run(&call);
    assert!(refused.contains("toolyard.db") && refused.ends_with("--- exit 1"), "{refused}");
}
