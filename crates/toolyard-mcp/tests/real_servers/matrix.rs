//! Each row: the list, a call with its effect, failures, a call given up, and a server that dies and comes back.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::time::{sleep, timeout};
use toolyard_core::{ErrorKind, ProtocolEra};
use toolyard_mcp::{
    client::{RequestError, era},
    wire::JsonObject,
};

use crate::{
    house::{House, PATIENCE, call},
    parts::sheet,
    place::Place,
    row::{Kind, Row, Wire, conversion, forced, row},
};

/// How long a call is certainly under way, on its way to a server that is held.
const UNDER_WAY: Duration = Duration::from_millis(300);

#[tokio::test]
async fn excel_0_1_8_over_stdio() {
    walk(row(Kind::OldExcel, Wire::Stdio)).await;
}

#[tokio::test]
async fn excel_0_1_8_over_streamable_http() {
    walk(row(Kind::OldExcel, Wire::Http)).await;
}

#[tokio::test]
async fn excel_0_1_8_over_sse() {
    walk(row(Kind::OldExcel, Wire::Sse)).await;
}

#[tokio::test]
async fn excel_2_2_2_over_stdio_modern() {
    walk(row(Kind::NewExcel, Wire::Stdio)).await;
}

#[tokio::test]
async fn excel_2_2_2_over_stdio_legacy() {
    walk(forced(Kind::NewExcel, Wire::Stdio, ProtocolEra::Legacy)).await;
}

#[tokio::test]
async fn excel_2_2_2_over_streamable_http_modern() {
    walk(row(Kind::NewExcel, Wire::Http)).await;
}

#[tokio::test]
async fn excel_2_2_2_over_streamable_http_legacy() {
    walk(forced(Kind::NewExcel, Wire::Http, ProtocolEra::Legacy)).await;
}

#[tokio::test]
async fn everything_over_stdio() {
    walk(row(Kind::Everything, Wire::Stdio)).await;
}

#[tokio::test]
async fn everything_over_streamable_http() {
    walk(row(Kind::Everything, Wire::Http)).await;
}

#[tokio::test]
async fn everything_over_sse() {
    walk(row(Kind::Everything, Wire::Sse)).await;
}

#[tokio::test]
async fn time_over_stdio_modern() {
    walk(row(Kind::Time, Wire::Stdio)).await;
}

#[tokio::test]
async fn time_over_stdio_legacy() {
    walk(forced(Kind::Time, Wire::Stdio, ProtocolEra::Legacy)).await;
}

async fn walk(row: Row) {
    let mut place = Place::open(row).await;
    let house = House::new(place.config(), place.path()).await;
    assert_eq!(place.processes().len(), usize::from(row.wire != Wire::Stdio), "nothing is started unasked");
    list_is_complete(row, &house).await;
    calls_have_their_effect(row, &place, &house).await;
    failures_are_told(row, &house).await;
    a_call_given_up_hurts_nobody(row, &place, &house).await;
    a_killed_server_comes_back(row, &mut place, &house).await;
    house.manager.close().await;
    assert_eq!(place.processes().len(), usize::from(row.wire != Wire::Stdio), "nothing is left behind");
}

async fn list_is_complete(row: Row, house: &House) {
    let session = house.session().await;
    assert_eq!(session.era(), row.era);
    let version = if row.era == ProtocolEra::Modern { era::MODERN } else { era::LEGACY[0] };
    assert_eq!(session.version(), version);
    house.until_tools(row.tools()).await;
    let shelf = house.server().shelf();
    assert_eq!(shelf.in_service.len(), row.tools());
    assert_eq!((&shelf.out_of_service, &shelf.quarantined), (&Vec::new(), &Vec::new()));
    let listed = session.list_tools(PATIENCE).await.unwrap();
    assert_eq!(listed.len(), row.tools());
}

async fn calls_have_their_effect(row: Row, place: &Place, house: &House) {
    let rows = json!([["name", "number"], ["ä \"quoted\"", 1.5], ["large", 12_345_678_901_u64]]);
    let book = row.workbook(place.path());
    match row.kind {
        Kind::OldExcel => {
            house.call("create_workbook", json!({"filepath": book})).await.unwrap();
            let data = json!({"filepath": book, "sheet_name": "Sheet1", "data": rows});
            house.call("write_data_to_excel", data).await.unwrap();
            assert_eq!(sheet(&place.path().join("book.xlsx"), "Sheet1"), rows);
        }
        Kind::NewExcel => {
            house.call("create_workbook", json!({"path": book, "sheets": ["Sheet1"]})).await.unwrap();
            let data = json!({"path": book, "sheet": "Sheet1", "at": "A1", "rows": rows});
            house.call("write_range", data).await.unwrap();
            assert_eq!(sheet(&place.path().join("book.xlsx"), "Sheet1"), rows);
        }
        Kind::Everything => {
            let sum = house.call("get-sum", json!({"a": 2, "b": 3.5})).await.unwrap();
            assert_eq!(sum.to_text(), "The sum of 2 and 3.5 is 5.5.");
            let echo = house.call("echo", json!({"message": "ä \u{1f600} \u{7}"})).await.unwrap();
            assert_eq!(echo.to_text(), "Echo: ä \u{1f600} \u{7}");
        }
        Kind::Time => {
            let converted = house.call("convert_time", conversion("UTC")).await.unwrap();
            let told: serde_json::Value = serde_json::from_str(&converted.to_text()).unwrap();
            assert_eq!(told["time_difference"], "+9.0h");
        }
        // It has no effects.
        Kind::BothEras => {}
    }
    let (tool, arguments) = row.harmless(place.path());
    let read = house.call(tool, arguments).await.unwrap();
    if matches!(row.kind, Kind::OldExcel | Kind::NewExcel) {
        assert!(read.to_text().contains("12345678901"), "{read:?}");
    }
    assert!(read.raw.is_some());
}

async fn failures_are_told(row: Row, house: &House) {
    let (tool, arguments, words) = match row.kind {
        Kind::OldExcel => ("create_workbook", json!({"filepath": 7}), "Input should be a valid string"),
        Kind::NewExcel => ("read_range", json!({"path": "no-such.xlsx", "sheet": "x"}), "no-such.xlsx"),
        Kind::Everything => ("get-sum", json!({"a": "x"}), "expected number, received string at a"),
        Kind::Time => {
            ("convert_time", conversion("Mars/Olympus"), "No time zone found with key Mars/Olympus")
        }
        Kind::BothEras => ("fail", json!({}), "it does not work"),
    };
    let error = house.call(tool, arguments).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed, "{error:?}");
    assert!(error.message().contains(words), "{error:?}");
    match (row.kind, house.call_anything("no-such-tool", json!({})).await) {
        (Kind::Time, Err(RequestError::Rpc(error))) => {
            assert_eq!((error.code, error.message.as_str()), (-32602, "Unknown tool: no-such-tool"));
        }
        (Kind::Time, other) => panic!("{other:?}"),
        (_, result) => {
            let result = result.unwrap();
            assert!(result.is_error && result.raw.get().contains("no-such-tool"), "{result:?}");
        }
    }
    let unknown = house.session().await.request("no/such/method", None, JsonObject::new(), None).await;
    let code = if row.kind == Kind::OldExcel { -32602 } else { -32601 };
    assert!(matches!(&unknown, Err(RequestError::Rpc(error)) if error.code == code), "{unknown:?}");
}

async fn a_call_given_up_hurts_nobody(row: Row, place: &Place, house: &House) {
    let session = house.session().await;
    let (tool, arguments) = row.harmless(place.path());
    place.hold();
    let given_up = timeout(UNDER_WAY, house.call(tool, arguments.clone())).await;
    assert!(given_up.is_err(), "it was held: {given_up:?}");
    place.let_go();
    if row.kind == Kind::OldExcel {
        // Its SDK ends the whole session when it hears of the cancelling at the moment of the answer.
        return called_again(house, tool, &arguments, &[ErrorKind::Lost, ErrorKind::Unavailable]).await;
    }
    for _ in 0..3 {
        house.call(tool, arguments.clone()).await.unwrap();
    }
    assert!(Arc::ptr_eq(&session, &house.session().await), "the connection is the same");
    house.until_idle().await;
}

async fn a_killed_server_comes_back(row: Row, place: &mut Place, house: &House) {
    let (tool, arguments) = row.harmless(place.path());
    let before = house.session().await;
    place.hold();
    let under_way = tokio::spawn(call(house.tool(tool), arguments.clone()));
    sleep(UNDER_WAY).await;
    assert!(!under_way.is_finished());
    place.kill();
    let error =
        timeout(Duration::from_secs(5), under_way).await.expect("an answer at once").unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error:?}");
    place.start().await;
    if row.wire == Wire::Http {
        // Nothing stays open there that would tell of a server that is gone.
        called_again(house, tool, &arguments, &[ErrorKind::Unavailable]).await;
    } else {
        house.until_ready().await;
    }
    house.until_tools(row.tools()).await;
    house.call(tool, arguments).await.unwrap();
    let after = house.session().await;
    assert_eq!(after.era(), row.era);
    if row.era == ProtocolEra::Legacy || row.wire == Wire::Stdio {
        assert!(!Arc::ptr_eq(&before, &after), "a session does not outlive its server");
    }
}

/// Calls until it works again; until then every call fails in one of the ways that are expected.
async fn called_again(house: &House, tool: &str, arguments: &serde_json::Value, expected: &[ErrorKind]) {
    let limit = Instant::now() + Duration::from_secs(20);
    while let Err(error) = house.call(tool, arguments.clone()).await {
        assert!(expected.contains(&error.kind()), "{error:?}");
        assert!(Instant::now() < limit, "{error:?}");
        sleep(Duration::from_millis(100)).await;
    }
}
