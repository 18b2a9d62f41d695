//! What is used with a note, and what is quarantined.

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

fn used(value: &Value) -> UsableTool {
    match judge(&raw(value), JudgeRules::default()) {
        Judged::Usable(tool) => *tool,
        Judged::Quarantined(tool) => panic!("{tool:?}"),
    }
}

fn reason_of(text: &str) -> String {
    match judge(&RawJson::parse(text.to_owned()).unwrap(), JudgeRules::default()) {
        Judged::Usable(tool) => panic!("{tool:?}"),
        Judged::Quarantined(tool) => tool.reason.to_string(),
    }
}

fn reason(value: &Value) -> String {
    reason_of(&value.to_string())
}

#[test]
fn a_good_definition_is_kept_byte_for_byte() {
    let text = r#"{"name":"t","title":"T","description":"d","inputSchema":{"type":"object", "properties":{"n":{"default":1.50}}},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"x":1e400}}"#;
    let Judged::Usable(tool) = judge(&RawJson::parse(text.to_owned()).unwrap(), JudgeRules::default()) else {
        panic!()
    };
    assert_eq!(tool.notes, Vec::<String>::new());
    assert_eq!(tool.spec.raw.as_ref().unwrap().get(), text);
    assert_eq!(tool.definition.get(), text);
    assert_eq!(tool.spec.input_schema.get(), r#"{"type":"object", "properties":{"n":{"default":1.50}}}"#);
    assert_eq!((tool.spec.title.as_deref(), tool.spec.hints.read_only), (Some("T"), Some(true)));
    assert!(tool.spec.output_schema.is_some());
}

#[test]
fn sloppy_definitions_are_used_with_a_note() {
    for (sloppy, note) in [
        (json!({"name": "t"}), "it has no inputSchema; any object is taken for its arguments"),
        (tool(&json!({"inputSchema": null})), "it has no inputSchema; any object is taken for its arguments"),
        (
            tool(&json!({"inputSchema": {"properties": {}}})),
            "its inputSchema does not say that arguments are an object",
        ),
        (
            tool(&json!({"annotations": {"readOnlyHint": "yes"}})),
            "its readOnlyHint is a string and is ignored",
        ),
        (tool(&json!({"annotations": [1]})), "its annotations are an array and are ignored"),
        (tool(&json!({"title": 3})), "its title is a number and is ignored"),
        (tool(&json!({"outputSchema": true})), "its outputSchema is a boolean and is ignored"),
        (
            tool(&json!({"name": "Summarize Detection"})),
            "its name is not of the form that the protocol recommends",
        ),
        (tool(&json!({"name": "搜索"})), "its name is not of the form that the protocol recommends"),
        (tool(&json!({"name": "n".repeat(129)})), "its name is not of the form that the protocol recommends"),
    ] {
        assert_eq!(used(&sloppy).notes, [note], "{sloppy}");
    }
    assert_eq!(used(&json!({"name": "t"})).spec.input_schema.get(), r#"{"type":"object"}"#);
    assert_eq!(used(&tool(&json!({"outputSchema": true}))).spec.output_schema, None);
    assert_eq!(used(&tool(&json!({"annotations": {"title": "T"}}))).spec.title.as_deref(), Some("T"));
    assert_eq!(used(&tool(&json!({"description": null}))).notes, Vec::<String>::new());
}

#[test]
fn what_cannot_be_called_is_quarantined() {
    insta::assert_snapshot!(
        [
            reason(&json!(["t"])),
            reason(&json!({"description": "d"})),
            reason(&tool(&json!({"name": 3}))),
            reason(&tool(&json!({"name": ""}))),
            reason(&tool(&json!({"name": "n".repeat(257)}))),
            reason(&tool(&json!({"name": " t"}))),
            reason(&tool(&json!({"name": "a\nb"}))),
            reason(&tool(&json!({"name": "t\u{a0}"}))),
            reason(&tool(&json!({"name": "</tool>"}))),
            reason(&tool(&json!({"inputSchema": true}))),
            reason(&tool(&json!({"inputSchema": []}))),
            reason(&tool(&json!({"inputSchema": {"type": "string"}}))),
            reason(&tool(&json!({"inputSchema": {"type": "object", "$ref": "#"}}))),
            reason_of(r#"{"name":"t","name":"u"}"#),
            reason_of(r#"{"name":"t","inputSchema":{"type":"object","properties":{"a":{},"\u0061":{}}}}"#),
            reason_of(r#"{"name":"t","description":"\ud800"}"#),
        ]
        .join("\n"),
        @r#"
        the definition is an array and not an object
        the definition has no name
        the definition has no name
        the definition has no name
        the name is longer than 256 characters
        the name has white space that nobody can tell apart
        the name has white space that nobody can tell apart
        the name has white space that nobody can tell apart
        the name has characters that can be taken for something else in a prompt
        the inputSchema is a boolean; arguments are always an object
        the inputSchema is an array; arguments are always an object
        the inputSchema has the type "string"; arguments are always an object
        the inputSchema refers to itself without end
        the definition cannot be read safely: the key "name" comes twice in one object
        the definition cannot be read safely: the key "a" comes twice in one object
        the definition cannot be read safely: it holds a text that cannot be read
        "#
    );
}

#[test]
fn bombs_are_quarantined_and_their_neighbours_stay() {
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
    let judged = judge_list(&list, JudgeRules::default());
    let used: Vec<&str> = judged.usable.iter().map(|tool| tool.spec.name.as_ref()).collect();
    assert_eq!(used, ["good"]);
    let reasons: Vec<String> = judged
        .quarantined
        .iter()
        .map(|tool| format!("{}: {}", tool.name.as_deref().unwrap_or("?"), tool.reason))
        .collect();
    insta::assert_snapshot!(reasons.join("\n"), @r"
    long: the definition has 10485824 bytes; at most 524288 are read
    words: the description has 102400 bytes; at most 65536 are shown
    deep: the definition cannot be read safely: it is nested more than 64 levels deep
    wide: the inputSchema has 368922 bytes; at most 262144 are read
    ?: the definition is null and not an object
    ");
}

#[test]
fn definitions_that_share_a_name_are_not_guessed_between() {
    let list = [
        tool(&json!({"name": "a"})),
        tool(&json!({"name": "b"})),
        tool(&json!({"name": "a", "description": "other"})),
        tool(&json!({"name": "b"})),
    ];
    let judged = judge_list(&list.each_ref().map(raw), JudgeRules::default());
    let used: Vec<&str> = judged.usable.iter().map(|tool| tool.spec.name.as_ref()).collect();
    assert_eq!(used, ["b"]);
    assert_eq!(
        judged.quarantined,
        [QuarantinedTool { name: Some("a".to_owned()), reason: Quarantine::Ambiguous(2) }]
    );
}

#[test]
fn invalid_headers_matter_only_where_headers_are_sent() {
    let schema = json!({"type": "object", "properties": {"v": {"type": "number", "x-mcp-header": "V"}}});
    let definition = raw(&tool(&json!({"inputSchema": schema})));
    assert!(matches!(judge(&definition, JudgeRules::default()), Judged::Usable(_)));
    let Judged::Quarantined(tool) = judge(&definition, JudgeRules { mirrored_headers: true }) else {
        panic!()
    };
    assert!(matches!(tool.reason, Quarantine::BadHeader(_)));
}

#[test]
fn hidden_text_is_taken_out_of_words_and_refused_elsewhere() {
    let cleaned = used(&tool(&json!({
        "description": "Reads\u{200b} a \u{1b}[8mfile\u{1b}[0m",
        "inputSchema": {"type": "object", "properties": {"p": {"description": "a\u{ad}b", "default": 1}}},
        "_meta": {"note": "x\u{200e}"},
    })));
    assert_eq!(cleaned.spec.description, "Reads a file");
    insta::assert_snapshot!(cleaned.notes.join("\n"), @r"
    taken out of description: zero-width characters (1), terminal escapes (2)
    taken out of inputSchema.properties.p.description: zero-width characters (1)
    taken out of _meta.note: direction controls (1)
    ");
    let everything = [cleaned.spec.raw.as_ref().unwrap().get(), cleaned.spec.input_schema.get()].concat();
    let value: Value = cleaned.spec.raw.as_ref().unwrap().to_value();
    assert_eq!(value["inputSchema"]["properties"]["p"]["description"], "ab");
    assert!(!everything.contains("\\u00") && toolyard_core::hidden_places(&everything).is_empty());
    assert!(cleaned.definition.get().contains('\u{200b}'), "the pin covers what was sent");
    insta::assert_snapshot!(
        [
            reason(&tool(&json!({"name": "t\u{200b}"}))),
            reason(&tool(&json!({"name": "t\u{e0041}\u{e0042}"}))),
            reason(&tool(&json!({"description": "ok\u{e0041}\u{e0042}"}))),
            reason(&tool(&json!({"description": "ok\u{202e}txt"}))),
            reason(&tool(&json!({"title": "\u{2063}\u{2062}".repeat(4)}))),
            reason(&tool(&json!({"inputSchema": {"type": "object", "properties": {"pa\u{200b}th": {}}}}))),
            reason(&tool(&json!({"inputSchema": {"type": "object", "properties": {"p": {"enum": ["a\u{200b}"]}}}}))),
            reason(&tool(&json!({"inputSchema": {"type": "object", "default": {"description": "\u{1b}[2J"}}}))),
            reason(&tool(&json!({"inputSchema": {"type": "object", "description": "\u{e0041}"}}))),
        ]
        .join("\n"),
        @r"
        its name holds what people cannot see: zero-width characters (1)
        its name holds what people cannot see: tag characters (2)
        description holds what people cannot see: tag characters (2)
        description holds what people cannot see: direction overrides (1)
        title holds what people cannot see: zero-width characters (8)
        the key inputSchema.properties.pa\u{200b}th holds what people cannot see: zero-width characters (1)
        inputSchema.properties.p.enum holds what people cannot see: zero-width characters (1)
        inputSchema.default.description holds what people cannot see: terminal escapes (1)
        inputSchema.description holds what people cannot see: tag characters (1)
        "
    );
}
