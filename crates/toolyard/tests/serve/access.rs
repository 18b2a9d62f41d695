//! Who is let in at an address, and what there is for them.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::{
    client::{Serving, heard, modern, names},
    yard,
};

#[tokio::test]
async fn nobody_comes_in_without_the_token() {
    let place = yard();
    let mut hub = Serving::start(&place, &[]);
    assert_eq!(names(&hub.ask("", "tools/list", json!({})).await).len(), 8);
    let file = place.path("data/toolyard/serve/token");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let token = hub.token.take();
    assert!(!hub.said().contains(token.as_deref().unwrap()), "a log does not show it: {}", hub.said());
    for wrong in [None, Some("x".to_owned()), token.map(|token| token.to_uppercase() + "0")] {
        hub.token = wrong;
        let answer = heard(hub.request("", "tools/list", &modern(json!({})))).await;
        assert_eq!(answer.status, 401, "{answer:?}");
    }
}

#[tokio::test]
async fn a_page_of_the_web_does_not_come_in_by_another_name() {
    let place = yard();
    let hub = Serving::start(&place, &["--no-auth", "--allow-origin", "https://good.example"]);
    let list = || hub.request("", "tools/list", &modern(json!({})));
    assert_eq!(heard(list()).await.status, 200);
    assert_eq!(heard(list().header("Host", "evil.example")).await.status, 403);
    assert_eq!(heard(list().header("Origin", "https://evil.example")).await.status, 403);
    assert_eq!(heard(list().header("Origin", "https://good.example")).await.status, 200);
}

#[test]
fn everybody_comes_in_only_from_this_machine() {
    let place = yard();
    insta::assert_snapshot!(place.run(&["serve", "--http", "0.0.0.0:0", "--no-auth"]).replace(|c: char| c.is_ascii_digit(), "N"), @r"
    --- stderr
    error: --no-auth is refused at N.N.N.N:NNNNN: others could reach it
      hint: leave it out: a token is made for you
    --- exit N
    ");
    insta::assert_snapshot!(place.run(&["serve", "--http", "nowhere"]), @r"
    --- stderr
    error: cannot serve at nowhere: invalid socket address
      hint: an address is HOST:PORT, such as 127.0.0.1:7300
    --- exit 2
    ");
}

#[tokio::test]
async fn a_token_of_the_settings_is_a_reference() {
    let place = yard();
    let settings = place.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, format!("{text}\n[serve]\ntoken = \"written-into-a-file\"\n")).unwrap();
    insta::assert_snapshot!(place.run(&["serve", "--http", "127.0.0.1:0"]), @r"
    --- stderr
    error: [serve] token must name an environment variable, like `${TOOLYARD_TOKEN}`: secrets do not belong in files
      hint: schema/toolyard.schema.json describes toolyard.toml; `toolyard doctor` checks it
    --- exit 2
    ");
    std::fs::write(&settings, format!("{text}\n[serve]\ntoken = \"${{YARD_TOKEN}}\"\n")).unwrap();
    insta::assert_snapshot!(place.run(&["serve", "--http", "127.0.0.1:0"]), @r"
    --- stderr
    error: [serve] token: the environment variable `YARD_TOKEN` is not set
      hint: schema/toolyard.schema.json describes toolyard.toml; `toolyard doctor` checks it
    --- exit 2
    ");
}

#[tokio::test]
async fn profiles_have_addresses_of_their_own() {
    let place = yard();
    let settings = place.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, text + "\n[serve.profiles.reading]\ntools = [\"greet\"]\nsurface = \"full\"\n")
        .unwrap();
    let hub = Serving::start(&place, &["--surface", "search"]);
    assert_eq!(names(&hub.ask("", "tools/list", json!({})).await).len(), 3);
    assert_eq!(
        names(&hub.ask("/reading", "tools/list", json!({})).await).len(),
        3,
        "--surface is the last word"
    );
    let call = json!({"name": "greet", "arguments": {"name": "Ada"}});
    assert_eq!(hub.ask("/reading", "tools/call", call).await["result"]["content"][0]["text"], "Hello, Ada!");
    let refused = hub.ask("/reading", "tools/call", json!({"name": "calculate", "arguments": {}})).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(heard(hub.request("/other", "tools/list", &modern(json!({})))).await.status, 404);
}

#[tokio::test]
async fn what_is_too_long_is_cut_and_can_be_read_whole() {
    let place = yard();
    let settings = place.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, text + "\n[serve]\nresult_budget = 1000\n").unwrap();
    let hub = Serving::start(&place, &[]);
    let call = json!({"name": "write_much", "arguments": {"words": 2_000}});
    let answer = hub.ask("", "tools/call", call).await;
    let content = answer["result"]["content"].as_array().unwrap();
    assert!(content[0]["text"].as_str().unwrap().len() <= 1000, "{answer}");
    assert!(content[1]["text"].as_str().unwrap().contains("of 10,000 characters"), "{answer}");
    assert_eq!(content[2]["type"], "resource_link");
    let whole = hub.ask("", "resources/read", json!({"uri": content[2]["uri"]})).await;
    assert_eq!(whole["result"]["contents"][0]["text"].as_str().unwrap().len(), 10_000);
    let read = json!({"name": "read_result", "arguments": {"reference": content[2]["uri"].as_str().unwrap().rsplit('/').next().unwrap()}});
    assert!(
        hub.ask("", "tools/call", read).await["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("word")
    );
}

#[test]
fn the_doctor_looks_at_what_is_served() {
    let place = yard();
    let settings = place.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    let serve = "\n[serve]\ntoken = \"${YARD_TOKEN}\"\nsession_keys = [\"${YARD_KEY}\"]\n\
        [serve.profiles.office]\nservers = [\"fake\", \"excel\"]\n\
        [serve.profiles.\"a/b\"]\ntools = [\"nothing\"]\nbudget = 0\n";
    std::fs::write(&settings, text + serve).unwrap();
    let seen = place.run(&["doctor"]);
    let lines: Vec<&str> = seen.lines().skip_while(|line| !line.contains(" serve ")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    PROBLEM  serve     [serve] token: the environment variable `YARD_TOKEN` is not set
                       hint: `toolyard serve --http` stops until then
    PROBLEM  serve     [serve] session_keys: the environment variable `YARD_KEY` is not set
                       hint: `toolyard serve --http` stops until then
    PROBLEM  serve     [serve] profiles.a/b: the name of a profile has letters, digits, `-` and `_` only
                       hint: its name is part of an address: /mcp/NAME
    note     serve     profile a/b offers no tools
    PROBLEM  serve     [serve.profiles.office] there is no source `excel`
                       hint: see the ids with `toolyard tools list`
    ok       serve     profile office offers 4 tools
    --- stderr
    error: 4 problems were found
    --- exit 1
    ");
}

#[test]
fn a_port_in_use_is_told_as_such() {
    let place = yard();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = place.run(&["serve", "--http", &address]);
    assert!(said.contains("somebody serves there already") && said.ends_with("--- exit 2"), "{said}");
}
