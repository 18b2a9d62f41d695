//! Secrets of every known format go through a call and leave no trace in the database, the logs, the errors or the exports.

use std::{
    path::Path,
    process::{Command, Stdio},
};

/// One canary per known format, put together from the examples of the rules: the secret, and the text it stands in.
fn canaries() -> Vec<(String, String)> {
    let rules: serde_json::Value =
        serde_json::from_str(include_str!("../../../toolyard-core/src/redact/rules.json")).unwrap();
    let formats = rules["formats"].as_array().unwrap();
    let canary = |format: &serde_json::Value| {
        let example = &format["example"];
        let secret: String =
            example["secret"].as_array().unwrap().iter().map(|part| part.as_str().unwrap()).collect();
        let side = |side: &str| example[side].as_str().unwrap_or_default().to_owned();
        (secret.clone(), format!("{}{secret}{}", side("left"), side("right")))
    };
    formats.iter().map(canary).collect()
}

/// The longest run of letters and digits of a canary: what must not be found anywhere.
fn distinctive_part(canary: &str) -> &str {
    let runs = canary.split(|letter: char| !letter.is_ascii_alphanumeric());
    runs.max_by_key(|run| run.len()).unwrap()
}

fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}

/// A skill whose tools answer with their arguments, or fail with them, on stderr and in the error.
fn leaky_skill(home: &Path) -> std::path::PathBuf {
    let skill = home.join("config/toolyard/skills/leaky");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), "---\nname: leaky\ndescription: Repeats what it is told\n---\n")
        .unwrap();
    let program = r#"#!/bin/sh
if [ "$1" = --describe ]; then
  echo '[{"name":"repeat","description":"d","annotations":{"readOnlyHint":true}},{"name":"fail","description":"d"}]'; exit
fi
if [ "$1" = repeat ]; then cat; else cat >&2; exit 3; fi
"#;
    std::fs::write(skill.join("run.sh"), program).unwrap();
    Command::new("chmod").arg("+x").arg(skill.join("run.sh")).status().unwrap();
    skill
}

#[test]
fn no_canary_leaves_a_trace() {
    let home = tempfile::tempdir().unwrap();
    let skill = leaky_skill(home.path());
    std::fs::write(home.path().join("config/toolyard/toolyard.toml"), "journal = \"always\"\n").unwrap();

    let run = |args: &[&str]| {
        let process = Command::new(env!("CARGO_BIN_EXE_toolyard"))
            .args(args)
            .current_dir(home.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", home.path())
            .env("XDG_CONFIG_HOME", home.path().join("config"))
            .env("XDG_DATA_HOME", home.path().join("data"))
            .env("XDG_CACHE_HOME", home.path().join("cache"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        (String::from_utf8(process.stdout).unwrap(), String::from_utf8(process.stderr).unwrap())
    };
    let canaries = canaries();
    assert!(canaries.len() >= 50, "{} formats", canaries.len());
    let mut output = String::new();
    for chunk in canaries.chunks(20) {
        let values: serde_json::Map<String, serde_json::Value> = chunk
            .iter()
            .enumerate()
            .map(|(index, (_, canary))| (format!("note{index}"), canary.as_str().into()))
            .collect();
        let arguments = serde_json::Value::Object(values).to_string();
        // With a small budget, the whole result is stored. Stdout is not searched here: it is the caller's own data.
        let (_, stderr) = run(&["-vv", "call", "repeat", "--limit", "10", "--args", &arguments]);
        output.push_str(&stderr);
        let (_, stderr) = run(&["-vv", "call", "fail", "--args", &arguments]);
        output.push_str(&stderr);
        let (stdout, stderr) = run(&["-vv", "--json", "call", "fail", "--args", &arguments]);
        output.push_str(&stdout);
        output.push_str(&stderr);
    }
    assert!(output.contains("DEBUG") || output.contains("TRACE"), "the logs must have been on");
    run(&["audit", "export", "audit.jsonl"]);
    run(&["store", "export", "store.jsonl"]);
    let (checked, stderr) = run(&["store", "check"]);
    assert!(checked.contains("hash chain intact") && checked.contains("results"), "{checked}{stderr}");

    let mut traces = Vec::new();
    let files: Vec<_> =
        files_below(home.path()).into_iter().filter(|file| !file.starts_with(&skill)).collect();
    assert!(
        files.iter().any(|file| file.ends_with("toolyard.db"))
            && files.iter().any(|file| file.ends_with("audit.jsonl"))
    );
    for (secret, _) in &canaries {
        let part = distinctive_part(secret);
        if output.contains(part) {
            traces.push(format!("{part} in the output"));
        }
        for file in &files {
            let content = std::fs::read(file).unwrap();
            if content.windows(part.len()).any(|window| window == part.as_bytes()) {
                traces.push(format!("{part} in {}", file.display()));
            }
        }
    }
    assert!(traces.is_empty(), "{traces:#?}");
}
