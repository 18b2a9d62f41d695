//! The log of a gateway: failed logins and upstream failures are visible, counted, and without secrets.

use serde_json::{Value, json};

use crate::{
    client::{HttpGateway, modern_params, send},
    home_with_server,
};

#[tokio::test]
async fn failed_logins_are_logged_once_counted_and_without_the_token() {
    let home = home_with_server();
    let mut gateway = HttpGateway::start(&home, &[]);
    let right = gateway.token.replace("not-the-token-but-somebody-elses".to_owned());
    for _ in 0..30 {
        let answer = send(gateway.build_request("", "tools/list", &modern_params(json!({})))).await;
        assert_eq!(answer.status, 401);
    }
    gateway.token = None;
    send(gateway.build_request("", "tools/list", &modern_params(json!({})))).await;
    let stderr = gateway.stop().await;
    let lines: Vec<&str> = stderr.lines().filter(|line| line.contains("access denied")).collect();
    let [first, missing, counted] = lines.as_slice() else { panic!("{stderr}") };
    assert!(
        first.contains(" WARN ")
            && first.ends_with("access denied: invalid bearer token: unknown token client=127.0.0.1"),
        "{first}"
    );
    assert!(missing.contains("missing bearer token"), "{missing}");
    assert!(
        counted.contains("invalid bearer token") && counted.contains("(repeated 29 times in the last "),
        "{counted}"
    );
    assert!(!stderr.contains("somebody-elses") && !stderr.contains(&right.unwrap()), "{stderr}");
}

#[tokio::test]
async fn failed_calls_are_logged_with_their_source_and_tool_errors_are_not() {
    let home = home_with_server();
    let gateway = HttpGateway::start(&home, &[]);
    let call = |name: &str| json!({"name": "greet", "arguments": {"name": name}});
    gateway.send_request("", "tools/call", call("nobody")).await;
    assert!(!gateway.stderr().contains("call failed"), "{}", gateway.stderr());
    home.write("server.py", "import sys\nsys.exit('out of memory')\n");
    let pid = home.started_pids("fake").pop().unwrap();
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    for _ in 0..20 {
        let answer = gateway.send_request("", "tools/call", call("Ada")).await;
        if answer["result"]["isError"] == true {
            break;
        }
    }
    let stderr = gateway.stop().await;
    let failed: Vec<&str> = stderr.lines().filter(|line| line.contains("call failed")).collect();
    assert!(!failed.is_empty() && failed[0].contains("source=fake tool=greet error="), "{stderr}");
    // Unless the caller is identified, the name is only the claim of the client.
    for field in [" client=", " call=", " duration_ms="] {
        assert!(failed[0].contains(field), "{field}: {stderr}");
    }
    assert!(!failed[0].contains(" caller="), "{stderr}");
    assert!(stderr.contains("fake: down: "), "{stderr}");
}

#[tokio::test]
async fn with_json_every_line_on_stderr_is_an_object_with_time_and_level() {
    let home = home_with_server();
    let mut gateway = HttpGateway::start(&home, &["--log-format", "json"]);
    gateway.send_request("", "tools/call", json!({"name": "greet", "arguments": {"name": "Ada"}})).await;
    gateway.token = None;
    send(gateway.build_request("", "tools/list", &modern_params(json!({})))).await;
    let stderr = gateway.stop().await;
    let mut levels = Vec::new();
    for line in stderr.lines() {
        let entry: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let time = entry["time"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z'), "{line}");
        assert!(entry["message"].as_str().is_some_and(|message| !message.is_empty()), "{line}");
        levels.push(entry["level"].as_str().unwrap().to_owned());
        if levels.last().unwrap() == "warn" {
            assert_eq!(entry["fields"]["client"], "127.0.0.1", "{line}");
        }
    }
    assert!(levels.contains(&"info".to_owned()) && levels.contains(&"warn".to_owned()), "{stderr}");
    let failed = home.command(&["--log-format", "json", "serve", "--http", "nowhere"]).output().unwrap();
    let failed: Value = serde_json::from_slice(&failed.stderr).unwrap();
    assert_eq!(failed["level"], "error");
    assert!(failed["fields"]["hint"].as_str().unwrap().contains("HOST:PORT"), "{failed}");
}
