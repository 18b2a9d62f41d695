//! Secrets in variables and headers are never printed.

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use serde_json::json;

use crate::test_home::{TestHome, greet_tool, named_tool, wait_until};

/// Secrets without a format that redaction rules recognize: they are secrets by their place only.
const CANARIES: [&str; 5] = [
    "canary-one-1234567",
    "canary-two-1234567",
    "canary-three-1234567",
    "canary-four-1234567",
    "canary-five-1234567",
];

#[test]
fn secrets_in_variables_and_headers_are_never_printed() {
    let home = TestHome::new();
    let [one, two, three, four, five] = CANARIES;
    home.set_tools("fake", &[greet_tool("Greets somebody")]);
    let [command, program, settings] = home.server_command("fake");
    let text = format!(
        "[servers.fake]\ncommand = \"{command}\"\nargs = [\"{program}\", \"{settings}\", \"--api-key\", \"{one}\"]\n\
         env = {{ FAKE_API_KEY = \"{two}\", OTHER = \"${{FAKE_SECRET}}\" }}\n\
         [servers.web]\nurl = \"http://127.0.0.1:9/mcp?token={three}\"\n\
         headers = {{ Authorization = \"Bearer {four}\", X-Api-Key = \"${{FAKE_SECRET}}\" }}\n\
         [servers.unset]\nurl = \"http://127.0.0.1:9/mcp\"\nheaders = {{ Authorization = \"Bearer ${{NOT_SET}}\" }}\n\
         [servers.gone]\ncommand = \"no-such-program\"\nenv = {{ GONE_TOKEN = \"{two}\" }}\n"
    );
    home.write("config/toolyard/toolyard.toml", &text);
    let mut output_so_far = String::new();
    let commands: [&[&str]; 11] = [
        &["servers", "list"],
        &["servers", "test"],
        &["servers", "test", "web"],
        &["servers", "show", "fake"],
        &["servers", "show", "web"],
        &["servers", "approve", "web"],
        &["servers", "logs", "fake"],
        &["doctor"],
        &["tools", "list"],
        &["call", "greet", "--args", r#"{"name":"Ada"}"#, "--explain"],
        &["import", "--dry-run"],
    ];
    for args in commands {
        for flags in [&[][..], &["--json"], &["-vv"]] {
            let output = home.command(&[args, flags].concat()).env("FAKE_SECRET", five).output().unwrap();
            output_so_far.push_str(&home.output_text(&output));
        }
    }
    assert!(
        output_so_far.contains("Hello, Ada!") && output_so_far.contains("DEBUG"),
        "the commands worked and the logs were on"
    );
    for canary in CANARIES {
        let context = output_so_far.lines().find(|line| line.contains(canary));
        assert!(context.is_none(), "{canary} in {context:?}");
    }
    assert!(output_so_far.contains("the environment variable `NOT_SET`"), "the missing variable is named");
    assert!(output_so_far.contains("looks like a secret"), "a secret in the settings is reported");
}

#[test]
fn doctor_reports_a_secret_in_mcp_json() {
    let home = TestHome::new();
    home.set_tools("fake", &[greet_tool("Greets somebody")]);
    let [command, program, settings] = home.server_command("fake");
    let server =
        json!({"command": command, "args": [program, settings], "env": {"FAKE_API_KEY": CANARIES[0]}});
    home.write("config/toolyard/mcp.json", &json!({"mcpServers": {"fake": server}}).to_string());
    let output = home.run(&["doctor"]);
    assert!(
        output.contains("env.FAKE_API_KEY looks like a secret") && !output.contains(CANARIES[0]),
        "{output}"
    );
    assert!(home.run(&["servers", "test"]).contains("1 tool"));
}

/// The text of a file, and of what it holds in hexadecimal.
fn searchable(file: &Path) -> Vec<u8> {
    let mut content = std::fs::read(file).unwrap();
    let text = String::from_utf8_lossy(&content).into_owned();
    for word in text.split('"').filter(|word| word.len() > 20 && word.bytes().all(|b| b.is_ascii_hexdigit()))
    {
        let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        content.extend(word.as_bytes().chunks_exact(2).map(digits));
    }
    content
}

fn contains(content: &[u8], text: &str) -> bool {
    content.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn configured_secrets_that_a_server_repeats_leave_no_trace() {
    let home = TestHome::new();
    let [one, two, three, ..] = CANARIES;
    home.set_tools("fake", &[named_tool("tell")]);
    let [command, program, settings] = home.server_command("fake");
    let text = format!(
        "journal = \"always\"\n[servers.fake]\ncommand = \"{command}\"\n\
         args = [\"{program}\", \"{settings}\", \"--api-key\", \"{one}\"]\n\
         env = {{ FAKE_API_KEY = \"{two}\", OTHER = \"${{FAKE_SECRET}}\", PLAIN = \"plain-value-1234567\" }}\n"
    );
    home.write("config/toolyard/toolyard.toml", &text);
    let mut output = String::new();
    for extra in ["", ",\"fail\":true", ",\"crash\":true"] {
        let arguments = format!(r#"{{"variables":["PLAIN","FAKE_API_KEY","OTHER"]{extra}}}"#);
        for flags in [&[][..], &["--json"], &["-vv", "--limit", "20"], &["--raw"]] {
            let args = [&["call", "tell", "--args", &arguments], flags].concat();
            let process = home.command(&args).env("FAKE_SECRET", three).output().unwrap();
            output.push_str(&home.output_text(&process));
        }
    }
    assert!(output.contains("I know --api-key [redacted:environment] plain-value-1234567"), "{output}");
    for args in [
        &["audit", "export", "audit.jsonl"][..],
        &["store", "export", "store.jsonl"],
        &["store", "backup", "backup.db"],
        &["servers", "logs", "fake"],
    ] {
        output.push_str(&home.run(args));
    }
    assert!(output.contains("--api-key [redacted:environment]"), "{output}");

    let exported = searchable(&home.path("project/store.jsonl"));
    assert!(contains(&exported, "plain-value-1234567"), "outcomes are searchable");
    let mut files = vec![home.path("project/audit.jsonl"), home.path("project/store.jsonl")];
    files.extend([home.path("project/backup.db"), home.path("data/toolyard/toolyard.db")]);
    let logs = home.path("data/toolyard/logs");
    let log_files = || std::fs::read_dir(&logs).into_iter().flatten().map(|entry| entry.unwrap().path());
    assert!(wait_until(2_000, || log_files().next().is_some()), "{}", logs.display());
    files.extend(log_files());
    for canary in [one, two, three] {
        assert!(!output.contains(canary), "{canary} in {output}");
        for file in &files {
            assert!(!contains(&searchable(file), canary), "{canary} in {}", file.display());
        }
    }
    for file in &files {
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
    }
}
