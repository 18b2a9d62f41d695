//! Talking with a server over its standard input and output.

use std::{
    collections::BTreeMap,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::timeout;
use toolyard_mcp::{
    client::{Exchange, Heard, Transport, TransportError, environment::allowed, stdio::connect},
    wire::WireLimits,
};

use crate::yard::{ECHO, SOON, Yard, link, request};

#[tokio::test]
async fn requests_get_their_answers() {
    let yard = Yard::new();
    let link = link(yard.python(ECHO)).await;
    let asked = (0..100).map(|number| {
        let link = &link;
        async move { (number, link.ask(&format!("{{\"number\":\n{number}}}")).await.unwrap()) }
    });
    for (number, answer) in futures_util::future::join_all(asked).await {
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["number"], number);
    }
    assert!(!link.transport.forget(1));
    link.transport.close().await;
    assert_eq!(link.ask("{}").await, Err(TransportError::Closed));
    let sent = link.transport.send(request(7, "{}")).await;
    assert_eq!(sent, Err(TransportError::Closed));
}

#[tokio::test]
async fn only_the_allowed_environment_is_seen() {
    let yard = Yard::new();
    let files = "','.join(sorted(os.listdir('/proc/self/fd')))";
    let params = format!("dict(os.environ, files={files})");
    let mut launch = yard.python(&format!(
        "import json, os\nprint(json.dumps({{'jsonrpc': '2.0', 'method': 'seen', 'params': {params}}}), flush=True)\ninput()"
    ));
    // Cargo puts variables of its own into the environment of tests: they are the canary.
    assert!(std::env::var("CARGO_PKG_NAME").is_ok());
    let extra = BTreeMap::from([("MODE".to_owned(), "fast".to_owned())]);
    launch.environment = allowed(std::env::vars(), &[], &extra);
    let mut link = link(launch).await;
    let Some(Heard::Notification { params: Some(params), .. }) =
        timeout(SOON, link.heard.recv()).await.expect("in time")
    else {
        panic!("nothing")
    };
    let seen: BTreeMap<String, String> = params.read().unwrap();
    assert_eq!(seen.get("MODE").map(String::as_str), Some("fast"));
    // Whoever started this test may have left files open in it, for everyone.
    let any_child =
        Command::new("python3").args(["-c", &format!("import os; print({files})")]).output().unwrap();
    assert_eq!(
        seen.get("files").map(String::as_str),
        String::from_utf8(any_child.stdout).ok().as_deref().map(str::trim)
    );
    assert!(!seen.keys().any(|name| name.starts_with("CARGO")), "{seen:?}");
    link.transport.close().await;
}

#[tokio::test]
async fn last_words_are_heard() {
    let yard = Yard::new();
    let link =
        link(yard.shell("echo 'token=abcdef123456' >&2; printf 'it \\033[31mbroke' >&2; exit 3")).await;
    let error = link.ask("{}").await.unwrap_err();
    let TransportError::Ended { status, last_words } = error else { panic!("{error:?}") };
    assert_eq!(status, "exit code 3");
    assert_eq!(last_words, "token=[redacted:assignment]\nit broke");
    assert_eq!(link.transport.last_words(), Some(last_words));
}

#[tokio::test]
async fn what_cannot_be_started_is_named() {
    let yard = Yard::new();
    std::fs::write(yard.path("readme"), "text").unwrap();
    for (command, words) in [
        ("no-such-command", "`no-such-command` was not found in PATH ("),
        ("./readme", "is not executable"),
        ("/no/such/file", "`/no/such/file` does not exist"),
    ] {
        for guarded in [true, false] {
            let mut launch = yard.launch(command, Vec::new());
            launch.guard = launch.guard.filter(|_| guarded);
            let (exchange, _heard) = Exchange::new(1);
            let error = connect(launch, Arc::new(exchange), WireLimits::default()).await.unwrap_err();
            assert!(matches!(&error, TransportError::Unreachable(why) if why.contains(words)), "{error:?}");
            assert!(error.had_no_effect());
        }
    }
}

/// What a guardian costs from the start to the first answer, side by side.
#[tokio::test]
async fn the_price_of_a_guardian() {
    let yard = Yard::new();
    let mut took = [Vec::new(), Vec::new()];
    let answering = r#"read line; echo '{"jsonrpc":"2.0","id":1,"result":{}}'; read line"#;
    for _ in 0..100 {
        for (guarded, times) in took.iter_mut().enumerate() {
            let mut launch = yard.shell(answering);
            launch.guard = launch.guard.filter(|_| guarded == 1);
            let start = Instant::now();
            let link = link(launch).await;
            link.ask("{}").await.unwrap();
            times.push(start.elapsed());
            link.transport.close().await;
        }
    }
    for (times, kind) in took.iter_mut().zip(["without", "with"]) {
        times.sort_unstable();
        println!("{kind} a guardian: {:?} at best, {:?} in the middle", times[0], times[times.len() / 2]);
    }
    assert!(took[1][0] < took[0][0] + Duration::from_millis(100), "it is no burden");
}
