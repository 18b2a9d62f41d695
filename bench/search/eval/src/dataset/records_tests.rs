use super::*;

fn source(text: &str) -> SourceFile {
    SourceFile { file: "set/tools.jsonl".into(), text: text.to_owned() }
}

fn problem(text: &str) -> String {
    Catalogue::read(&source(text)).unwrap_err().to_string()
}

#[test]
fn tools_are_read_and_unknown_fields_ignored() {
    let text = "\u{feff}{\"id\":\"a\",\"name\":\"read\",\"server\":\"s\",\"category\":\"x\",\"params\":[{\"name\":\"p\"}]}\r\n\
                \n  \n{\"id\":\"b\",\"name\":\"write\",\"description\":\"d\"}";
    let tools = Catalogue::read(&source(text)).unwrap();
    assert_eq!((tools.position("a"), tools.position("b"), tools.position("c")), (Some(0), Some(1), None));
    assert_eq!(tools.list[0].params[0].name, "p");
    assert_eq!(tools.list[1].description, "d");
}

#[test]
fn invalid_lines_are_reported() {
    let good = r#"{"id":"a","name":"read"}"#;
    insta::assert_snapshot!(problem(&format!("{good}\n{{")), @"set/tools.jsonl line 2: EOF while parsing an object (column 1)");
    insta::assert_snapshot!(problem(&format!("{good}\n\n{good}")), @"set/tools.jsonl line 3: duplicate tool id");
    insta::assert_snapshot!(problem("[]"), @"set/tools.jsonl line 1: invalid length 0, expected struct ToolRecord with 7 elements (column 2)");
    insta::assert_snapshot!(problem(r#"{"id":7,"name":"x"}"#), @"set/tools.jsonl line 1: invalid type: integer `7`, expected a string (column 7)");
    insta::assert_snapshot!(problem(r#"{"id":"a"}"#), @"set/tools.jsonl line 1: missing field `name` (column 10)");
    insta::assert_snapshot!(problem("null"), @"set/tools.jsonl line 1: invalid type: null, expected struct ToolRecord (column 4)");
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    assert!(Catalogue::read(&source(&format!(r#"{{"id":"a","name":"n","other":{deep}}}"#))).is_ok());
    assert!(Catalogue::read(&source(&format!(r#"{{"id":"a","name":"n","params":{deep}}}"#))).is_err());
}

proptest::proptest! {
    #[test]
    fn any_line_is_read_or_rejected(text in "\\PC{0,80}(\n\\PC{0,40})?") {
        let _ = Catalogue::read(&source(&text));
        let _ = source(&text).lines::<QueryRecord>();
        let _ = source(&text).lines::<TaskRecord>();
    }
}
