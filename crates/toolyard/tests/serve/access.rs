//! Authentication, hosts and origins, profiles, output budget.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::{
    client::{HttpGateway, modern_params, send, tool_names},
    home_with_server,
};

#[tokio::test]
async fn requests_without_the_token_are_rejected() {
    let home = home_with_server();
    let mut gateway = HttpGateway::start(&home, &[]);
    assert_eq!(tool_names(&gateway.send_request("", "tools/list", json!({})).await).len(), 7);
    let file = home.path("data/toolyard/serve/token");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let token = gateway.token.take();
    assert!(
        !gateway.stderr().contains(token.as_deref().unwrap()),
        "the token is logged: {}",
        gateway.stderr()
    );
    let command = "in a shell: export TOOLYARD_TOKEN=$(cat '";
    assert!(gateway.stderr().contains(command), "connect says that serve prints it: {}", gateway.stderr());
    for token in [None, Some("x".to_owned()), token.map(|token| token.to_uppercase() + "0")] {
        gateway.token = token;
        let answer = send(gateway.build_request("", "tools/list", &modern_params(json!({})))).await;
        assert_eq!(answer.status, 401, "{answer:?}");
    }
}

#[tokio::test]
async fn the_token_of_scrapers_opens_metrics_only() {
    const SCRAPE_TOKEN: &str = "scrape-scrape-scrape";
    let home = home_with_server();
    let settings = home.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, format!("{text}\n[telemetry]\nmetrics_token = \"${{SCRAPE_TOKEN}}\"\n"))
        .unwrap();
    let mut command = home.command(&["serve", "--http", "127.0.0.1:0"]);
    command.env("SCRAPE_TOKEN", SCRAPE_TOKEN);
    let mut gateway = HttpGateway::spawn(&home, command);
    let operator = gateway.token.replace(SCRAPE_TOKEN.to_owned());
    for (token, status) in
        [(Some(SCRAPE_TOKEN), 200), (operator.as_deref(), 200), (Some("guessed"), 401), (None, 401)]
    {
        assert_eq!(gateway.get("/metrics", token).await.0, status, "{token:?}");
    }
    for path in ["/metrics/", "/api/v1/overview", "/api/v1/tools", "/v1/models", "/mcp"] {
        assert_eq!(gateway.get(path, Some(SCRAPE_TOKEN)).await.0, 401, "{path}");
    }
    let call = send(gateway.build_request("", "tools/list", &modern_params(json!({})))).await;
    assert_eq!(call.status, 401, "{call:?}");
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_rejected() {
    let home = home_with_server();
    let gateway = HttpGateway::start(&home, &["--no-auth", "--allow-origin", "https://good.example"]);
    let list = || gateway.build_request("", "tools/list", &modern_params(json!({})));
    assert_eq!(send(list()).await.status, 200);
    assert_eq!(send(list().header("Host", "evil.example")).await.status, 403);
    assert_eq!(send(list().header("Origin", "https://evil.example")).await.status, 403);
    assert_eq!(send(list().header("Origin", "https://good.example")).await.status, 200);
}

#[test]
fn no_auth_is_limited_to_loopback() {
    let home = home_with_server();
    insta::assert_snapshot!(home.run(&["serve", "--http", "0.0.0.0:0", "--no-auth"]).replace(|c: char| c.is_ascii_digit(), "N"), @r"
    --- stderr
    error: --no-auth is not allowed on N.N.N.N:NNNNN: other machines could reach it
      hint: omit it: a token is generated
    --- exit N
    ");
    insta::assert_snapshot!(home.run(&["serve", "--http", "nowhere"]), @r"
    --- stderr
    error: failed to listen on nowhere: invalid socket address
      hint: an address is HOST:PORT, such as 127.0.0.1:7300
    --- exit 2
    ");
}

#[tokio::test]
async fn a_literal_token_is_rejected() {
    let home = home_with_server();
    let settings = home.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, format!("{text}\n[serve]\ntoken = \"written-into-a-file\"\n")).unwrap();
    insta::assert_snapshot!(home.run(&["serve", "--http", "127.0.0.1:0"]), @r"
    --- stderr
    error: [serve] token must reference an environment variable, such as `${TOOLYARD_TOKEN}`: secrets do not belong in files
      hint: all settings: toolyard settings schema; check them: toolyard doctor
    --- exit 2
    ");
    std::fs::write(&settings, format!("{text}\n[serve]\ntoken = \"${{GATEWAY_TOKEN}}\"\n")).unwrap();
    insta::assert_snapshot!(home.run(&["serve", "--http", "127.0.0.1:0"]), @r"
    --- stderr
    error: [serve] token: the environment variable `GATEWAY_TOKEN` is not set
      hint: all settings: toolyard settings schema; check them: toolyard doctor
    --- exit 2
    ");
}

#[tokio::test]
async fn profiles_have_their_own_endpoints() {
    let home = home_with_server();
    let settings = home.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, text + "\n[serve.profiles.reading]\ntools = [\"greet\"]\nsurface = \"full\"\n")
        .unwrap();
    let gateway = HttpGateway::start(&home, &["--surface", "search"]);
    assert_eq!(tool_names(&gateway.send_request("", "tools/list", json!({})).await).len(), 3);
    assert_eq!(
        tool_names(&gateway.send_request("/reading", "tools/list", json!({})).await).len(),
        3,
        "--surface wins over the setting of a profile"
    );
    let call = json!({"name": "greet", "arguments": {"name": "Ada"}});
    assert_eq!(
        gateway.send_request("/reading", "tools/call", call).await["result"]["content"][0]["text"],
        "Hello, Ada!"
    );
    let refused =
        gateway.send_request("/reading", "tools/call", json!({"name": "calculate", "arguments": {}})).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(
        send(gateway.build_request("/other", "tools/list", &modern_params(json!({})))).await.status,
        404
    );
}

#[tokio::test]
async fn long_results_are_truncated_and_readable_in_full() {
    let home = home_with_server();
    let settings = home.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, text + "\n[serve]\noutput_budget = 1000\n").unwrap();
    let gateway = HttpGateway::start(&home, &[]);
    let call = json!({"name": "write_much", "arguments": {"words": 2_000}});
    let answer = gateway.send_request("", "tools/call", call).await;
    let content = answer["result"]["content"].as_array().unwrap();
    assert!(content[0]["text"].as_str().unwrap().len() <= 1000, "{answer}");
    assert!(content[1]["text"].as_str().unwrap().contains("of 10,000 characters"), "{answer}");
    assert_eq!(content[2]["type"], "resource_link");
    let resource = gateway.send_request("", "resources/read", json!({"uri": content[2]["uri"]})).await;
    assert_eq!(resource["result"]["contents"][0]["text"].as_str().unwrap().len(), 10_000);
    let read = json!({"name": "read_result", "arguments": {"reference": content[2]["uri"].as_str().unwrap().rsplit('/').next().unwrap()}});
    assert!(
        gateway.send_request("", "tools/call", read).await["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("word")
    );
}

#[test]
fn doctor_checks_serve() {
    let home = home_with_server();
    let settings = home.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    let serve = "\n[serve]\ntoken = \"${GATEWAY_TOKEN}\"\noutput_budget = 0\n\
        [serve.profiles.office]\nservers = [\"fake\", \"excel\"]\n\
        [serve.profiles.\"a/b\"]\ntools = [\"nothing\"]\n";
    std::fs::write(&settings, text + serve).unwrap();
    let output = home.run(&["doctor"]);
    let lines: Vec<&str> = output.lines().skip_while(|line| !line.contains(" serve ")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    PROBLEM  serve     [serve] token: the environment variable `GATEWAY_TOKEN` is not set
                       hint: `toolyard serve --http` fails until this is fixed
    PROBLEM  serve     [serve.profiles.a/b] the name of a profile may contain letters, digits, `-` and `_` only
                       hint: the name is part of a URL: /mcp/NAME
    note     serve     profile a/b offers no tools
    PROBLEM  serve     [serve.profiles.office] source `excel` does not exist
                       hint: list sources: toolyard tools list
    ok       serve     profile office offers 3 tools
    --- stderr
    error: found 3 problems
    --- exit 1
    ");
}

#[test]
fn a_port_in_use_is_reported() {
    let home = home_with_server();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let output = home.run(&["serve", "--http", &address]);
    assert!(
        output.contains("another process, perhaps another Toolyard, uses this port")
            && output.ends_with("--- exit 2"),
        "{output}"
    );
}
