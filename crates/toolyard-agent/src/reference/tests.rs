//! Grammar of references, preserved types, errors, and arbitrary values.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{argument_tree::ArgumentNode, error::ReferenceError, resolve::*};

/// Arguments as JSON values, to compare with what `resolve_references` serializes.
#[derive(Debug)]
struct ResolvedMap {
    arguments: Map<String, Value>,
    notes: Vec<String>,
}

fn resolve(arguments: &Map<String, Value>, value_of: ValueLookup<'_>) -> Result<ResolvedMap, ReferenceError> {
    let values = referenced_values(arguments, value_of);
    let mut resolver = Resolver { values: &values, notes: Vec::new() };
    let nodes = resolver.fields(arguments)?;
    let value = |(name, node): (&str, ArgumentNode<'_>)| (name.to_owned(), node.into_value());
    Ok(ResolvedMap { arguments: nodes.into_iter().map(value).collect(), notes: resolver.notes })
}

fn arguments(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(entries) => entries,
        other => panic!("{other} is no object"),
    }
}

fn sheet() -> Value {
    let cell = |row: usize, value: Value| json!({"address": format!("B{row}"), "value": value, "row": row});
    json!({
        "range": "B1:B4", "sheet_name": "Sheet1",
        "cells": [cell(1, json!("Sales")), cell(2, json!(10)), cell(3, json!(20.5)), cell(4, json!(null))],
    })
}

fn example_value(step: &str) -> Option<Arc<Value>> {
    Some(Arc::new(match step {
        "read" => sheet(),
        "sum" => json!({"result": 30.5, "exact": true}),
        "name" => json!("report"),
        "rows" => json!([["Month", "Sales"], ["Jan", 1], ["Feb", 2]]),
        "number" => json!(7),
        _ => return None,
    }))
}

fn resolve_one(text: &str) -> Result<(Value, Vec<String>), String> {
    let given = arguments(json!({ "a": text }));
    let resolved = resolve(&given, &example_value).map_err(|error| error.to_string())?;
    let raw = resolve_references(&given, &[], &example_value).unwrap();
    assert_eq!(raw.arguments.to_value(), Value::Object(resolved.arguments.clone()), "{text}");
    Ok((resolved.arguments["a"].clone(), resolved.notes))
}

fn resolve_exact(text: &str) -> Value {
    let (value, notes) = resolve_one(text).unwrap();
    assert_eq!(notes, [""; 0], "{text}");
    value
}

#[test]
fn a_whole_reference_keeps_the_type_of_its_value() {
    assert_eq!(resolve_exact("$read"), sheet());
    assert_eq!(resolve_exact("$read.range"), json!("B1:B4"));
    assert_eq!(resolve_exact(" $read.cells[1].value "), json!(10));
    assert_eq!(resolve_exact("${read.cells[1].value}"), json!(10));
    assert_eq!(resolve_exact(r#"$read["cells"][-2]['value']"#), json!(20.5));
    assert_eq!(resolve_exact("$read.cells.1.value"), json!(10));
    assert_eq!(resolve_exact("$read.cells[*].value"), json!(["Sales", 10, 20.5, null]));
    assert_eq!(resolve_exact("$read.cells[].value"), json!(["Sales", 10, 20.5, null]));
    assert_eq!(resolve_exact("$read.cells[1:].value"), json!([10, 20.5, null]));
    assert_eq!(resolve_exact("$read.cells[1:3][*].value"), json!([10, 20.5]));
    assert_eq!(resolve_exact("$read.cells[1:-1][0].value"), json!(10));
    assert_eq!(resolve_exact("$rows[1:][*][1]"), json!([1, 2]));
    assert_eq!(resolve_exact("$rows[*][*]"), json!(["Month", "Sales", "Jan", 1, "Feb", 2]));
}

#[test]
fn the_result_field_is_used_when_its_siblings_are_metadata() {
    assert_eq!(resolve_exact("$sum"), json!(30.5));
    assert_eq!(resolve_exact("$sum.result"), json!(30.5));
    assert_eq!(resolve_exact("It is $sum."), json!("It is 30.5."));
}

#[test]
fn a_reference_inside_text_is_inserted_as_text() {
    assert_eq!(resolve_exact("$read.sheet_name has $read.cells[1].value"), json!("Sheet1 has 10"));
    assert_eq!(resolve_exact("合计为$read.cells[1].value元"), json!("合计为10元"));
    assert_eq!(resolve_exact("list: $rows[1]"), json!(r#"list: ["Jan",1]"#));
    assert_eq!(
        resolve_exact("$read.cells[1:2].value + 1"),
        json!("10 + 1"),
        "a list with one item is inserted as that item"
    );
    assert_eq!(resolve_exact("$name.xlsx"), json!("report.xlsx"));
    assert_eq!(resolve_exact("${name}.xlsx"), json!("report.xlsx"));
    assert_eq!(resolve_exact("out/$name.xlsx"), json!("out/report.xlsx"));
    assert_eq!(resolve_exact("Written by $name.Thanks"), json!("Written by report.Thanks"));
}

#[test]
fn a_dollar_sign_that_is_no_reference_stays() {
    for text in
        ["$5", "$5.00", "$ 7", "costs $12", "$AAPL", "in $HOME now", "cost$", "$", "a $b c", "^x$", "${}"]
    {
        assert_eq!(resolve_exact(text), json!(text));
    }
    assert_eq!(resolve_exact("$$read costs $$5"), json!("$read costs $5"));
    assert_eq!(resolve_exact("$$read"), json!("$read"));
}

#[test]
fn resolved_values_are_not_scanned_for_references() {
    let value = |step: &str| (step == "a").then(|| Arc::new(json!({"x": "$b", "b": 1})));
    let resolved = resolve(&arguments(json!({"p": "$a.x", "q": ["$a", {"$a": "$a.b"}]})), &value).unwrap();
    assert_eq!(Value::Object(resolved.arguments), json!({"p": "$b", "q": [{"x": "$b", "b": 1}, {"$a": 1}]}));
}

#[test]
fn an_unknown_path_is_an_error_that_outlines_the_value() {
    insta::assert_snapshot!(resolve_one("$read.total").unwrap_err(), @r#"`$read.total` leads nowhere: the value of `read` is {range: text "B1:B4", sheet_name: text "Sheet1", cells: [4 × {address: text "B4", value: number 20.5, row: number 4}]}"#);
    insta::assert_snapshot!(resolve_one("$name.first").unwrap_err(), @r#"`$name.first`: step `name` returned text ("report"), not an object with a field `first`"#);
    insta::assert_snapshot!(resolve_one("$number.total").unwrap_err(), @"`$number.total`: step `number` returned a number (7), not an object with a field `total`");
    insta::assert_snapshot!(resolve_one("$total").unwrap_err(), @"`$total` refers to a step `total` that has no value");
    for text in
        ["$read.cells[9]", "$name.first", "$rows.profit", "$number[0]", "$total.result", "x $total.result"]
    {
        assert!(resolve_one(text).is_err(), "{text}: {:?}", resolve_one(text));
    }
}

#[test]
fn an_object_is_reduced_to_the_part_that_the_parameter_takes() {
    let rows = json!({"type": "array", "items": {"type": "array", "items": {}}});
    let schema = json!({"properties": {"data": rows, "expression": {"type": "string"}, "values": {"type": ["array", "number"]},
        "items": {"type": "array"}}});
    let params = toolyard_core::params(&schema);
    let cell = json!({"range": "B2", "cells": [{"address": "B2", "value": 10, "row": 2, "column": 2}]});
    let time = json!({"timezone": "Asia/Tokyo", "datetime": "2026-11-15T23:19:24", "is_dst": false});
    let odd = json!({"left": {"x": "a"}, "right": {"x": "b"}});
    let value = |step: &str| {
        let value = match step {
            "cell" => &cell,
            "time" => &time,
            "odd" => &odd,
            _ => return example_value(step),
        };
        Some(Arc::new(value.clone()))
    };
    let resolve_for_params = |given: Value| {
        resolve_references(&arguments(given), &params, &value)
            .map(|resolved| (resolved.arguments.to_value(), resolved.notes.len()))
    };
    let numbers = json!({"values": ["Sales", 10, 20.5, null]});
    for text in ["$read.range", "$read", "$read.cells", "$read.cells[*].value"] {
        assert_eq!(resolve_for_params(json!({"values": text})).unwrap().0, numbers, "{text}");
    }
    assert_eq!(resolve_for_params(json!({"values": "$rows"})).unwrap().0["values"][1], json!(["Jan", 1]));
    for text in ["$read.cells", "$read", "$read.range"] {
        assert_eq!(
            resolve_for_params(json!({"items": text})).unwrap().0["items"],
            sheet()["cells"],
            "{text}"
        );
    }
    assert_eq!(
        resolve_for_params(json!({"expression": "$cell + $cell * 2"})).unwrap(),
        (json!({"expression": "10 + 10 * 2"}), 2)
    );
    assert_eq!(
        resolve_for_params(json!({"expression": "see $odd"})).unwrap().0,
        json!({"expression": format!("see {odd}")})
    );
    assert_eq!(
        resolve_for_params(json!({"data": [["at", "$time"]]})).unwrap().0,
        json!({"data": [["at", "2026-11-15T23:19:24"]]})
    );
    assert_eq!(
        resolve_for_params(json!({"data": [["$read.cells[1:3].value"]]})).unwrap().0,
        json!({"data": [[10, 20.5]]})
    );
    insta::assert_snapshot!(resolve_for_params(json!({"data": [["$odd"]]})).unwrap_err().to_string(), @r#"a cell takes one thing, not {left: {x: text "a"}, right: {x: text "b"}}: refer to a part of it"#);
}

#[test]
fn references_are_found_at_any_depth() {
    let given = arguments(json!({"a": "$x", "b": ["$y.k[0]", {"c": "see $z and $5"}], "$no": 1, "d": "$$x"}));
    let found: Vec<(String, bool)> =
        references(&given).into_iter().map(|found| (found.written, found.is_whole_argument)).collect();
    let expected = [("$x", true), ("$y.k[0]", true), ("$z", false), ("$5", false)];
    assert_eq!(found, expected.map(|(written, whole)| (written.to_owned(), whole)));
    assert!(references(&arguments(json!({"a": "$x.map(y)"})))[0].has_unsupported_suffix);
    assert!(references(&arguments(json!({"a": "$x.c[?(@.row>1)]"})))[0].has_unsupported_suffix);
}

#[test]
fn a_large_value_is_serialized_without_copies() {
    let large = Arc::new(json!({"rows": vec![json!("x".repeat(1_000)); 20_000]}));
    let shared = Arc::clone(&large);
    let value = move |step: &str| (step == "big").then(|| Arc::clone(&shared));
    let resolved = resolve_references(&arguments(json!({"data": "$big.rows"})), &[], &value).unwrap();
    assert!(resolved.arguments.get().len() > 20_000_000);
    assert_eq!(Arc::strong_count(&large), 2, "no copy is retained");
}

#[test]
fn resolved_values_are_coerced_to_the_parameter() {
    let rows = json!({"type": "array", "items": {"type": "array", "items": {}}});
    let schema =
        json!({"properties": {"data": rows, "text": {"type": "string"}, "number": {"type": "number"}}});
    let params = toolyard_core::params(&schema);
    let resolve_for_params = |given: Value| {
        resolve_references(&arguments(given), &params, &example_value).unwrap().arguments.to_value()
    };
    assert_eq!(resolve_for_params(json!({"data": "$sum"})), json!({"data": [[30.5]]}));
    assert_eq!(resolve_for_params(json!({"data": [["$sum"]]})), json!({"data": [[30.5]]}));
    assert_eq!(resolve_for_params(json!({"data": ["$sum", "$number"]})), json!({"data": [[30.5, 7]]}));
    assert_eq!(resolve_for_params(json!({"data": "$read.cells[1:3].value"})), json!({"data": [[10, 20.5]]}));
    assert_eq!(
        resolve_for_params(json!({"data": "$rows"})),
        json!({"data": [["Month", "Sales"], ["Jan", 1], ["Feb", 2]]})
    );
    assert_eq!(
        resolve_for_params(json!({"text": "$sum", "number": "$read.cells[1:2].value"})),
        json!({"text": "30.5", "number": 10})
    );
}

/// Any value at all.
pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
        Just(json!("{\"value\": [1, 2]}")),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let key = prop_oneof!["[a-c]", Just("value".to_owned()), Just("result".to_owned()), ".{0,5}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Texts that are references, almost references, or arbitrary.
fn any_text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "$",
        "$",
        "$a",
        "$b.",
        "{",
        "}",
        "a",
        "b",
        ".",
        ".value",
        ".values",
        "[",
        "]",
        "[*]",
        "[0]",
        "[-1]",
        "[1:]",
        ":",
        "\"",
        "'",
        "*",
        "-9",
        "99999999999999999999",
        "result",
        ".result",
        "(",
        " ",
        "元",
        "é",
    ]);
    prop_oneof![prop::collection::vec(pieces, 0..10).prop_map(|all| all.concat()), ".{0,30}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn resolving_never_panics_and_both_forms_agree(texts in prop::collection::vec(any_text(), 0..4), a in any_value(), b in any_value()) {
        let given = arguments(json!({"list": texts, "more": {"text": texts.first()}}));
        let (a, b) = (Arc::new(a), Arc::new(b));
        let value = |step: &str| match step { "a" => Some(Arc::clone(&a)), "b" => Some(Arc::clone(&b)), _ => None };
        match (resolve(&given, &value), resolve_references(&given, &[], &value)) {
            (Ok(one), Ok(other)) => prop_assert_eq!(Value::Object(one.arguments).to_string(), other.arguments.get()),
            (one, other) => prop_assert_eq!(one.err(), other.err()),
        }
    }

    #[test]
    fn arguments_without_a_dollar_sign_are_unchanged(value in any_value()) {
        prop_assume!(!value.to_string().contains('$'));
        let given = arguments(json!({ "a": value }));
        prop_assert_eq!(resolve(&given, &|_| None).unwrap().arguments, given);
    }

    #[test]
    fn a_whole_reference_yields_the_value_itself(value in any_value()) {
        let shared = Arc::new(json!({"part": value, "other": 1}));
        let of = |step: &str| (step == "s").then(|| Arc::clone(&shared));
        let resolved = resolve(&arguments(json!({"a": "$s.part"})), &of).unwrap();
        prop_assert_eq!(&resolved.arguments["a"], &shared["part"]);
        prop_assert!(resolved.notes.is_empty());
    }

    #[test]
    fn doubled_dollar_signs_are_literal(text in any_text()) {
        let given = arguments(json!({"a": text.replace('$', "$$")}));
        let resolved = resolve(&given, &|_| Some(Arc::new(json!("never")))).unwrap();
        prop_assert_eq!(&resolved.arguments["a"], &json!(text));
    }
}

#[test]
fn arguments_over_the_size_limit_are_refused_before_serialization() {
    let big = Arc::new(json!("x".repeat(1 << 20)));
    let many: Vec<&str> = std::iter::repeat_n("$big", 200).collect();
    let Value::Object(arguments) = json!({ "all": many }) else { unreachable!() };
    let resolved = resolve_references(&arguments, &[], &|_| Some(Arc::clone(&big)));
    assert_eq!(resolved, Err(ReferenceError::TooLarge { limit_mb: 128 }));
}

#[test]
fn the_only_matching_numeric_column_of_a_table_is_used() {
    let cell = |row: i64, column: i64, value: Value| json!({"row": row, "column": column, "value": value});
    let table = |more: &[Value]| {
        let mut cells = vec![
            cell(1, 1, json!("month")),
            cell(1, 2, json!("sales")),
            cell(2, 1, json!("May")),
            cell(2, 2, json!(7)),
            cell(3, 1, json!("June")),
            cell(3, 2, json!(8)),
        ];
        cells.extend_from_slice(more);
        json!({"range": "A1:B3", "cells": cells})
    };
    let params = toolyard_core::params(&json!({"type": "object", "properties": {
        "values": {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "number"}]}}}));
    let values = |written: &str, value: &Value| {
        let value = Arc::new(value.clone());
        let given = arguments(json!({ "values": written }));
        let resolved = resolve_references(&given, &params, &|_| Some(Arc::clone(&value))).unwrap();
        resolved.arguments.to_value()["values"].clone()
    };
    for written in ["$read.values", "$read.cells[*].value", "$read", "$read.sales"] {
        assert_eq!(values(written, &table(&[])), json!([7, 8]), "{written}");
    }
    let with_ids = table(&[cell(1, 3, json!("id")), cell(2, 3, json!(1)), cell(3, 3, json!(2))]);
    assert_eq!(values("$sales.values", &with_ids), json!([7, 8]), "the step is called like the column");
    assert_eq!(values("$read.rows[*].sales", &with_ids), json!([7, 8]));
    let without_heading =
        json!({"cells": [cell(2, 1, json!("May")), cell(2, 2, json!(7)), cell(3, 1, json!("June"))]});
    assert_eq!(values("$read.items[*].sales", &without_heading), json!([7]), "the only numeric column");
}
