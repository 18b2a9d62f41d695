//! Aggregates over lists of all kinds.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn expand(expression: &str, values: &Value) -> Result<(String, usize), String> {
    match expand_aggregates(expression, Some(values)) {
        Ok(Some(expanded)) => Ok((expanded.expression, expanded.ignored)),
        Ok(None) => Err("contains no aggregate".to_owned()),
        Err(error) => Err(error.message().to_owned()),
    }
}

#[test]
fn an_aggregate_may_be_spelled_in_several_ways() {
    let values = json!([10, 20.5, "1,000", "0.5"]);
    for expression in [
        "sum(values)",
        "SUM(Values)",
        "total( values )",
        "sum",
        "Sum of values",
        "sum values",
        "sum($values)",
    ] {
        assert_eq!(expand(expression, &values), Ok(("(1031)".to_owned(), 0)), "{expression}");
    }
}

#[test]
fn every_aggregate_is_expanded() {
    let expanded = |expression: &str| expand(expression, &json!([3, 1, 2, 10])).unwrap().0;
    assert_eq!(expanded("avg(values)"), "((16) / 4)");
    assert_eq!(expanded("mean(values) * 2"), "((16) / 4) * 2");
    assert_eq!(expanded("max(values) - min(values)"), "(10) - (1)");
    assert_eq!(expanded("median(values)"), "((2 + 3) / 2)");
    assert_eq!(expanded("count(values)"), "4");
    assert_eq!(expand("median(values)", &json!([3, 1, 2])), Ok(("(2)".to_owned(), 0)));
}

#[test]
fn non_numbers_are_ignored_and_counted() {
    let column = json!(["Sales", 10, [20, [null, "30"]], true, {"weight": 5}, "12 apples", "1,2", "", "NaN", "-1,234.50"]);
    assert_eq!(expand("sum(values)", &column), Ok(("(-1174.5)".to_owned(), 8)));
    assert_eq!(expand("sum(values)", &json!(7)), Ok(("(7)".to_owned(), 0)));
    let cells = json!([{"value": "Sales", "row": 1}, {"value": 5, "row": 2}, {"value": [6], "row": 3}]);
    assert_eq!(expand("sum(values)", &cells), Ok(("(11)".to_owned(), 1)));
    assert_eq!(expand("values", &json!([7])), Ok(("7".to_owned(), 0)));
    assert_eq!(expand("count(values)", &json!(["a"])), Ok(("0".to_owned(), 1)));
    assert!(expand("sum(values)", &json!(["a"])).unwrap_err().contains("no number"));
    assert!(expand("1 + 1", &json!([1])).unwrap_err().contains("does not use `values`"));
    assert!(expand("sum(values)", &json!([1e300])).unwrap_err().contains("too large"));
}

#[test]
fn sums_are_exact() {
    let expanded = |values: Value| expand("sum(values)", &values).unwrap().0;
    assert_eq!(expanded(json!([0.1, 0.2])), "(0.3)");
    assert_eq!(expanded(json!([9_007_199_254_740_993_u64, 1])), "(9007199254740994)");
    assert_eq!(expanded(json!([-0.5, 0.25])), "(-0.25)");
    assert_eq!(expanded(json!(["1e3", "2.50"])), "(1002.5)");
}

#[test]
fn a_list_may_be_inline() {
    let expanded =
        |expression: &str| expand_aggregates(expression, None).unwrap().map(|expanded| expanded.expression);
    assert_eq!(expanded("sum([\"Sales\", 10, 20.5, null])").as_deref(), Some("(30.5)"));
    assert_eq!(expanded("=SUM(1, 2, 3)").as_deref(), Some("(6)"));
    assert_eq!(expanded("min(3)").as_deref(), Some("(3)"));
    assert_eq!(expanded("sum([1, 2]) / count([1, 2]) * 2").as_deref(), Some("(3) / 2 * 2"));
    for expression in ["sqrt(16)", "1 + 1", "sum(A1:A3)", "sum(values)", "(1)", "sum()"] {
        assert_eq!(expanded(expression), None, "{expression}");
    }
}

#[test]
fn a_million_values_are_the_limit() {
    let values = Value::Array(vec![json!(1); MAX_VALUES]);
    assert_eq!(expand("sum(values)", &values).unwrap().0, "(1000000)");
    let more = json!([values, 1, 2]);
    assert!(expand("sum(values)", &more).unwrap_err().contains("1,000,000"));
}

proptest! {
    #[test]
    fn sums_of_integers_are_exact(numbers in prop::collection::vec(any::<i32>(), 1..50)) {
        let total: i64 = numbers.iter().map(|number| i64::from(*number)).sum();
        let sum = expand("sum(values)", &json!(numbers)).unwrap().0;
        prop_assert_eq!(sum, format!("({total})"));
    }

    #[test]
    fn no_text_causes_a_panic(text in ".{0,30}", expression in "[a-z(), \\[\\]0-9.=$é]{0,30}") {
        let _ = expand_aggregates(&expression, Some(&json!([text, 1])));
        let _ = expand_aggregates(&expression, None);
    }
}
