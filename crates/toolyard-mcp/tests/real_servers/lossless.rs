//! What comes out of Toolyard is what the server wrote, byte for byte: compared with captures taken in between.

use std::fs;

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use toolyard_core::{ProtocolEra, RawJson};

use crate::{
    house::{House, PATIENCE},
    place::{Place, Spelling},
    row::{Kind, Row, Wire, conversion, forced, row},
};

#[tokio::test]
async fn excel_0_1_8_over_stdio() {
    compare(row(Kind::OldExcel, Wire::Stdio)).await;
}

#[tokio::test]
async fn excel_0_1_8_over_streamable_http() {
    compare(row(Kind::OldExcel, Wire::Http)).await;
}

#[tokio::test]
async fn excel_0_1_8_over_sse() {
    compare(row(Kind::OldExcel, Wire::Sse)).await;
}

#[tokio::test]
async fn excel_2_2_2_over_stdio_modern() {
    compare(row(Kind::NewExcel, Wire::Stdio)).await;
}

#[tokio::test]
async fn excel_2_2_2_over_stdio_legacy() {
    compare(forced(Kind::NewExcel, Wire::Stdio, ProtocolEra::Legacy)).await;
}

#[tokio::test]
async fn excel_2_2_2_over_streamable_http_modern() {
    compare(row(Kind::NewExcel, Wire::Http)).await;
}

#[tokio::test]
async fn excel_2_2_2_over_streamable_http_legacy() {
    compare(forced(Kind::NewExcel, Wire::Http, ProtocolEra::Legacy)).await;
}

#[tokio::test]
async fn everything_over_stdio() {
    compare(row(Kind::Everything, Wire::Stdio)).await;
}

#[tokio::test]
async fn everything_over_streamable_http() {
    compare(row(Kind::Everything, Wire::Http)).await;
}

#[tokio::test]
async fn everything_over_sse() {
    compare(row(Kind::Everything, Wire::Sse)).await;
}

#[tokio::test]
async fn time_over_stdio_modern() {
    compare(row(Kind::Time, Wire::Stdio)).await;
}

#[tokio::test]
async fn time_over_stdio_legacy() {
    compare(forced(Kind::Time, Wire::Stdio, ProtocolEra::Legacy)).await;
}

/// What nobody who reads and writes it again spells like this.
const ODD: &str =
    r#"{ "x\u002dunknown" : [ 1.50, 1E+2, -0.0, 123456789012345678901234567890, "\/\u00e4" ] , "#;

/// One captured message, read by something that is not ours.
#[derive(Deserialize)]
struct Captured {
    result: Option<Box<RawValue>>,
}

/// A captured list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CapturedList {
    tools: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

#[tokio::test]
async fn odd_spelling_over_stdio_modern() {
    compare_spelt(row(Kind::Time, Wire::Stdio), Spelling::Odd).await;
}

#[tokio::test]
async fn odd_spelling_over_stdio_legacy() {
    compare_spelt(row(Kind::Everything, Wire::Stdio), Spelling::Odd).await;
}

#[tokio::test]
async fn odd_spelling_over_streamable_http_modern() {
    compare_spelt(row(Kind::NewExcel, Wire::Http), Spelling::Odd).await;
}

#[tokio::test]
async fn odd_spelling_over_streamable_http_legacy() {
    compare_spelt(row(Kind::Everything, Wire::Http), Spelling::Odd).await;
}

#[tokio::test]
async fn odd_spelling_over_sse() {
    compare_spelt(row(Kind::Everything, Wire::Sse), Spelling::Odd).await;
}

async fn compare(row: Row) {
    compare_spelt(row, Spelling::ItsOwn).await;
}

async fn compare_spelt(row: Row, spelling: Spelling) {
    let mut place = Place::open(row).await;
    let config = place.tapped(spelling).await;
    let house = House::new(config, place.path()).await;
    let session = house.session().await;
    assert_eq!(session.era(), row.era);
    house.until_tools(row.tools()).await;

    let listed = session.list_tools(PATIENCE).await.unwrap();
    let lists: Vec<CapturedList> =
        results(&place).iter().filter_map(|result| serde_json::from_str(result.get()).ok()).collect();
    assert!(lists.iter().all(|list| list.next_cursor.is_none()), "all on one page");
    let captured: Vec<&str> = lists.last().unwrap().tools.iter().map(|tool| tool.get()).collect();
    let listed: Vec<&str> = listed.iter().map(RawJson::get).collect();
    assert_eq!(listed, captured);
    let registered: Vec<RawJson> = house
        .specs()
        .into_iter()
        .map(|spec| {
            let raw = spec.raw.expect("the definition as it came");
            assert!(raw.get().contains(spec.input_schema.get()), "{raw:?}");
            raw
        })
        .collect();
    assert_eq!(registered.iter().map(RawJson::get).collect::<Vec<_>>(), captured);

    for (tool, arguments) in calls(row, &place) {
        let output =
            house.call(tool, arguments.clone()).await.unwrap_or_else(|error| panic!("{tool}: {error:?}"));
        let raw = output.raw.expect("the answer as it came");
        assert_eq!(raw.get().contains(ODD), matches!(spelling, Spelling::Odd), "{tool}");
        is_captured(&place, tool, &raw);
        if let Some(structured) = output.structured {
            assert!(raw.get().contains(structured.get()), "{tool}");
        }
    }
    if row.kind != Kind::Time {
        let failure = house.call_anything("no-such-tool", json!({})).await.unwrap();
        is_captured(&place, "no-such-tool", &failure.raw);
    }
    house.manager.close().await;
}

/// The newest captured result is this one; lists may be read at any time.
fn is_captured(place: &Place, tool: &str, raw: &RawJson) {
    let mut captured = results(place);
    captured.retain(|result| serde_json::from_str::<CapturedList>(result.get()).is_err());
    assert_eq!(captured.last().map(|result| result.get()), Some(raw.get()), "{tool}");
}

/// The results the server sent, in order, as they stand in its own bytes.
fn results(place: &Place) -> Vec<Box<RawValue>> {
    let bytes = fs::read_to_string(place.capture()).unwrap();
    let payloads = bytes.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    let messages = payloads.filter_map(|payload| serde_json::from_str::<Captured>(payload).ok());
    messages.filter_map(|message| message.result).collect()
}

/// Calls whose results have something that could get lost.
fn calls(row: Row, place: &Place) -> Vec<(&'static str, Value)> {
    let book = row.workbook(place.path());
    let rows = json!([
        ["ä \u{1f600}", "\" \\ \n \u{7f}", "</script>"],
        [1.50, 1e300, 12_345_678_901_u64],
        [0.1, -0.0, true]
    ]);
    let (read, arguments) = row.harmless(place.path());
    match row.kind {
        Kind::OldExcel => vec![
            ("create_workbook", json!({"filepath": book})),
            ("write_data_to_excel", json!({"filepath": book, "sheet_name": "Sheet1", "data": rows})),
            (read, arguments),
            ("get_workbook_metadata", json!({"filepath": book, "include_ranges": true})),
        ],
        Kind::NewExcel => vec![
            ("create_workbook", json!({"path": book, "sheets": ["Sheet1"]})),
            ("write_range", json!({"path": book, "sheet": "Sheet1", "at": "A1", "rows": rows})),
            (read, arguments),
            ("describe_workbook", json!({"path": book})),
        ],
        Kind::Everything => vec![
            (read, arguments),
            ("get-sum", json!({"a": 1e21, "b": 0.1})),
            ("get-tiny-image", json!({})),
            ("get-structured-content", json!({"location": "New York"})),
            ("get-resource-links", json!({"count": 3})),
            ("get-resource-reference", json!({"resourceType": "Blob", "resourceId": 1})),
            ("get-annotated-message", json!({"messageType": "error", "includeImage": true})),
        ],
        Kind::Time => vec![(read, arguments), ("convert_time", conversion("Europe/Berlin"))],
        Kind::BothEras => vec![(read, arguments)],
    }
}
