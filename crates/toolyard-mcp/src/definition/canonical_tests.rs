//! Which changes of a definition count.

use super::*;

fn form(text: &str) -> String {
    canonical(&JsonTree::parse(text, 64).unwrap())
}

fn same(one: &str, other: &str) -> bool {
    let hashes = [one, other].map(|text| definition_hash(&JsonTree::parse(text, 64).unwrap()));
    assert_eq!(hashes[0] == hashes[1], form(one) == form(other));
    hashes[0] == hashes[1]
}

#[test]
fn escapes_and_key_order_do_not_count() {
    assert!(same(
        r#"{"name":"t","description":"d é","inputSchema":{"type":"object","properties":{"b":{"minimum":1.0},"a":{}}}}"#,
        r#" {"inputSchema" : {"properties":{"a":{},"b":{"minimum":1}}, "type":"object"},
            "description":"\u0064 \u00e9", "name":"t"}"#,
    ));
}

#[test]
fn the_order_of_schema_sets_does_not_count() {
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
        assert!(same(&schema(one), &schema(other)), "{one}");
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
        assert!(!same(&schema(one), &schema(other)), "{one}");
    }
    assert!(!same(r#"{"_meta":{"required":["a","b"]}}"#, r#"{"_meta":{"required":["b","a"]}}"#));
}

#[test]
fn numbers_are_compared_exactly() {
    for (spelled, value) in [
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
        assert_eq!(canonical_number(spelled), value, "{spelled}");
    }
    assert!(!same(r#"{"a":9007199254740993}"#, r#"{"a":9007199254740992}"#));
    assert!(!same(r#"{"a":0.1}"#, r#"{"a":0.10000000000000000001}"#));
    assert!(!same(r#"{"a":1}"#, r#"{"a":"1"}"#));
}

#[test]
fn look_alikes_and_every_unknown_field_are_changes() {
    assert!(!same(r#"{"name":"a","description":"é"}"#, "{\"name\":\"a\",\"description\":\"e\u{301}\"}"));
    assert!(!same(r#"{"name":"a"}"#, r#"{"name":"a","_meta":{}}"#));
    assert!(!same(r#"{"name":"a","x":null}"#, r#"{"name":"a"}"#));
    assert!(!same(r#"{"name":"a","icons":[{"src":"x"}]}"#, r#"{"name":"a","icons":[{"src":"y"}]}"#));
}
