//! Results of correct, sloppy and hostile tools.

use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};
use toolyard_core::ErrorKind;

use super::*;

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).unwrap()
}

fn read(text: &str) -> CallResult {
    CallResult::read(&raw(text))
}

fn content(json: &str) -> Vec<ContentBlock> {
    read(&format!(r#"{{"content":{json}}}"#)).content
}

fn text(value: &str) -> ContentBlock {
    ContentBlock::text(value)
}

#[test]
fn a_result_keeps_its_bytes() {
    let result = r#"{"x":1.0,"content":[{"type":"text","text":"12\n"}],"structuredContent":{"z":1.50,"a": 1},"_meta":{"k":[ ]}}"#;
    let call = read(result);
    assert_eq!(call.raw.get(), result);
    assert_eq!((call.kind.clone(), call.is_error), (ResultKind::Complete, false));
    assert_eq!(call.content, [text("12\n")]);
    assert_eq!(call.structured.as_ref().unwrap().get(), r#"{"z":1.50,"a": 1}"#);
    assert_eq!(call.meta.as_ref().unwrap().get(), r#"{"k":[ ]}"#);
    let output = call.into_output().unwrap();
    assert_eq!(output.raw.unwrap().get(), result);
    assert_eq!(output.structured.unwrap().get(), r#"{"z":1.50,"a": 1}"#);
}

#[test]
fn every_kind_of_content_is_read() {
    let blocks = content(
        r#"[{"type":"text","text":"a\"b","annotations":{}},
            {"mimeType":"image/png","data":"aGk=","type":"image"},
            {"type":"audio","data":"aGk="},
            {"type":"resource_link","uri":"file:///a","name":"A"},
            {"type":"resource_link","uri":"file:///b"},
            {"type":"resource","resource":{"uri":"file:///c","text":"c","_meta":{"n":1}}}]"#,
    );
    let resource = json!({"uri": "file:///c", "text": "c", "_meta": {"n": 1}});
    let binary = "application/octet-stream".to_owned();
    assert_eq!(
        blocks,
        [
            text("a\"b"),
            ContentBlock::Image { data: "aGk=".to_owned(), mime_type: "image/png".to_owned() },
            ContentBlock::Audio { data: "aGk=".to_owned(), mime_type: binary },
            ContentBlock::ResourceLink { uri: "file:///a".to_owned(), name: "A".to_owned() },
            ContentBlock::ResourceLink { uri: "file:///b".to_owned(), name: "file:///b".to_owned() },
            ContentBlock::Resource { resource },
        ]
    );
}

#[test]
fn an_invalid_block_does_not_affect_the_others() {
    let blocks = content(
        r#"[{"type":"video","src":"v"},{"type":"text","text":5},{"type":"image"},{"text":"untyped"},"bare",null,7,
            {"type":"resource","resource":[]},{"type":7,"text":"x"},{},{"type":"text","text":"good"}]"#,
    );
    assert_eq!(
        blocks,
        [
            ContentBlock::Other(json!({"type": "video", "src": "v"})),
            ContentBlock::Other(json!({"type": "text", "text": 5})),
            ContentBlock::Other(json!({"type": "image"})),
            text("untyped"),
            text("bare"),
            ContentBlock::Other(json!(7)),
            ContentBlock::Other(json!({"type": "resource", "resource": []})),
            text("x"),
            ContentBlock::Other(json!({})),
            text("good"),
        ]
    );
}

#[test]
fn content_need_not_be_a_list() {
    assert_eq!(content("null"), []);
    assert_eq!(content("[]"), []);
    assert_eq!(content(r#""words""#), [text("words")]);
    assert_eq!(content(r#"{"type":"text","text":"one"}"#), [text("one")]);
    assert_eq!(read("{}").content, []);
    assert_eq!(read(r#""just words""#).content, [text("just words")]);
    assert_eq!(read("null").content, []);
}

#[test]
fn the_last_of_repeated_fields_counts() {
    let call =
        read(r#"{"isError":false,"content":[],"isError":true,"content":[{"type":"text","text":"no"}]}"#);
    assert!(call.is_error);
    assert_eq!(call.content, [text("no")]);
}

#[test]
fn a_failed_tool_is_an_error_with_its_message() {
    let error = |text: &str| read(text).into_output().unwrap_err();
    let failed = error(
        r#"{"isError":true,"content":[{"type":"text","text":"no such"},{"type":"text","text":"file"}]}"#,
    );
    assert_eq!((failed.kind(), failed.message()), (ErrorKind::Failed, "no such\nfile"));
    assert_eq!(error(r#"{"isError":"true","structuredContent":{"a":1}}"#).message(), r#"{"a":1}"#);
    assert_eq!(error(r#"{"isError":true}"#).message(), "the tool failed without a message");
    let long = format!(r#"{{"isError":true,"content":["{}"]}}"#, "中".repeat(100_000));
    assert!(error(&long).message().len() <= MAX_ERROR_TEXT_BYTES + 3);
}

#[test]
fn input_requests_stay_raw() {
    let call = read(
        r#"{"resultType":"input_required","requestState":"s\u0031","inputRequests":{"b":{"method":"elicitation/create","params":{"z":1,"a":2}},"a":{}}}"#,
    );
    let ResultKind::InputRequired(input) = &call.kind else { panic!("{call:?}") };
    assert_eq!(input.state.as_deref(), Some("s1"));
    let keys: Vec<&str> = input.requests.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["b", "a"]);
    assert_eq!(input.requests[0].1.get(), r#"{"method":"elicitation/create","params":{"z":1,"a":2}}"#);
    assert_eq!(InputRequired::read(&call.raw).as_ref(), Some(input));
    let (raw, output) = (call.raw.clone(), call.into_output().unwrap());
    assert!(output.input_required && output.content.is_empty());
    assert_eq!(output.raw, Some(raw));
}

#[test]
fn an_unknown_result_type_is_not_a_success() {
    let call = read(r#"{"resultType":"task","task":{"taskId":"1"}}"#);
    assert_eq!(call.kind, ResultKind::Other("task".to_owned()));
    let error = call.into_output().unwrap_err();
    assert!(error.message().contains("`task`") && error.kind() == ErrorKind::OutcomeUnknown);
    for complete in [r#"{"resultType":"complete"}"#, r#"{"resultType":null}"#, r#"{"resultType":7}"#, "{}"] {
        assert_eq!(read(complete).kind, ResultKind::Complete, "{complete}");
    }
}

#[test]
fn structured_content_doubles_as_text() {
    let output = read(r#"{"structuredContent":{"b":1.0,"a":2}}"#).into_output().unwrap();
    assert_eq!(output.to_text(), r#"{"b":1.0,"a":2}"#);
    assert_eq!(read(r#"{"structuredContent":null,"content":[]}"#).structured, None);
}

#[test]
fn hostile_content_stays_bounded() {
    let many = content(&format!("[{}1]", "1,".repeat(1_000_000)));
    assert_eq!(many.len(), 10_001);
    assert_eq!(many[10_000], text("[990001 more blocks omitted]"));
    let numbers = format!("[{}1]", "1,".repeat(1_000_000));
    let unknown = content(&format!(r#"[{{"type":"video","frames":{numbers}}}]"#));
    assert_eq!(unknown, [ContentBlock::Other(json!({"type": "video"}))], "the type is kept");
    let resource = content(&format!(r#"[{{"type":"resource","resource":{{"text":"t","x":{numbers}}}}}]"#));
    assert_eq!(resource, [ContentBlock::Resource { resource: json!({"text": "t", "x": null}) }]);
    let keys: String = (0..200_000).map(|key| format!("\"{key}\":1,")).collect();
    let [ContentBlock::Resource { resource }] =
        &content(&format!(r#"[{{"type":"resource","resource":{{{keys}"text":"t"}}}}]"#))[..]
    else {
        panic!()
    };
    assert!(resource.as_object().unwrap().len() < 20_000);
    let requests: String = (0..10_000).map(|key| format!("\"{key}\":{{}},")).collect();
    let call = read(&format!(r#"{{"inputRequests":{{{requests}"z":1}},"resultType":"input_required"}}"#));
    let ResultKind::InputRequired(input) = call.kind else { panic!() };
    assert_eq!(input.requests.len(), 100);
}

#[test]
fn deep_nesting_is_not_a_result_and_does_not_crash() {
    let deep = format!(r#"{{"content":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    assert!(read(&deep).into_output().is_err());
    let deep = format!(r#"{{"content":[{{"type":"x","y":{}{}}}]}}"#, "[".repeat(120), "]".repeat(120));
    assert_eq!(read(&deep).kind, ResultKind::Complete);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_024, ..ProptestConfig::default() })]

    #[test]
    fn any_result_is_read_and_kept(
        fields in vec((
            prop::sample::select(vec!["content", "isError", "structuredContent", "resultType", "inputRequests", "requestState", "_meta", "x"]),
            prop::sample::select(vec![
                json!(null), json!(true), json!("text"), json!("input_required"), json!(1.5), json!({}), json!([]),
                json!([{"type": "text", "text": "t"}]), json!([[{"type": "image"}], {"a": {"b": []}}]),
            ])
        ), 0..8)
    ) {
        let map: serde_json::Map<String, Value> = fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let text = Value::Object(map.clone()).to_string();
        let call = read(&text);
        prop_assert_eq!(call.raw.get(), text);
        prop_assert_eq!(call.is_error, map.get("isError") == Some(&json!(true)));
        let structured = map.get("structuredContent").filter(|value| !value.is_null()).cloned();
        prop_assert_eq!(call.structured.as_ref().map(RawJson::to_value), structured);
        prop_assert_eq!(InputRequired::read(&call.raw).is_some(), matches!(call.kind, ResultKind::InputRequired(_)));
        let (needs_input, complete) = (InputRequired::read(&call.raw).is_some(), call.kind == ResultKind::Complete);
        let succeeds = complete && !call.is_error;
        let output = call.into_output();
        prop_assert_eq!(output.as_ref().is_ok_and(|output| output.input_required), needs_input);
        prop_assert_eq!(output.is_ok(), needs_input || succeeds);
    }

    #[test]
    fn any_text_arrives_as_it_was_sent(sent in any::<String>(), pretty in any::<bool>()) {
        let value = json!({"content": [{"type": "text", "text": sent}]});
        let result = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        prop_assert_eq!(read(&result.unwrap()).content, [text(&sent)]);
    }
}
