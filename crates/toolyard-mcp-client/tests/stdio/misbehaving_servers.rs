//! Misbehaving servers: each causes a typed error, never a hang, and never affects other servers.

use std::time::{Duration, Instant};

use tokio::time::timeout;
use toolyard_mcp::{WireError, WireLimits};
use toolyard_mcp_client::{Transport, TransportError};

use crate::test_directory::{
    ECHO_SERVER, TEST_TIMEOUT, TestConnection, TestDirectory, open, open_with_limits, request,
};

/// The error of a request, after which nothing of the connection may be left.
async fn error_of(connection: &TestConnection) -> TransportError {
    let error = connection.request("{}").await.unwrap_err();
    timeout(TEST_TIMEOUT, connection.transport.close()).await.expect("closed in time");
    assert!(format!("{:?}", connection.transport).contains("ended: true"));
    error
}

#[tokio::test]
async fn an_exit_at_start_is_reported() {
    let directory = TestDirectory::new();
    let connection = open(directory.shell("exit 0")).await;
    let error = error_of(&connection).await;
    assert!(matches!(&error, TransportError::Exited { status, .. } if status == "exit code 0"), "{error:?}");
}

#[tokio::test]
async fn an_exit_after_half_a_line_is_reported() {
    let directory = TestDirectory::new();
    let connection =
        open(directory.shell(r#"read line; printf '{"jsonrpc":"2.0","id":1,"resu'; exit 4"#)).await;
    let error = error_of(&connection).await;
    assert!(matches!(&error, TransportError::Exited { status, .. } if status == "exit code 4"), "{error:?}");
}

#[tokio::test]
async fn a_response_just_before_the_exit_is_read() {
    let directory = TestDirectory::new();
    for round in 0..40 {
        let mut launch = directory.shell(r#"read line; echo '{"jsonrpc":"2.0","id":1,"result":{}}'; exit 1"#);
        launch.guard = launch.guard.filter(|_| round % 2 == 0);
        let connection = open(launch).await;
        assert_eq!(connection.request("{}").await, Ok("{}".to_owned()));
        assert!(matches!(error_of(&connection).await, TransportError::Exited { .. }));
    }
}

#[tokio::test]
async fn a_server_that_closes_its_output_and_runs_on_is_ended() {
    let directory = TestDirectory::new();
    let connection = open(directory.shell("exec 1>&-; sleep 300")).await;
    let error = error_of(&connection).await;
    assert!(matches!(error, TransportError::ConnectionLost(_)), "{error:?}");
    directory.until_processes(|count| count == 0, Duration::from_secs(2)).await;
}

#[tokio::test]
async fn a_server_that_closes_its_input_and_runs_on_is_ended() {
    let directory = TestDirectory::new();
    let mut launch = directory.shell("exec 0<&-; echo closed; sleep 300");
    launch.guard = None;
    let connection = open(launch).await;
    let start = Instant::now();
    while !connection.transport.stderr_tail().unwrap().contains("closed") && start.elapsed() < TEST_TIMEOUT {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let error = error_of(&connection).await;
    assert!(matches!(error, TransportError::ConnectionLost(_)), "{error:?}");
    assert_eq!(directory.processes().len(), 0);
}

#[tokio::test]
async fn a_response_without_a_line_end_is_read() {
    let directory = TestDirectory::new();
    let connection =
        open(directory.shell(r#"read line; printf '{"jsonrpc":"2.0","id":1,"result":{}}'; exit 1"#)).await;
    assert_eq!(connection.request("{}").await, Ok("{}".to_owned()));
}

#[tokio::test]
async fn garbage_on_stdout_is_logged_and_skipped() {
    let directory = TestDirectory::new();
    let noise = "for number in range(500):\n    print('loading', number)\n    print('{broken', number)\n";
    let connection = open(directory.python(&format!("{noise}{ECHO_SERVER}"))).await;
    assert_eq!(connection.request("{}").await, Ok("{}".to_owned()));
    assert!(connection.transport.stderr_tail().unwrap().contains("stdout: loading 499"));
    connection.transport.close().await;
}

#[tokio::test]
async fn endless_invalid_messages_close_the_connection() {
    let directory = TestDirectory::new();
    let connection = open(directory.python("while True:\n    print('{broken')\n")).await;
    let error = error_of(&connection).await;
    assert!(matches!(error, TransportError::Wire(WireError::NotJson(_))), "{error:?}");
    directory.until_processes(|count| count == 0, Duration::from_secs(2)).await;
}

#[tokio::test]
async fn an_endless_line_closes_the_connection() {
    let directory = TestDirectory::new();
    let endless =
        "import sys\nsys.stdout.write('{\"jsonrpc\": \"')\nwhile True:\n    sys.stdout.write('x' * 65536)\n";
    let limits = WireLimits { message_bytes: 1 << 20, ..WireLimits::default() };
    let connection = open_with_limits(directory.python(endless), limits).await;
    let error = error_of(&connection).await;
    assert!(matches!(error, TransportError::Wire(WireError::TooLong { .. })), "{error:?}");
    directory.until_processes(|count| count == 0, Duration::from_secs(2)).await;
}

#[tokio::test]
async fn a_flood_on_stderr_blocks_nothing() {
    let directory = TestDirectory::new();
    let flood = "import sys, threading\ndef flood():\n    while True:\n        sys.stderr.write('flood ' * 1000 + '\\n')\n\
                 threading.Thread(target=flood, daemon=True).start()\n";
    let connection = open(directory.python(&format!("{flood}{ECHO_SERVER}"))).await;
    for _ in 0..20 {
        assert_eq!(
            timeout(TEST_TIMEOUT, connection.request("{}")).await.expect("in time"),
            Ok("{}".to_owned())
        );
    }
    assert!(connection.transport.stderr_tail().unwrap().len() <= 16 << 10);
    connection.transport.close().await;
    assert_eq!(directory.processes().len(), 0);
}

#[tokio::test]
async fn a_server_that_does_not_read_blocks_only_its_own_callers() {
    let (unread_directory, directory) = (TestDirectory::new(), TestDirectory::new());
    let (unread, healthy) =
        (open(unread_directory.shell("sleep 300")).await, open(directory.python(ECHO_SERVER)).await);
    let params = format!("\"{}\"", "x".repeat(100 << 10));
    let mut sent = 0;
    // Once pipe and queue are full, sending waits until the caller gives up.
    while let Ok(result) =
        timeout(Duration::from_millis(300), unread.transport.send(request(sent, &params))).await
    {
        result.unwrap();
        sent += 1;
        assert!(sent < 20, "the queue is bounded");
    }
    assert!(sent >= 9, "the queue has room: {sent}");
    let start = Instant::now();
    assert_eq!(healthy.request("{}").await, Ok("{}".to_owned()));
    assert!(start.elapsed() < Duration::from_secs(1));
    let sending = unread.transport.send(request(99, &params));
    let (outcome, ()) = tokio::join!(sending, unread.transport.close());
    assert_eq!(outcome, Err(TransportError::Closed), "waiting senders fail when the connection is closed");
    assert_eq!(unread_directory.processes().len(), 0);
    healthy.transport.close().await;
}

#[tokio::test]
async fn a_message_larger_than_the_queue_is_sent() {
    let directory = TestDirectory::new();
    let connection = open(directory.python(ECHO_SERVER)).await;
    let params = format!("\"{}\"", "x".repeat(3 << 20));
    assert_eq!(connection.request(&params).await, Ok(params));
    connection.transport.close().await;
}

/// A signal to the process group also reaches the guard, which must not leave anything behind.
#[tokio::test]
async fn nothing_is_left_of_a_server_that_kills_its_process_group() {
    let directory = TestDirectory::new();
    let connection =
        open(directory.shell("trap '' TERM; sleep 300 & setsid sleep 301 & sleep 0.3; kill 0; sleep 302"))
            .await;
    assert!(matches!(error_of(&connection).await, TransportError::Exited { .. }));
    directory.until_processes(|count| count == 0, Duration::from_secs(2)).await;
}
