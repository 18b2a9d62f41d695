//! Which definitions are valid, with which notes, and which are rejected.

use serde_json::{Value, json};

use super::*;

fn raw(value: &Value) -> RawJson {
    RawJson::from_value(value)
}

fn tool(extra: &Value) -> Value {
    let mut tool = json!({"name": "t", "description": "d", "inputSchema": {"type": "object"}});
    tool.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    tool
}

fn validated(value: &Value) -> ValidTool {
    validate_tool(&raw(value), ValidationRules::default()).unwrap()
}

fn rejection_of_text(text: &str) -> String {
    let definition = RawJson::parse(text.to_owned()).unwrap();
    validate_tool(&definition, ValidationRules::default()).unwrap_err().reason.to_string()
}

fn rejection(value: &Value) -> String {
    rejection_of_text(&value.to_string())
}

#[test]
fn a_valid_definition_is_kept_byte_for_byte() {
    let text = r#"{"name":"t","title":"T","description":"d","inputSchema":{"type":"object", "properties":{"n":{"default":1.50}}},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"x":1e400}}"#;
    let definition = RawJson::parse(text.to_owned()).unwrap();
    let tool = validate_tool(&definition, ValidationRules::default()).unwrap();
    assert_eq!(tool.notes, Vec::<String>::new());
    assert_eq!(tool.spec.raw.as_ref().unwrap().get(), text);
    assert_eq!(tool.definition.get(), text);
    assert_eq!(tool.spec.input_schema.get(), r#"{"type":"object", "properties":{"n":{"default":1.50}}}"#);
    assert_eq!((tool.spec.title.as_deref(), tool.spec.hints.read_only), (Some("T"), Some(true)));
    assert!(tool.spec.output_schema.is_some());
}

#[test]
fn a_name_with_an_at_sign_is_rejected() {
    let reason = rejection(&tool(&json!({"name": "upload@excel"})));
    assert_eq!(reason, "the name contains `@`, which separates a tool from its source in rules");
}

#[test]
fn sloppy_definitions_are_valid_with_a_note() {
    for (sloppy, note) in [
        (json!({"name": "t"}), "no inputSchema: any object is accepted as arguments"),
        (tool(&json!({"inputSchema": null})), "no inputSchema: any object is accepted as arguments"),
        (
            tool(&json!({"inputSchema": {"properties": {}}})),
            "the inputSchema does not declare the type object",
        ),
        (
            tool(&json!({"annotations": {"readOnlyHint": "yes"}})),
            "the readOnlyHint is a string and is ignored",
        ),
        (tool(&json!({"annotations": [1]})), "the annotations are an array and are ignored"),
        (tool(&json!({"title": 3})), "the title is a number and is ignored"),
        (tool(&json!({"outputSchema": true})), "the outputSchema is a boolean and is ignored"),
        (
            tool(&json!({"name": "Summarize:Detection"})),
            "the name does not have the form that the protocol recommends",
        ),
        (tool(&json!({"name": "搜索"})), "the name does not have the form that the protocol recommends"),
        (
            tool(&json!({"name": "n".repeat(129)})),
            "the name does not have the form that the protocol recommends",
        ),
    ] {
        assert_eq!(validated(&sloppy).notes, [note], "{sloppy}");
    }
    assert_eq!(validated(&json!({"name": "t"})).spec.input_schema.get(), r#"{"type":"object"}"#);
    assert_eq!(validated(&tool(&json!({"outputSchema": true}))).spec.output_schema, None);
    assert_eq!(validated(&tool(&json!({"annotations": {"title": "T"}}))).spec.title.as_deref(), Some("T"));
    assert_eq!(validated(&tool(&json!({"description": null}))).notes, Vec::<String>::new());
}

#[test]
fn definitions_that_cannot_be_called_are_rejected() {
    insta::assert_snapshot!(
        [
            rejection(&json!(["t"])),
            rejection(&json!({"description": "d"})),
            rejection(&tool(&json!({"name": 3}))),
            rejection(&tool(&json!({"name": ""}))),
            rejection(&tool(&json!({"name": "n".repeat(257)}))),
            rejection(&tool(&json!({"name": " t"}))),
            rejection(&tool(&json!({"name": "a\nb"}))),
            rejection(&tool(&json!({"name": "t\u{a0}"}))),
            rejection(&tool(&json!({"name": "</tool>"}))),
            rejection(&tool(&json!({"inputSchema": true}))),
            rejection(&tool(&json!({"inputSchema": []}))),
            rejection(&tool(&json!({"inputSchema": {"type": "string"}}))),
            rejection(&tool(&json!({"inputSchema": {"type": "object", "$ref": "#"}}))),
            rejection_of_text(r#"{"name":"t","name":"u"}"#),
            rejection_of_text(r#"{"name":"t","inputSchema":{"type":"object","properties":{"a":{},"\u0061":{}}}}"#),
            rejection_of_text(r#"{"name":"t","description":"\ud800"}"#),
        ]
        .join("\n"),
        @r#"
        the definition is an array, not an object
        the definition has no name
        the definition has no name
        the definition has no name
        the name is longer than 256 characters
        the name has a space or a bracket
        the name has a space or a bracket
        the name has a space or a bracket
        the name has characters with a meaning in prompts
        the inputSchema is a boolean; it must describe an object
        the inputSchema is an array; it must describe an object
        the inputSchema has the type "string"; it must describe an object
        the inputSchema contains a circular reference
        the definition is invalid JSON: duplicate key "name"
        the definition is invalid JSON: duplicate key "a"
        the definition is invalid JSON: malformed value or text
        "#
    );
}

#[test]
fn oversized_definitions_are_rejected_and_the_others_stay() {
    let mut deep = json!({});
    for _ in 0..70 {
        deep = json!({"items": deep});
    }
    let wide: serde_json::Map<String, Value> =
        (0..20_000).map(|index| (format!("property{index}"), json!({}))).collect();
    let list: Vec<RawJson> = [
        tool(&json!({"name": "long", "description": "x".repeat(10 << 20)})),
        tool(&json!({"name": "words", "description": "x".repeat(100 << 10)})),
        tool(&json!({"name": "deep", "inputSchema": deep})),
        tool(&json!({"name": "wide", "inputSchema": {"type": "object", "properties": wide}})),
        tool(&json!({"name": "good"})),
        json!(null),
    ]
    .iter()
    .map(raw)
    .collect();
    let list = validate_tools(&list, ValidationRules::default());
    let validated: Vec<&str> = list.valid.iter().map(|tool| tool.spec.name.as_ref()).collect();
    assert_eq!(validated, ["good"]);
    let reasons: Vec<String> = list
        .rejected
        .iter()
        .map(|tool| format!("{}: {}", tool.name.as_deref().unwrap_or("?"), tool.reason))
        .collect();
    insta::assert_snapshot!(reasons.join("\n"), @r"
    long: the definition has 10485824 bytes; at most 524288 are allowed
    words: the description has 102400 bytes; at most 65536 are allowed
    deep: the definition is invalid JSON: nested more than 64 levels deep
    wide: the inputSchema has 368922 bytes; at most 262144 are allowed
    ?: the definition is null, not an object
    ");
}

#[test]
fn different_definitions_of_one_name_are_rejected() {
    let list = [
        tool(&json!({"name": "a"})),
        tool(&json!({"name": "b"})),
        tool(&json!({"name": "a", "description": "other"})),
        tool(&json!({"name": "b"})),
    ];
    let list = validate_tools(&list.each_ref().map(raw), ValidationRules::default());
    let validated: Vec<&str> = list.valid.iter().map(|tool| tool.spec.name.as_ref()).collect();
    assert_eq!(validated, ["b"]);
    assert_eq!(list.rejected, [RejectedTool { name: Some("a".to_owned()), reason: Rejection::Ambiguous(2) }]);
}

#[test]
fn invalid_headers_are_rejected_only_where_headers_are_sent() {
    let schema = json!({"type": "object", "properties": {"v": {"type": "number", "x-mcp-header": "V"}}});
    let definition = raw(&tool(&json!({"inputSchema": schema})));
    assert!(validate_tool(&definition, ValidationRules::default()).is_ok());
    let tool = validate_tool(&definition, ValidationRules { mirrored_headers: true }).unwrap_err();
    assert!(matches!(tool.reason, Rejection::InvalidMirroredHeader(_)));
}

#[test]
fn unsafe_characters_are_removed_from_prose_and_rejected_elsewhere() {
    let cleaned = validated(&tool(&json!({
        "description": "Reads\u{200b} a \u{1b}[8mfile\u{1b}[0m",
        "inputSchema": {"type": "object", "properties": {"p": {"description": "a\u{ad}b", "default": 1}}},
        "_meta": {"note": "x\u{200e}"},
    })));
    assert_eq!(cleaned.spec.description, "Reads a file");
    insta::assert_snapshot!(cleaned.notes.join("\n"), @r"
    removed from description: zero-width characters (1), terminal escapes (2)
    removed from inputSchema.properties.p.description: zero-width characters (1)
    removed from _meta.note: direction controls (1)
    ");
    let everything = [cleaned.spec.raw.as_ref().unwrap().get(), cleaned.spec.input_schema.get()].concat();
    let value: Value = cleaned.spec.raw.as_ref().unwrap().to_value();
    assert_eq!(value["inputSchema"]["properties"]["p"]["description"], "ab");
    assert!(!everything.contains("\\u00") && toolyard_core::find_unsafe(&everything).is_empty());
    assert!(cleaned.definition.get().contains('\u{200b}'), "the pin covers what was sent");
    insta::assert_snapshot!(
        [
            rejection(&tool(&json!({"name": "t\u{200b}"}))),
            rejection(&tool(&json!({"name": "t\u{e0041}\u{e0042}"}))),
            rejection(&tool(&json!({"description": "ok\u{e0041}\u{e0042}"}))),
            rejection(&tool(&json!({"description": "ok\u{202e}txt"}))),
            rejection(&tool(&json!({"title": "\u{2063}\u{2062}".repeat(4)}))),
            rejection(&tool(&json!({"inputSchema": {"type": "object", "properties": {"pa\u{200b}th": {}}}}))),
            rejection(&tool(&json!({"inputSchema": {"type": "object", "properties": {"p": {"enum": ["a\u{200b}"]}}}}))),
            rejection(&tool(&json!({"inputSchema": {"type": "object", "default": {"description": "\u{1b}[2J"}}}))),
            rejection(&tool(&json!({"inputSchema": {"type": "object", "description": "\u{e0041}"}}))),
        ]
        .join("\n"),
        @r"
        the name contains unsafe characters: zero-width characters (1)
        the name contains unsafe characters: tag characters (2)
        description contains unsafe characters: tag characters (2)
        description contains unsafe characters: direction overrides (1)
        title contains unsafe characters: zero-width characters (8)
        the key inputSchema.properties.pa\u{200b}th contains unsafe characters: zero-width characters (1)
        inputSchema.properties.p.enum contains unsafe characters: zero-width characters (1)
        inputSchema.default.description contains unsafe characters: terminal escapes (1)
        inputSchema.description contains unsafe characters: tag characters (1)
        "
    );
}
