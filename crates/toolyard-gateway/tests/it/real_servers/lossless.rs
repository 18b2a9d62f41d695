//! Definitions and results of servers reach the caller byte for byte, compared with the recordings of a proxy in between.

use std::fs;

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use toolyard_core::{RawJson, RevisionFamily};

use crate::{
    support::case::{ServerCase, ServerKind, Transport, case, case_with_family, conversion},
    support::test_manager::{TEST_TIMEOUT, TestManager},
    support::test_server::{JsonStyle, TestServer},
};

#[tokio::test]
async fn excel_0_1_8_over_stdio() {
    compare(case(ServerKind::OldExcel, Transport::Stdio)).await;
}

#[tokio::test]
async fn excel_0_1_8_over_streamable_http() {
    compare(case(ServerKind::OldExcel, Transport::Http)).await;
}

#[tokio::test]
async fn excel_0_1_8_over_sse() {
    compare(case(ServerKind::OldExcel, Transport::Sse)).await;
}

#[tokio::test]
async fn excel_2_2_2_over_stdio_modern() {
    compare(case(ServerKind::NewExcel, Transport::Stdio)).await;
}

#[tokio::test]
async fn excel_2_2_2_over_stdio_legacy() {
    compare(case_with_family(ServerKind::NewExcel, Transport::Stdio, RevisionFamily::Legacy)).await;
}

#[tokio::test]
async fn excel_2_2_2_over_streamable_http_modern() {
    compare(case(ServerKind::NewExcel, Transport::Http)).await;
}

#[tokio::test]
async fn excel_2_2_2_over_streamable_http_legacy() {
    compare(case_with_family(ServerKind::NewExcel, Transport::Http, RevisionFamily::Legacy)).await;
}

#[tokio::test]
async fn everything_over_stdio() {
    compare(case(ServerKind::Everything, Transport::Stdio)).await;
}

#[tokio::test]
async fn everything_over_streamable_http() {
    compare(case(ServerKind::Everything, Transport::Http)).await;
}

#[tokio::test]
async fn everything_over_sse() {
    compare(case(ServerKind::Everything, Transport::Sse)).await;
}

#[tokio::test]
async fn time_over_stdio_modern() {
    compare(case(ServerKind::Time, Transport::Stdio)).await;
}

#[tokio::test]
async fn time_over_stdio_legacy() {
    compare(case_with_family(ServerKind::Time, Transport::Stdio, RevisionFamily::Legacy)).await;
}

/// JSON that changes when it is parsed and serialized.
const UNUSUAL_JSON: &str =
    r#"{ "x\u002dunknown" : [ 1.50, 1E+2, -0.0, 123456789012345678901234567890, "\/\u00e4" ] , "#;

/// A recorded message, parsed by an independent library.
#[derive(Deserialize)]
struct RecordedMessage {
    result: Option<Box<RawValue>>,
}

/// A recorded list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordedList {
    tools: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

#[tokio::test]
async fn unusual_json_over_stdio_modern() {
    compare_with_style(case(ServerKind::Time, Transport::Stdio), JsonStyle::Unusual).await;
}

#[tokio::test]
async fn unusual_json_over_stdio_legacy() {
    compare_with_style(case(ServerKind::Everything, Transport::Stdio), JsonStyle::Unusual).await;
}

#[tokio::test]
async fn unusual_json_over_streamable_http_modern() {
    compare_with_style(case(ServerKind::NewExcel, Transport::Http), JsonStyle::Unusual).await;
}

#[tokio::test]
async fn unusual_json_over_streamable_http_legacy() {
    compare_with_style(case(ServerKind::Everything, Transport::Http), JsonStyle::Unusual).await;
}

#[tokio::test]
async fn unusual_json_over_sse() {
    compare_with_style(case(ServerKind::Everything, Transport::Sse), JsonStyle::Unusual).await;
}

async fn compare(case: ServerCase) {
    compare_with_style(case, JsonStyle::AsSent).await;
}

async fn compare_with_style(case: ServerCase, style: JsonStyle) {
    let mut test_server = TestServer::open(case).await;
    let config = test_server.recorded_config(style).await;
    let manager = TestManager::new(config, test_server.path()).await;
    let session = manager.session().await;
    assert_eq!(session.revision_family(), case.family);
    manager.wait_for_tools(case.tool_count()).await;

    let listed = session.list_tools(TEST_TIMEOUT).await.unwrap();
    let lists: Vec<RecordedList> =
        results(&test_server).iter().filter_map(|result| serde_json::from_str(result.get()).ok()).collect();
    assert!(lists.iter().all(|list| list.next_cursor.is_none()), "the list has one page");
    let recorded: Vec<&str> = lists.last().unwrap().tools.iter().map(|tool| tool.get()).collect();
    let listed: Vec<&str> = listed.iter().map(RawJson::get).collect();
    assert_eq!(listed, recorded);
    let registered: Vec<RawJson> = manager
        .specs()
        .into_iter()
        .map(|spec| {
            let raw = spec.raw.expect("the definition as the server sent it");
            assert!(raw.get().contains(spec.input_schema.get()), "{raw:?}");
            raw
        })
        .collect();
    // A tool that can only be called as a task is not offered.
    let is_offered = |tool: &&str| {
        let definition: Value = serde_json::from_str(tool).unwrap();
        definition["execution"]["taskSupport"] != "required"
    };
    let offered: Vec<&str> = recorded.into_iter().filter(is_offered).collect();
    assert_eq!(registered.iter().map(RawJson::get).collect::<Vec<_>>(), offered);

    for (tool, arguments) in calls(case, &test_server) {
        let output =
            manager.call(tool, arguments.clone()).await.unwrap_or_else(|error| panic!("{tool}: {error:?}"));
        let raw = output.raw.expect("the result as the server sent it");
        assert_eq!(raw.get().contains(UNUSUAL_JSON), matches!(style, JsonStyle::Unusual), "{tool}");
        assert_recorded(&test_server, tool, &raw);
        if let Some(structured) = output.structured {
            assert!(raw.get().contains(structured.get()), "{tool}");
        }
    }
    if case.kind != ServerKind::Time {
        let failure = manager.call_unregistered("no-such-tool", json!({})).await.unwrap();
        assert_recorded(&test_server, "no-such-tool", &failure.raw);
    }
    manager.manager.close().await;
}

/// The latest recorded result is this one, not counting lists, which may be read at any time.
fn assert_recorded(test_server: &TestServer, tool: &str, raw: &RawJson) {
    let mut recorded = results(test_server);
    recorded.retain(|result| serde_json::from_str::<RecordedList>(result.get()).is_err());
    assert_eq!(recorded.last().map(|result| result.get()), Some(raw.get()), "{tool}");
}

/// The recorded results in order, as the server sent them.
fn results(test_server: &TestServer) -> Vec<Box<RawValue>> {
    let bytes = fs::read_to_string(test_server.recording()).unwrap();
    let payloads = bytes.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    let messages = payloads.filter_map(|payload| serde_json::from_str::<RecordedMessage>(payload).ok());
    messages.filter_map(|message| message.result).collect()
}

/// Calls whose results are hard to preserve.
fn calls(case: ServerCase, test_server: &TestServer) -> Vec<(&'static str, Value)> {
    let workbook = case.workbook(test_server.path());
    let rows = json!([
        ["ä \u{1f600}", "\" \\ \n \u{7f}", "</script>"],
        [1.50, 1e300, 12_345_678_901_u64],
        [0.1, -0.0, true]
    ]);
    let (read, arguments) = case.read_only_call(test_server.path());
    match case.kind {
        ServerKind::OldExcel => vec![
            ("create_workbook", json!({"filepath": workbook})),
            ("write_data_to_excel", json!({"filepath": workbook, "sheet_name": "Sheet1", "data": rows})),
            (read, arguments),
            ("get_workbook_metadata", json!({"filepath": workbook, "include_ranges": true})),
        ],
        ServerKind::NewExcel => vec![
            ("create_workbook", json!({"path": workbook, "sheets": ["Sheet1"]})),
            ("write_range", json!({"path": workbook, "sheet": "Sheet1", "at": "A1", "rows": rows})),
            (read, arguments),
            ("describe_workbook", json!({"path": workbook})),
        ],
        ServerKind::Everything => vec![
            (read, arguments),
            ("get-sum", json!({"a": 1e21, "b": 0.1})),
            ("get-tiny-image", json!({})),
            ("get-structured-content", json!({"location": "New York"})),
            ("get-resource-links", json!({"count": 3})),
            ("get-resource-reference", json!({"resourceType": "Blob", "resourceId": 1})),
            ("get-annotated-message", json!({"messageType": "error", "includeImage": true})),
        ],
        ServerKind::Time => vec![(read, arguments), ("convert_time", conversion("Europe/Berlin"))],
        ServerKind::BothFamilies
        | ServerKind::BackChannel
        | ServerKind::NoBackChannel
        | ServerKind::FastMcp => {
            vec![(read, arguments)]
        }
    }
}
