//! Exchanging messages with a server over its standard input and output.

use std::{
    collections::BTreeMap,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::timeout;
use toolyard_mcp::WireLimits;
use toolyard_mcp_client::{
    PendingRequests, ServerMessage, StdioTransport, Transport, TransportError, server_environment,
};

use crate::test_directory::{ECHO_SERVER, TEST_TIMEOUT, TestDirectory, open, request};

#[tokio::test]
async fn requests_get_their_responses() {
    let directory = TestDirectory::new();
    let connection = open(directory.python(ECHO_SERVER)).await;
    let requests = (0..100).map(|number| {
        let connection = &connection;
        async move { (number, connection.request(&format!("{{\"number\":\n{number}}}")).await.unwrap()) }
    });
    for (number, response) in futures_util::future::join_all(requests).await {
        let response: serde_json::Value = serde_json::from_str(&response).unwrap();
        assert_eq!(response["number"], number);
    }
    assert!(!connection.transport.cancels_on_drop());
    connection.transport.close().await;
    assert_eq!(connection.request("{}").await, Err(TransportError::Closed));
    let sent = connection.transport.send(request(7, "{}")).await;
    assert_eq!(sent, Err(TransportError::Closed));
}

#[tokio::test]
async fn a_server_gets_only_its_environment() {
    let directory = TestDirectory::new();
    let files = "','.join(sorted(os.listdir('/proc/self/fd')))";
    let params = format!("dict(os.environ, files={files})");
    let mut launch = directory.python(&format!(
        "import json, os\nprint(json.dumps({{'jsonrpc': '2.0', 'method': 'seen', 'params': {params}}}), flush=True)\ninput()"
    ));
    // The variables that Cargo sets for tests must not be inherited.
    assert!(std::env::var("CARGO_PKG_NAME").is_ok());
    let extra = BTreeMap::from([("MODE".to_owned(), "fast".to_owned())]);
    launch.environment = server_environment(std::env::vars(), &[], &extra);
    let mut connection = open(launch).await;
    let Some(ServerMessage::Notification { params: Some(params), .. }) =
        timeout(TEST_TIMEOUT, connection.messages.recv()).await.expect("in time")
    else {
        panic!("nothing")
    };
    let environment: BTreeMap<String, String> = params.read().unwrap();
    assert_eq!(environment.get("MODE").map(String::as_str), Some("fast"));
    // Every child of this process has the same files open.
    let any_child =
        Command::new("python3").args(["-c", &format!("import os; print({files})")]).output().unwrap();
    assert_eq!(
        environment.get("files").map(String::as_str),
        String::from_utf8(any_child.stdout).ok().as_deref().map(str::trim)
    );
    assert!(!environment.keys().any(|name| name.starts_with("CARGO")), "{environment:?}");
    connection.transport.close().await;
}

#[tokio::test]
async fn the_end_of_stderr_is_reported() {
    let directory = TestDirectory::new();
    let connection =
        open(directory.shell("echo 'token=abcdef123456' >&2; printf 'it \\033[31mbroke' >&2; exit 3")).await;
    let error = connection.request("{}").await.unwrap_err();
    let TransportError::Exited { status, stderr } = error else { panic!("{error:?}") };
    assert_eq!(status, "exit code 3");
    assert_eq!(stderr, "token=[redacted:assignment]\nit broke");
    assert_eq!(connection.transport.stderr_tail(), Some(stderr));
}

#[tokio::test]
async fn errors_name_what_cannot_be_started() {
    let directory = TestDirectory::new();
    std::fs::write(directory.path("readme"), "text").unwrap();
    for (command, expected) in [
        ("no-such-command", "`no-such-command` was not found in PATH ("),
        ("./readme", "is not executable"),
        ("/no/such/file", "`/no/such/file` does not exist"),
    ] {
        for guarded in [true, false] {
            let mut launch = directory.launch(command, Vec::new());
            launch.guard = launch.guard.filter(|_| guarded);
            let (requests, _messages) = PendingRequests::new(1);
            let connected = StdioTransport::connect(launch, Arc::new(requests), WireLimits::default()).await;
            let error = connected.unwrap_err();
            assert!(
                matches!(&error, TransportError::Unreachable(reason) if reason.contains(expected)),
                "{error:?}"
            );
            assert!(error.had_no_effect());
        }
    }
}

/// The time from start to first response, with and without a guard.
#[tokio::test]
async fn a_guard_adds_little_to_the_start() {
    let directory = TestDirectory::new();
    let mut start_times = [Vec::new(), Vec::new()];
    let script = r#"read line; echo '{"jsonrpc":"2.0","id":1,"result":{}}'; read line"#;
    for _ in 0..100 {
        for (guarded, times) in start_times.iter_mut().enumerate() {
            let mut launch = directory.shell(script);
            launch.guard = launch.guard.filter(|_| guarded == 1);
            let start = Instant::now();
            let connection = open(launch).await;
            connection.request("{}").await.unwrap();
            times.push(start.elapsed());
            connection.transport.close().await;
        }
    }
    for (times, kind) in start_times.iter_mut().zip(["without", "with"]) {
        times.sort_unstable();
        println!("{kind} a guard: {:?} at best, {:?} in the middle", times[0], times[times.len() / 2]);
    }
    assert!(
        start_times[1][0] < start_times[0][0] + Duration::from_millis(100),
        "a guard costs less than 100 ms"
    );
}
