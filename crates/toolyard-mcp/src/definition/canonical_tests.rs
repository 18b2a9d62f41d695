//! Which changes of a definition change its hash.

use super::*;

const MAX_DEPTH: usize = 64;

fn canonical_text(text: &str) -> String {
    canonical(&JsonTree::parse(text, MAX_DEPTH).unwrap())
}

fn have_same_hash(one: &str, other: &str) -> bool {
    let hashes = [one, other].map(|text| definition_hash(&JsonTree::parse(text, MAX_DEPTH).unwrap()));
    assert_eq!(hashes[0] == hashes[1], canonical_text(one) == canonical_text(other));
    hashes[0] == hashes[1]
}

#[test]
fn escapes_and_key_order_do_not_change_the_hash() {
    assert!(have_same_hash(
        r#"{"name":"t","description":"d é","inputSchema":{"type":"object","properties":{"b":{"minimum":1.0},"a":{}}}}"#,
        r#" {"inputSchema" : {"properties":{"a":{},"b":{"minimum":1}}, "type":"object"},
            "description":"\u0064 \u00e9", "name":"t"}"#,
    ));
}

#[test]
fn the_order_of_schema_sets_does_not_change_the_hash() {
    let schema = |inner: &str| format!(r#"{{"name":"t","inputSchema":{{"type":"object",{inner}}}}}"#);
    for (one, other) in [
        (r#""required":["a","b"]"#, r#""required":["b","a"]"#),
        (
            r#""properties":{"x":{"type":["string","null"]}}"#,
            r#""properties":{"x":{"type":["null","string"]}}"#,
        ),
        (r#""items":{"enum":[1,"b"]}"#, r#""items":{"enum":["b",1]}"#),
        (r#""anyOf":[{"required":["a","b"]},true]"#, r#""anyOf":[{"required":["b","a"]},true]"#),
        (r#""dependentRequired":{"x":["a","b"]}"#, r#""dependentRequired":{"x":["b","a"]}"#),
    ] {
        assert!(have_same_hash(&schema(one), &schema(other)), "{one}");
    }
    for (one, other) in [
        (r#""required":["a","b"]"#, r#""required":["a"]"#),
        (r#""required":["a"]"#, r#""required":["a","a"]"#),
        (r#""default":{"required":["a","b"]}"#, r#""default":{"required":["b","a"]}"#),
        (
            r#""properties":{"required":{"default":["a","b"]}}"#,
            r#""properties":{"required":{"default":["b","a"]}}"#,
        ),
        (r#""examples":[1,2]"#, r#""examples":[2,1]"#),
        (r#""anyOf":[{"type":"string"},{"type":"null"}]"#, r#""anyOf":[{"type":"null"},{"type":"string"}]"#),
        (r#""prefixItems":[true,false]"#, r#""prefixItems":[false,true]"#),
    ] {
        assert!(!have_same_hash(&schema(one), &schema(other)), "{one}");
    }
    assert!(!have_same_hash(r#"{"_meta":{"required":["a","b"]}}"#, r#"{"_meta":{"required":["b","a"]}}"#));
}

#[test]
fn numbers_are_compared_exactly() {
    for (number, expected) in [
        ("1", "1"),
        ("1.0", "1"),
        ("10e-1", "1"),
        ("100", "1e2"),
        ("1E2", "1e2"),
        ("0.0100", "1e-2"),
        ("-0.0", "0"),
        ("0e999", "0"),
        ("-15e+1", "-15e1"),
        ("123456789012345678901234567890", "12345678901234567890123456789e1"),
        ("1e99999999999999999999", "1e99999999999999999999"),
    ] {
        assert_eq!(canonical_number(number), expected, "{number}");
    }
    assert!(!have_same_hash(r#"{"a":9007199254740993}"#, r#"{"a":9007199254740992}"#));
    assert!(!have_same_hash(r#"{"a":0.1}"#, r#"{"a":0.10000000000000000001}"#));
    assert!(!have_same_hash(r#"{"a":1}"#, r#"{"a":"1"}"#));
}

#[test]
fn look_alike_characters_and_unknown_fields_change_the_hash() {
    assert!(!have_same_hash(
        r#"{"name":"a","description":"é"}"#,
        "{\"name\":\"a\",\"description\":\"e\u{301}\"}"
    ));
    assert!(!have_same_hash(r#"{"name":"a"}"#, r#"{"name":"a","_meta":{}}"#));
    assert!(!have_same_hash(r#"{"name":"a","x":null}"#, r#"{"name":"a"}"#));
    assert!(!have_same_hash(
        r#"{"name":"a","icons":[{"src":"x"}]}"#,
        r#"{"name":"a","icons":[{"src":"y"}]}"#
    ));
}
