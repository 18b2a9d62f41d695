//! Encoded messages are valid, on one line, and contain raw payloads byte for byte.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).unwrap()
}

fn text(body: Vec<u8>) -> String {
    String::from_utf8(body).unwrap()
}

#[test]
fn raw_arguments_are_copied_byte_for_byte() {
    let arguments = raw(r#"{"z":1.0,  "a":1e400,"中":"\u00e9\n"}"#);
    let params = JsonObject::new()
        .with_text("name", "say \"hi\"")
        .with_raw("arguments", &arguments)
        .with_object("_meta", &JsonObject::new().with_value("progressToken", &json!(3)));
    assert_eq!(
        text(request(3, "tools/call", &params)),
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"say \"hi\"","arguments":{"z":1.0,  "a":1e400,"中":"\u00e9\n"},"_meta":{"progressToken":3}}}"#
    );
}

#[test]
fn a_multiline_payload_becomes_one_equivalent_line() {
    let pretty = "{\r\n  \"text\": \"two\\nlines\",\n\t\"list\": [\n1,\n2]\n}";
    let line = text(request(1, "m", &JsonObject::new().with_raw("p", &raw(pretty))));
    assert!(!line.contains(['\n', '\r']));
    let value: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(value["params"]["p"], json!({"text": "two\nlines", "list": [1, 2]}));
}

#[test]
fn responses_repeat_the_id_as_sent() {
    let id = RequestId(raw(r#""a\u0062""#));
    assert_eq!(text(response(&id, &raw("{}"))), r#"{"jsonrpc":"2.0","id":"a\u0062","result":{}}"#);
    assert_eq!(
        text(error_response(&RequestId(raw("1.50")), -32601, "no \"such\"\nmethod")),
        r#"{"jsonrpc":"2.0","id":1.50,"error":{"code":-32601,"message":"no \"such\"\nmethod"}}"#
    );
}

#[test]
fn a_notification_has_no_id_and_no_empty_parameters() {
    let method = "notifications/initialized";
    assert_eq!(
        text(notification(method, &JsonObject::new())),
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#
    );
    let reason = JsonObject::new().with_text("reason", "late");
    assert!(text(notification(method, &reason)).ends_with(r#","params":{"reason":"late"}}"#));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_024, ..ProptestConfig::default() })]

    #[test]
    fn any_request_is_one_line_of_json(method in any::<String>(), key in any::<String>(), value in any::<String>()) {
        let payload = raw(&serde_json::to_string_pretty(&json!({"value": value, "more": [1, {"a": null}]})).unwrap());
        let params = JsonObject::new().with_text(&key, &value).with_raw("raw", &payload);
        let line = text(request(9, &method, &params));
        prop_assert!(!line.contains(['\n', '\r']));
        let message: Value = serde_json::from_str(&line).unwrap();
        prop_assert_eq!(&message["method"], &json!(method));
        prop_assert_eq!(&message["params"]["raw"], &payload.to_value());
    }
}
