//! The time by a clock that stands still, around the days when clocks change.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::*;

async fn ask(default_zone: Option<&str>, moment: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
    let moment: Timestamp = moment.parse().unwrap();
    let tool = GetTime::with_clock(default_zone.map(str::to_owned), Arc::new(move || moment));
    let context = CallContext::until(Instant::now() + Duration::from_secs(5));
    tool.call(&ToolCallRequest::new("get_time", arguments), &context).await
}

#[tokio::test]
async fn utc_unless_told_otherwise() {
    let output = ask(None, "2026-08-09T06:03:00.5Z", json!({})).await.unwrap();
    assert_eq!(output.to_text(), "Sunday, 2026-08-09T06:03:00+00:00[UTC]");
    assert_eq!(
        output.to_json(),
        json!({"iso": "2026-08-09T06:03:00+00:00[UTC]", "timezone": "UTC", "weekday": "Sunday", "unix": 1_786_255_380})
    );
    let output = ask(Some("Asia/Shanghai"), "2026-08-09T20:00:00Z", json!({"timezone": ""})).await.unwrap();
    assert_eq!(output.to_text(), "Monday, 2026-08-10T04:00:00+08:00[Asia/Shanghai]");
}

#[tokio::test]
async fn summer_time_begins_and_ends() {
    let berlin = |moment| ask(None, moment, json!({"timezone": "Europe/Berlin", "format": "%H:%M %Z"}));
    assert_eq!(berlin("2026-03-29T00:59:59Z").await.unwrap().to_text(), "01:59 CET");
    assert_eq!(berlin("2026-03-29T01:00:00Z").await.unwrap().to_text(), "03:00 CEST");
    assert_eq!(berlin("2026-10-25T00:30:00Z").await.unwrap().to_text(), "02:30 CEST");
    assert_eq!(berlin("2026-10-25T01:30:00Z").await.unwrap().to_text(), "02:30 CET");
}

#[tokio::test]
async fn an_unknown_zone_names_the_near_ones() {
    for (asked, near) in [
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
        let error = ask(None, "2026-01-01T00:00:00Z", json!({"timezone": asked})).await.unwrap_err();
        assert!(error.hint().unwrap().contains(near), "{asked}: {:?}", error.hint());
    }
    let hostile = "../../etc/passwd\u{1b}[31m".to_owned() + &"x".repeat(10_000);
    let error = ask(None, "2026-01-01T00:00:00Z", json!({"timezone": hostile})).await.unwrap_err();
    assert!(error.message().len() < 200 && !error.message().contains('\u{1b}'));
}

#[tokio::test]
async fn what_is_not_near_is_not_suggested() {
    for asked in ["上", "火星", "Middle Earth", "qqq", "UTC+8", "GMT+8", "\u{1f552}", "x/y/z", "1"] {
        let error = ask(None, "2026-01-01T00:00:00Z", json!({"timezone": asked})).await.unwrap_err();
        let hint = error.hint().unwrap();
        assert_eq!(hint, "use an IANA name: a region and a city of it, such as Europe/Berlin", "{asked}");
    }
}

#[tokio::test]
async fn a_wrong_format_is_a_failure() {
    for wrong in ["%".to_owned(), "%!".to_owned(), "%Y".repeat(1_000)] {
        assert!(ask(None, "2026-01-01T00:00:00Z", json!({"format": wrong})).await.is_err());
    }
}

#[tokio::test]
async fn zones_are_found_whatever_their_case() {
    let output = ask(None, "2026-01-01T00:00:00Z", json!({"timezone": "america/new_york"})).await.unwrap();
    assert_eq!(output.to_json()["timezone"], json!("America/New_York"));
}
