//! Each case: the tool list, calls with effects, errors, a dropped call, and a server that is killed and restarted.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::time::{sleep, timeout};
use toolyard_core::{ErrorKind, RevisionFamily};
use toolyard_mcp::{
    JsonObject,
    versions::{LEGACY_REVISIONS, MODERN_REVISION},
};
use toolyard_mcp_client::RequestError;

use crate::{
    support::case::{ServerCase, ServerKind, Transport, case, case_with_family, conversion},
    support::installed::read_sheet,
    support::test_manager::{TEST_TIMEOUT, TestManager, call},
    support::test_server::TestServer,
};

/// How long a call to a paused server is observed.
const IN_FLIGHT_TIME: Duration = Duration::from_millis(300);

#[tokio::test]
async fn excel_0_1_8_over_stdio() {
    run_case(case(ServerKind::OldExcel, Transport::Stdio)).await;
}

#[tokio::test]
async fn excel_0_1_8_over_streamable_http() {
    run_case(case(ServerKind::OldExcel, Transport::Http)).await;
}

#[tokio::test]
async fn excel_0_1_8_over_sse() {
    run_case(case(ServerKind::OldExcel, Transport::Sse)).await;
}

#[tokio::test]
async fn excel_2_2_2_over_stdio_modern() {
    run_case(case(ServerKind::NewExcel, Transport::Stdio)).await;
}

#[tokio::test]
async fn excel_2_2_2_over_stdio_legacy() {
    run_case(case_with_family(ServerKind::NewExcel, Transport::Stdio, RevisionFamily::Legacy)).await;
}

#[tokio::test]
async fn excel_2_2_2_over_streamable_http_modern() {
    run_case(case(ServerKind::NewExcel, Transport::Http)).await;
}

#[tokio::test]
async fn excel_2_2_2_over_streamable_http_legacy() {
    run_case(case_with_family(ServerKind::NewExcel, Transport::Http, RevisionFamily::Legacy)).await;
}

#[tokio::test]
async fn everything_over_stdio() {
    run_case(case(ServerKind::Everything, Transport::Stdio)).await;
}

#[tokio::test]
async fn everything_over_streamable_http() {
    run_case(case(ServerKind::Everything, Transport::Http)).await;
}

#[tokio::test]
async fn everything_over_sse() {
    run_case(case(ServerKind::Everything, Transport::Sse)).await;
}

#[tokio::test]
async fn time_over_stdio_modern() {
    run_case(case(ServerKind::Time, Transport::Stdio)).await;
}

#[tokio::test]
async fn time_over_stdio_legacy() {
    run_case(case_with_family(ServerKind::Time, Transport::Stdio, RevisionFamily::Legacy)).await;
}

async fn run_case(case: ServerCase) {
    let mut test_server = TestServer::open(case).await;
    let manager = TestManager::new(test_server.config(), test_server.path()).await;
    assert_eq!(
        test_server.processes().len(),
        usize::from(case.transport != Transport::Stdio),
        "no server is started before it is needed"
    );
    list_is_complete(case, &manager).await;
    calls_have_their_effect(case, &test_server, &manager).await;
    errors_are_reported(case, &manager).await;
    a_dropped_call_does_not_disturb_others(case, &test_server, &manager).await;
    a_killed_server_is_restarted(case, &mut test_server, &manager).await;
    manager.manager.close().await;
    assert_eq!(
        test_server.processes().len(),
        usize::from(case.transport != Transport::Stdio),
        "no process is left"
    );
}

async fn list_is_complete(case: ServerCase, manager: &TestManager) {
    let session = manager.session().await;
    assert_eq!(session.revision_family(), case.family);
    let version = if case.family == RevisionFamily::Modern { MODERN_REVISION } else { LEGACY_REVISIONS[0] };
    assert_eq!(session.revision(), version);
    manager.wait_for_tools(case.tool_count()).await;
    let approvals = manager.server().tool_approvals();
    // One tool of server-everything can only be called as a task, and is not offered.
    let tool_count = case.tool_count() + usize::from(case.kind == ServerKind::Everything);
    assert_eq!(approvals.approved().len(), tool_count);
    assert_eq!((&approvals.quarantined, &approvals.rejected), (&Vec::new(), &Vec::new()));
    let listed = session.list_tools(TEST_TIMEOUT).await.unwrap();
    assert_eq!(listed.len(), tool_count);
}

async fn calls_have_their_effect(case: ServerCase, test_server: &TestServer, manager: &TestManager) {
    let rows = json!([["name", "number"], ["ä \"quoted\"", 1.5], ["large", 12_345_678_901_u64]]);
    let workbook = case.workbook(test_server.path());
    match case.kind {
        ServerKind::OldExcel => {
            manager.call("create_workbook", json!({"filepath": workbook})).await.unwrap();
            let data = json!({"filepath": workbook, "sheet_name": "Sheet1", "data": rows});
            manager.call("write_data_to_excel", data).await.unwrap();
            assert_eq!(read_sheet(&test_server.path().join("book.xlsx"), "Sheet1"), rows);
        }
        ServerKind::NewExcel => {
            manager.call("create_workbook", json!({"path": workbook, "sheets": ["Sheet1"]})).await.unwrap();
            let data = json!({"path": workbook, "sheet": "Sheet1", "at": "A1", "rows": rows});
            manager.call("write_range", data).await.unwrap();
            assert_eq!(read_sheet(&test_server.path().join("book.xlsx"), "Sheet1"), rows);
        }
        ServerKind::Everything => {
            let sum = manager.call("get-sum", json!({"a": 2, "b": 3.5})).await.unwrap();
            assert_eq!(sum.to_text(), "The sum of 2 and 3.5 is 5.5.");
            let echo = manager.call("echo", json!({"message": "ä \u{1f600} \u{7}"})).await.unwrap();
            assert_eq!(echo.to_text(), "Echo: ä \u{1f600} \u{7}");
        }
        ServerKind::Time => {
            let converted = manager.call("convert_time", conversion("UTC")).await.unwrap();
            let converted: serde_json::Value = serde_json::from_str(&converted.to_text()).unwrap();
            assert_eq!(converted["time_difference"], "+9.0h");
        }
        // Has no tools with effects.
        ServerKind::BothFamilies
        | ServerKind::BackChannel
        | ServerKind::NoBackChannel
        | ServerKind::FastMcp => {}
    }
    let (tool, arguments) = case.read_only_call(test_server.path());
    let read = manager.call(tool, arguments).await.unwrap();
    if matches!(case.kind, ServerKind::OldExcel | ServerKind::NewExcel) {
        assert!(read.to_text().contains("12345678901"), "{read:?}");
    }
    assert!(read.raw.is_some());
}

async fn errors_are_reported(case: ServerCase, manager: &TestManager) {
    let (tool, arguments, expected_text) = match case.kind {
        ServerKind::OldExcel => ("create_workbook", json!({"filepath": 7}), "Input should be a valid string"),
        ServerKind::NewExcel => ("read_range", json!({"path": "no-such.xlsx", "sheet": "x"}), "no-such.xlsx"),
        ServerKind::Everything => ("get-sum", json!({"a": "x"}), "expected number, received string at a"),
        ServerKind::Time => {
            ("convert_time", conversion("Mars/Olympus"), "No time zone found with key Mars/Olympus")
        }
        ServerKind::BothFamilies => ("fail", json!({}), "it does not work"),
        ServerKind::BackChannel | ServerKind::NoBackChannel | ServerKind::FastMcp => {
            ("wait", json!({}), "seconds")
        }
    };
    let error = manager.call(tool, arguments).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed, "{error:?}");
    assert!(error.message().contains(expected_text), "{error:?}");
    match (case.kind, manager.call_unregistered("no-such-tool", json!({})).await) {
        (ServerKind::Time, Err(RequestError::Rpc(error))) => {
            assert_eq!((error.code, error.message.as_str()), (-32602, "Unknown tool: no-such-tool"));
        }
        (ServerKind::Time, other) => panic!("{other:?}"),
        (_, result) => {
            let result = result.unwrap();
            assert!(result.is_error && result.raw.get().contains("no-such-tool"), "{result:?}");
        }
    }
    let unknown = manager.session().await.request("no/such/method", None, JsonObject::new(), None).await;
    let code = if case.kind == ServerKind::OldExcel { -32602 } else { -32601 };
    assert!(matches!(&unknown, Err(RequestError::Rpc(error)) if error.code == code), "{unknown:?}");
}

async fn a_dropped_call_does_not_disturb_others(
    case: ServerCase,
    test_server: &TestServer,
    manager: &TestManager,
) {
    let session = manager.session().await;
    let (tool, arguments) = case.read_only_call(test_server.path());
    test_server.pause();
    let dropped = timeout(IN_FLIGHT_TIME, manager.call(tool, arguments.clone())).await;
    assert!(dropped.is_err(), "the server was paused: {dropped:?}");
    test_server.unpause();
    if case.kind == ServerKind::OldExcel {
        // Its SDK ends the session if a cancellation arrives together with the response.
        return call_until_success(
            manager,
            tool,
            &arguments,
            &[ErrorKind::ResponseLost, ErrorKind::Unavailable],
        )
        .await;
    }
    for _ in 0..3 {
        manager.call(tool, arguments.clone()).await.unwrap();
    }
    assert!(Arc::ptr_eq(&session, &manager.session().await), "the connection is the same");
    manager.wait_until_idle().await;
}

async fn a_killed_server_is_restarted(case: ServerCase, test_server: &mut TestServer, manager: &TestManager) {
    let (tool, arguments) = case.read_only_call(test_server.path());
    let before = manager.session().await;
    test_server.pause();
    let in_flight_call = tokio::spawn(call(manager.tool(tool), arguments.clone()));
    sleep(IN_FLIGHT_TIME).await;
    assert!(!in_flight_call.is_finished());
    test_server.kill();
    let error = timeout(Duration::from_secs(5), in_flight_call)
        .await
        .expect("an immediate error")
        .unwrap()
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ResponseLost, "{error:?}");
    test_server.start().await;
    if case.transport == Transport::Http {
        // No connection stays open that would reveal that the server is gone.
        call_until_success(manager, tool, &arguments, &[ErrorKind::Unavailable]).await;
    } else {
        manager.wait_until_ready().await;
    }
    manager.wait_for_tools(case.tool_count()).await;
    manager.call(tool, arguments).await.unwrap();
    let after = manager.session().await;
    assert_eq!(after.revision_family(), case.family);
    if case.family == RevisionFamily::Legacy || case.transport == Transport::Stdio {
        assert!(!Arc::ptr_eq(&before, &after), "a session does not outlive its server");
    }
}

/// Repeats a call until it succeeds; until then it fails with one of these errors.
async fn call_until_success(
    manager: &TestManager,
    tool: &str,
    arguments: &serde_json::Value,
    expected: &[ErrorKind],
) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while let Err(error) = manager.call(tool, arguments.clone()).await {
        assert!(expected.contains(&error.kind()), "{error:?}");
        assert!(Instant::now() < deadline, "{error:?}");
        sleep(Duration::from_millis(100)).await;
    }
}
