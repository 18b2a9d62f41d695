//! What stands in variables and headers is never printed.

use serde_json::json;

use crate::place::{Place, greet};

/// Values that no rule would recognise as secrets by their looks.
const CANARIES: [&str; 5] = [
    "canary-one-1234567",
    "canary-two-1234567",
    "canary-three-1234567",
    "canary-four-1234567",
    "canary-five-1234567",
];

#[test]
fn what_stands_in_variables_and_headers_is_never_printed() {
    let place = Place::new();
    let [one, two, three, four, five] = CANARIES;
    place.offer("fake", &[greet("Greets somebody")]);
    let [command, program, settings] = place.words("fake");
    let text = format!(
        "[servers.fake]\ncommand = \"{command}\"\nargs = [\"{program}\", \"{settings}\", \"--api-key\", \"{one}\"]\n\
         env = {{ FAKE_API_KEY = \"{two}\", OTHER = \"${{FAKE_SECRET}}\" }}\n\
         [servers.web]\nurl = \"http://127.0.0.1:9/mcp?token={three}\"\n\
         headers = {{ Authorization = \"Bearer {four}\", X-Api-Key = \"${{FAKE_SECRET}}\" }}\n\
         [servers.unset]\nurl = \"http://127.0.0.1:9/mcp\"\nheaders = {{ Authorization = \"Bearer ${{NOT_SET}}\" }}\n\
         [servers.gone]\ncommand = \"no-such-program\"\nenv = {{ GONE_TOKEN = \"{two}\" }}\n"
    );
    place.write("config/toolyard/toolyard.toml", &text);
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
            let output = place.command(&[words, more].concat()).env("FAKE_SECRET", five).output().unwrap();
            said.push_str(&place.seen(&output));
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
    assert!(said.contains("needs the variable `NOT_SET`"), "what is missing is named");
    assert!(said.contains("looks like a secret that stands in the file"), "what should not stay so is told");
}

#[test]
fn a_plain_file_with_a_secret_works_and_the_doctor_says_so() {
    let place = Place::new();
    place.offer("fake", &[greet("Greets somebody")]);
    let [command, program, settings] = place.words("fake");
    let server =
        json!({"command": command, "args": [program, settings], "env": {"FAKE_API_KEY": CANARIES[0]}});
    place.write("config/toolyard/mcp.json", &json!({"mcpServers": {"fake": server}}).to_string());
    let seen = place.run(&["doctor"]);
    assert!(seen.contains("env.FAKE_API_KEY looks like a secret") && !seen.contains(CANARIES[0]), "{seen}");
    assert!(place.run(&["servers", "test"]).contains("1 tool"));
}
