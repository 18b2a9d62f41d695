//! Secrets in variables and headers are never printed.

use serde_json::json;

use crate::test_home::{TestHome, greet_tool};

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
