//! Secrets in variables and headers are never printed.

use serde_json::json;

use crate::test_home::{TestHome, greet};

/// Values that no rule recognizes as secrets.
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
    home.offer("fake", &[greet("Greets somebody")]);
    let [command, program, settings] = home.words("fake");
    let text = format!(
        "[servers.fake]\ncommand = \"{command}\"\nargs = [\"{program}\", \"{settings}\", \"--api-key\", \"{one}\"]\n\
         env = {{ FAKE_API_KEY = \"{two}\", OTHER = \"${{FAKE_SECRET}}\" }}\n\
         [servers.web]\nurl = \"http://127.0.0.1:9/mcp?token={three}\"\n\
         headers = {{ Authorization = \"Bearer {four}\", X-Api-Key = \"${{FAKE_SECRET}}\" }}\n\
         [servers.unset]\nurl = \"http://127.0.0.1:9/mcp\"\nheaders = {{ Authorization = \"Bearer ${{NOT_SET}}\" }}\n\
         [servers.gone]\ncommand = \"no-such-program\"\nenv = {{ GONE_TOKEN = \"{two}\" }}\n"
    );
    home.write("config/toolyard/toolyard.toml", &text);
    let mut said = String::new();
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
    for words in commands {
        for more in [&[][..], &["--json"], &["-vv"]] {
            let output = home.command(&[words, more].concat()).env("FAKE_SECRET", five).output().unwrap();
            said.push_str(&home.seen(&output));
        }
    }
    assert!(
        said.contains("Hello, Ada!") && said.contains("DEBUG"),
        "the commands worked and the logs were on"
    );
    for canary in CANARIES {
        let context = said.lines().find(|line| line.contains(canary));
        assert!(context.is_none(), "{canary} in {context:?}");
    }
    assert!(said.contains("the environment variable `NOT_SET`"), "what is missing is named");
    assert!(said.contains("looks like a secret"), "what should not stay so is told");
}

#[test]
fn doctor_reports_a_secret_in_mcp_json() {
    let home = TestHome::new();
    home.offer("fake", &[greet("Greets somebody")]);
    let [command, program, settings] = home.words("fake");
    let server =
        json!({"command": command, "args": [program, settings], "env": {"FAKE_API_KEY": CANARIES[0]}});
    home.write("config/toolyard/mcp.json", &json!({"mcpServers": {"fake": server}}).to_string());
    let seen = home.run(&["doctor"]);
    assert!(seen.contains("env.FAKE_API_KEY looks like a secret") && !seen.contains(CANARIES[0]), "{seen}");
    assert!(home.run(&["servers", "test"]).contains("1 tool"));
}
