//! The time by a fixed clock, around changes of daylight saving time.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::*;

async fn get_time(
    default_zone: Option<&str>,
    moment: &str,
    arguments: Value,
) -> Result<ToolOutput, ToolError> {
    let moment: Timestamp = moment.parse().unwrap();
    let tool = GetTime::with_clock(default_zone.map(str::to_owned), Arc::new(move || moment));
    let context = CallContext::until(Instant::now() + Duration::from_secs(5));
    tool.call(&ToolCallRequest::new("get_time", arguments), &context).await
}

#[tokio::test]
async fn utc_is_the_default() {
    let output = get_time(None, "2026-08-09T06:03:00.5Z", json!({})).await.unwrap();
    assert_eq!(output.to_text(), "Sunday, 2026-08-09T06:03:00+00:00[UTC]");
    assert_eq!(
        output.to_json(),
        json!({"iso": "2026-08-09T06:03:00+00:00[UTC]", "timezone": "UTC", "weekday": "Sunday", "unix": 1_786_255_380})
    );
    let output =
        get_time(Some("Asia/Shanghai"), "2026-08-09T20:00:00Z", json!({"timezone": ""})).await.unwrap();
    assert_eq!(output.to_text(), "Monday, 2026-08-10T04:00:00+08:00[Asia/Shanghai]");
}

#[tokio::test]
async fn daylight_saving_time_begins_and_ends() {
    let berlin = |moment| get_time(None, moment, json!({"timezone": "Europe/Berlin", "format": "%H:%M %Z"}));
    assert_eq!(berlin("2026-03-29T00:59:59Z").await.unwrap().to_text(), "01:59 CET");
    assert_eq!(berlin("2026-03-29T01:00:00Z").await.unwrap().to_text(), "03:00 CEST");
    assert_eq!(berlin("2026-10-25T00:30:00Z").await.unwrap().to_text(), "02:30 CEST");
    assert_eq!(berlin("2026-10-25T01:30:00Z").await.unwrap().to_text(), "02:30 CET");
}

#[tokio::test]
async fn an_unknown_zone_gets_suggestions() {
    for (name, suggestion) in [
        ("Asia/Shanghia", "Asia/Shanghai"),
        ("shanghai", "Asia/Shanghai"),
        ("New York", "America/New_York"),
        ("Tokio", "Asia/Tokyo"),
        ("Asai/Shanghai", "Asia/Shanghai"),
        ("上海", "Asia/Shanghai"),
        ("北京时间", "Asia/Shanghai"),
        ("东京", "Asia/Tokyo"),
        ("纽约市", "America/New_York"),
        ("beijing", "Asia/Shanghai"),
        ("San Francisco", "America/Los_Angeles"),
    ] {
        let error = get_time(None, "2026-01-01T00:00:00Z", json!({"timezone": name})).await.unwrap_err();
        assert!(error.hint().unwrap().contains(suggestion), "{name}: {:?}", error.hint());
    }
    let hostile = "../../etc/passwd\u{1b}[31m".to_owned() + &"x".repeat(10_000);
    let error = get_time(None, "2026-01-01T00:00:00Z", json!({"timezone": hostile})).await.unwrap_err();
    assert!(error.message().len() < 200 && !error.message().contains('\u{1b}'));
}

#[tokio::test]
async fn dissimilar_names_get_no_suggestions() {
    for name in ["上", "火星", "Middle Earth", "qqq", "UTC+8", "GMT+8", "\u{1f552}", "x/y/z", "1"] {
        let error = get_time(None, "2026-01-01T00:00:00Z", json!({"timezone": name})).await.unwrap_err();
        let hint = error.hint().unwrap();
        assert_eq!(hint, "use an IANA name: a region and a city of it, such as Europe/Berlin", "{name}");
    }
}

#[tokio::test]
async fn an_invalid_format_is_an_error() {
    for wrong in ["%".to_owned(), "%!".to_owned(), "%Y".repeat(1_000)] {
        assert!(get_time(None, "2026-01-01T00:00:00Z", json!({"format": wrong})).await.is_err());
    }
}

#[tokio::test]
async fn zone_names_are_case_insensitive() {
    let output =
        get_time(None, "2026-01-01T00:00:00Z", json!({"timezone": "america/new_york"})).await.unwrap();
    assert_eq!(output.to_json()["timezone"], json!("America/New_York"));
}
