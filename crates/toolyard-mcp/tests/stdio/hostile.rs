//! Servers that do everything wrong: each costs a typed error, never a hang, and never its neighbours anything.

use std::time::{Duration, Instant};

use tokio::time::timeout;
use toolyard_mcp::{
    client::{Transport, TransportError},
    wire::{WireError, WireLimits},
};

use crate::yard::{ECHO, Link, SOON, Yard, link, link_within, request};

/// What a call fails with; afterwards nothing of the connection may be left.
async fn error_of(link: &Link) -> TransportError {
    let error = link.ask("{}").await.unwrap_err();
    timeout(SOON, link.transport.close()).await.expect("an end in time");
    assert!(format!("{:?}", link.transport).contains("gone: true"));
    error
}

#[tokio::test]
async fn exit_at_start() {
    let yard = Yard::new();
    let link = link(yard.shell("exit 0")).await;
    let error = error_of(&link).await;
    assert!(matches!(&error, TransportError::Ended { status, .. } if status == "exit code 0"), "{error:?}");
}

#[tokio::test]
async fn half_a_line_then_exit() {
    let yard = Yard::new();
    let link = link(yard.shell(r#"read line; printf '{"jsonrpc":"2.0","id":1,"resu'; exit 4"#)).await;
    let error = error_of(&link).await;
    assert!(matches!(&error, TransportError::Ended { status, .. } if status == "exit code 4"), "{error:?}");
}

#[tokio::test]
async fn an_answer_just_before_the_end_is_taken() {
    let yard = Yard::new();
    for round in 0..40 {
        let mut launch = yard.shell(r#"read line; echo '{"jsonrpc":"2.0","id":1,"result":{}}'; exit 1"#);
        launch.guard = launch.guard.filter(|_| round % 2 == 0);
        let link = link(launch).await;
        assert_eq!(link.ask("{}").await, Ok("{}".to_owned()));
        assert!(matches!(error_of(&link).await, TransportError::Ended { .. }));
    }
}

#[tokio::test]
async fn output_closed_but_alive() {
    let yard = Yard::new();
    let link = link(yard.shell("exec 1>&-; sleep 300")).await;
    let error = error_of(&link).await;
    assert!(matches!(error, TransportError::Broken(_)), "{error:?}");
    yard.until_processes(|count| count == 0, Duration::from_secs(2)).await;
}

#[tokio::test]
async fn input_closed_but_alive() {
    let yard = Yard::new();
    let mut launch = yard.shell("exec 0<&-; echo closed; sleep 300");
    launch.guard = None;
    let link = link(launch).await;
    let start = Instant::now();
    while !link.transport.last_words().unwrap().contains("closed") && start.elapsed() < SOON {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let error = error_of(&link).await;
    assert!(matches!(error, TransportError::Broken(_)), "{error:?}");
    assert_eq!(yard.processes().len(), 0);
}

#[tokio::test]
async fn an_answer_without_a_line_end_is_taken() {
    let yard = Yard::new();
    let link = link(yard.shell(r#"read line; printf '{"jsonrpc":"2.0","id":1,"result":{}}'; exit 1"#)).await;
    assert_eq!(link.ask("{}").await, Ok("{}".to_owned()));
}

#[tokio::test]
async fn garbage_on_stdout_is_noted_and_passed_over() {
    let yard = Yard::new();
    let noise = "for number in range(500):\n    print('loading', number)\n    print('{broken', number)\n";
    let link = link(yard.python(&format!("{noise}{ECHO}"))).await;
    assert_eq!(link.ask("{}").await, Ok("{}".to_owned()));
    assert!(link.transport.last_words().unwrap().contains("stdout: loading 499"));
    link.transport.close().await;
}

#[tokio::test]
async fn endless_broken_messages_end_the_connection() {
    let yard = Yard::new();
    let link = link(yard.python("while True:\n    print('{broken')\n")).await;
    let error = error_of(&link).await;
    assert!(matches!(error, TransportError::Wire(WireError::NotJson(_))), "{error:?}");
    yard.until_processes(|count| count == 0, Duration::from_secs(2)).await;
}

#[tokio::test]
async fn a_line_without_end_ends_the_connection_at_once() {
    let yard = Yard::new();
    let endless =
        "import sys\nsys.stdout.write('{\"jsonrpc\": \"')\nwhile True:\n    sys.stdout.write('x' * 65536)\n";
    let limits = WireLimits { message_bytes: 1 << 20, ..WireLimits::default() };
    let link = link_within(yard.python(endless), limits).await;
    let error = error_of(&link).await;
    assert!(matches!(error, TransportError::Wire(WireError::TooLong { .. })), "{error:?}");
    yard.until_processes(|count| count == 0, Duration::from_secs(2)).await;
}

#[tokio::test]
async fn a_flood_on_stderr_holds_nobody_up() {
    let yard = Yard::new();
    let flood = "import sys, threading\ndef flood():\n    while True:\n        sys.stderr.write('flood ' * 1000 + '\\n')\n\
                 threading.Thread(target=flood, daemon=True).start()\n";
    let link = link(yard.python(&format!("{flood}{ECHO}"))).await;
    for _ in 0..20 {
        assert_eq!(timeout(SOON, link.ask("{}")).await.expect("in time"), Ok("{}".to_owned()));
    }
    assert!(link.transport.last_words().unwrap().len() <= 16 << 10);
    link.transport.close().await;
    assert_eq!(yard.processes().len(), 0);
}

#[tokio::test]
async fn a_server_that_does_not_read_holds_only_its_own_callers_up() {
    let (deaf_yard, yard) = (Yard::new(), Yard::new());
    let (deaf, healthy) = (link(deaf_yard.shell("sleep 300")).await, link(yard.python(ECHO)).await);
    let params = format!("\"{}\"", "x".repeat(100 << 10));
    let mut sent = 0;
    // Pipe and queue are full at some time; then a send waits until whoever sends gives up.
    while let Ok(result) =
        timeout(Duration::from_millis(300), deaf.transport.send(request(sent, &params))).await
    {
        result.unwrap();
        sent += 1;
        assert!(sent < 20, "the queue is bounded");
    }
    assert!(sent >= 9, "the queue has room: {sent}");
    let start = Instant::now();
    assert_eq!(healthy.ask("{}").await, Ok("{}".to_owned()));
    assert!(start.elapsed() < Duration::from_secs(1));
    let waiting = deaf.transport.send(request(99, &params));
    let (waited, ()) = tokio::join!(waiting, deaf.transport.close());
    assert_eq!(waited, Err(TransportError::Closed), "who waits for room hears of the end");
    assert_eq!(deaf_yard.processes().len(), 0);
    healthy.transport.close().await;
}

#[tokio::test]
async fn a_message_larger_than_the_queue_gets_through() {
    let yard = Yard::new();
    let link = link(yard.python(ECHO)).await;
    let params = format!("\"{}\"", "x".repeat(3 << 20));
    assert_eq!(link.ask(&params).await, Ok(params));
    link.transport.close().await;
}

/// A server may send its own group a signal; that is no reason for its guardian to leave something behind.
#[tokio::test]
async fn a_server_that_kills_its_own_group() {
    let yard = Yard::new();
    let link =
        link(yard.shell("trap '' TERM; sleep 300 & setsid sleep 301 & sleep 0.3; kill 0; sleep 302")).await;
    assert!(matches!(error_of(&link).await, TransportError::Ended { .. }));
    yard.until_processes(|count| count == 0, Duration::from_secs(2)).await;
}
