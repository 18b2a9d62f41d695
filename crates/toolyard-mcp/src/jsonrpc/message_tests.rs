//! JSON-RPC envelopes of correct, sloppy and hostile servers.

use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use super::*;

fn read_all(text: &str) -> Result<Vec<Message>, WireError> {
    Message::read(text.to_owned(), &WireLimits::default())
}

fn read(text: &str) -> Result<Message, WireError> {
    read_all(text).map(|mut messages| {
        assert_eq!(messages.len(), 1);
        messages.remove(0)
    })
}

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).unwrap()
}

fn response(id: impl Into<Option<u64>>, result: &str) -> Message {
    Message::Response { id: id.into().map(ResponseId::Number), outcome: Ok(raw(result)) }
}

fn error_of(text: &str) -> RpcError {
    match read(text) {
        Ok(Message::Response { outcome: Err(error), .. }) => error,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_payload_survives_byte_for_byte() {
    let result = r#"{"z":1.0,  "a":1e400,"z":"\u00e9",
 "unknown":[ ]}"#;
    let text = format!(r#" {{"result":{result},"extra":[1],"id":7,"jsonrpc":"2.0"}} "#);
    assert_eq!(read(&text), Ok(response(7, result)));
}

#[test]
fn a_large_result_is_not_copied() {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"text":"{}"}}}}"#, "x".repeat(10 << 20));
    let range = text.as_bytes().as_ptr_range();
    let messages = Message::read(text, &WireLimits::default()).unwrap();
    let [Message::Response { outcome: Ok(result), .. }] = messages.as_slice() else { panic!() };
    assert!(range.contains(&result.get().as_ptr()));
}

#[test]
fn requests_and_notifications_keep_id_and_parameters() {
    assert_eq!(
        read(r#"{"jsonrpc":"2.0","id":"a-1","method":"roots/list"}"#),
        Ok(Message::Request {
            id: RequestId(raw(r#""a-1""#)),
            method: "roots/list".to_owned(),
            params: None
        })
    );
    assert_eq!(
        read(r#"{"jsonrpc":"2.0","id":1.50,"method":"ping","params":{"b":1,"a":2}}"#),
        Ok(Message::Request {
            id: RequestId(raw("1.50")),
            method: "ping".to_owned(),
            params: Some(raw(r#"{"b":1,"a":2}"#))
        })
    );
    assert_eq!(
        read(r#"{"jsonrpc":"2.0","id":null,"method":"notifications/x","params":null,"result":null}"#),
        Ok(Message::Notification { method: "notifications/x".to_owned(), params: None })
    );
}

#[test]
fn the_id_of_a_response_is_an_integer_or_a_string() {
    assert_eq!(
        read(r#"{"jsonrpc":"2.0","id":18446744073709551615,"result":1}"#),
        Ok(response(u64::MAX, "1"))
    );
    for id in ["1.0", "1e0", "-1", "-0", "null", "true", "[1]", "{}", "18446744073709551616"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":1}}"#);
        assert_eq!(read(&text), Ok(response(None, "1")), "{id}");
    }
    assert_eq!(read(r#"{"jsonrpc":"2.0","result":1}"#), Ok(response(None, "1")));
    let with_text_id = |id: &str| read(&format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":1}}"#));
    let id = Some(ResponseId::Text("1\n".to_owned()));
    assert_eq!(with_text_id("1\\n"), Ok(Message::Response { id, outcome: Ok(raw("1")) }));
    assert_eq!(with_text_id(&"1".repeat(MAX_NAME_BYTES + 1)), Ok(response(None, "1")));
}

#[test]
fn a_missing_or_wrong_version_is_accepted_with_an_id() {
    for text in [
        r#"{"id":1,"result":{}}"#,
        r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":2.0,"id":1,"result":{}}"#,
    ] {
        assert_eq!(read(text), Ok(response(1, "{}")), "{text}");
    }
    for log_line in [
        r#"{"level":"error","error":"disk full"}"#,
        r#"{"method":"GET","path":"/","status":200}"#,
        r#"{"level":"info","msg":"listening"}"#,
    ] {
        assert!(matches!(read(log_line), Err(WireError::NotJsonRpc(_))), "{log_line}");
    }
}

#[test]
fn an_error_wins_over_a_result_unless_null() {
    assert_eq!(
        read(r#"{"jsonrpc":"2.0","id":1,"result":{"a":1},"error":null}"#),
        Ok(response(1, r#"{"a":1}"#))
    );
    assert_eq!(read(r#"{"jsonrpc":"2.0","id":1,"result":null}"#), Ok(response(1, "null")));
    let error = error_of(r#"{"jsonrpc":"2.0","id":1,"result":{"a":1},"error":{"code":-5,"message":"no"}}"#);
    assert_eq!(error, RpcError { code: -5, message: "no".to_owned(), data: None });
}

#[test]
fn an_error_of_any_shape_has_a_message() {
    let error = |json: &str| error_of(&format!(r#"{{"jsonrpc":"2.0","id":1,"error":{json}}}"#));
    let code_and_message = |json: &str| (error(json).code, error(json).message);
    assert_eq!(code_and_message(r#""broken""#), (0, "broken".to_owned()));
    assert_eq!(code_and_message("17"), (0, "17".to_owned()));
    assert_eq!(code_and_message(r#"{"code":-32601}"#), (-32601, r#"{"code":-32601}"#.to_owned()));
    assert_eq!(code_and_message(r#"{"message":"no code"}"#), (0, "no code".to_owned()));
    assert_eq!(
        code_and_message(r#"{"code":"-32000","message":{"a":[1]}}"#),
        (-32000, r#"{"a":[1]}"#.to_owned())
    );
    assert_eq!(code_and_message(r#"{"code":-32000.0,"message":null}"#).0, -32000);
    assert_eq!(code_and_message(r#"{"code":1e99,"message":"x"}"#), (0, "x".to_owned()));
    assert_eq!(
        error(r#"{"code":1,"message":"m","data":{"b":1.0,"a":2}}"#).data.unwrap().get(),
        r#"{"b":1.0,"a":2}"#
    );
    assert_eq!(error(r#"{"code":1,"message":"m","data":null}"#).data, None);
}

#[test]
fn a_hostile_error_is_truncated() {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":1,"message":"{}","data":"{}"}}}}"#,
        "中".repeat(1 << 20),
        "x".repeat(2 << 20)
    );
    let error = error_of(&text);
    assert!(error.message.len() <= (16 << 10) + 3 && error.message.ends_with("中…"));
    assert_eq!(error.data, None);
}

#[test]
fn a_repeated_field_is_rejected() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"r\u0065sult":{}}"#,
        r#"{"jsonrpc":"2.0","method":"a","method":"b"}"#,
    ] {
        assert_eq!(read(text), Err(WireError::NotJsonRpc("repeated field")), "{text}");
    }
    assert!(read(r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2},"x":1,"x":2}"#).is_ok());
}

#[test]
fn a_batch_yields_its_valid_messages() {
    let batch = r#"[{"jsonrpc":"2.0","id":1,"result":{}}, 5, {"jsonrpc":"2.0","method":"n"}, {"a":1}]"#;
    let messages = read_all(batch).unwrap();
    assert_eq!(messages, [response(1, "{}"), Message::Notification { method: "n".to_owned(), params: None }]);
    assert_eq!(read_all("[]"), Err(WireError::NotJsonRpc("empty batch")));
    assert!(read_all("[1]").is_err());
    let many = |count| format!("[{}]", vec![r#"{"jsonrpc":"2.0","method":"n"}"#; count].join(","));
    assert_eq!(read_all(&many(1_000)).unwrap().len(), 1_000);
    assert!(read_all(&many(1_001)).is_err());
}

#[test]
fn exceeded_limits_are_errors() {
    let limits = WireLimits { message_bytes: 40, depth: 3, ..WireLimits::default() };
    let read = |text: &str| Message::read(text.to_owned(), &limits);
    assert!(read(r#"{"jsonrpc":"2.0","id":1,"result":[[]]}"#).is_ok());
    assert_eq!(
        read(r#"{"jsonrpc":"2.0","id":1,"result":[[], []]}"#),
        Err(WireError::TooLong { what: "a message", limit: 40 })
    );
    assert_eq!(read(r#"{"id":1,"result":[[[]]]}"#), Err(WireError::TooDeep { limit: 3 }));
    assert_eq!(read(&"[".repeat(40)), Err(WireError::TooDeep { limit: 3 }));
}

#[test]
fn excessive_nesting_is_rejected_early() {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}"#, "[".repeat(100_000));
    assert_eq!(read(&text), Err(WireError::TooDeep { limit: 128 }));
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"x":{}"#, r#"{"a":"#.repeat(100_000));
    assert_eq!(read(&text), Err(WireError::TooDeep { limit: 128 }));
}

#[test]
fn invalid_methods_and_ids_are_rejected() {
    assert!(read(r#"{"jsonrpc":"2.0","method":"m","result":{}}"#).is_err());
    let long = "x".repeat(2_000);
    assert!(read(&format!(r#"{{"jsonrpc":"2.0","method":"{long}"}}"#)).is_err());
    assert!(read(&format!(r#"{{"jsonrpc":"2.0","id":"{long}","method":"m"}}"#)).is_err());
    assert!(read(r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#).is_err());
    assert!(read(r#"{"jsonrpc":"2.0","method":7}"#).is_err());
}

#[test]
fn invalid_json_is_rejected_without_quoting_it() {
    for text in [
        "",
        " ",
        "{",
        "nonsense",
        r#"{"jsonrpc":"2.0","id":1,"result":{}}}"#,
        r#"{"secret":"abc"#,
        "\u{feff}{}",
    ] {
        let error = read(text).unwrap_err();
        assert!(matches!(error, WireError::NotJson(_)), "{text}: {error:?}");
        assert!(!error.to_string().contains("secret"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_048, ..ProptestConfig::default() })]

    #[test]
    fn no_text_causes_a_panic(text in "[\\[\\]{}\",:a-z0-9.\\\\ ]{0,60}") {
        let _ = read_all(&text);
    }

    #[test]
    fn any_field_may_hold_anything(
        fields in vec((prop::sample::select(vec!["jsonrpc", "id", "method", "params", "result", "error", "x"]),
            prop::sample::select(vec![json!(null), json!("2.0"), json!(1), json!(-1.5), json!({"code": "x"}), json!([1]), json!("m")])), 0..7)
    ) {
        let distinct: serde_json::Map<String, Value> = fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let text = Value::Object(distinct.clone()).to_string();
        if let Ok(message) = read(&text) {
            let (has_method, failed) = (distinct.contains_key("method"), distinct.get("error").is_some_and(|error| !error.is_null()));
            match message {
                Message::Response { id, outcome } => {
                    prop_assert_eq!(outcome.is_err(), failed);
                    let text = distinct.get("id").and_then(Value::as_str).map(|text| ResponseId::Text(text.to_owned()));
                    let number = distinct.get("id").and_then(Value::as_u64).map(ResponseId::Number);
                    prop_assert_eq!(id, number.or(text));
                }
                Message::Request { id, .. } => prop_assert!(has_method && id.0.to_value() == distinct["id"]),
                Message::Notification { .. } => prop_assert!(has_method),
            }
        }
    }
}
