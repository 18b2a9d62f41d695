//! Fuzzy lookups have a bounded cost.

use serde_json::json;

use super::{super::lookup_trace::MAX_VISITS, *};

fn key(name: &str) -> PathSegment {
    PathSegment::Key(name.to_owned())
}

#[test]
fn a_value_that_exceeds_the_visit_budget_has_no_match() {
    let mut entries: Map<String, Value> = (0..MAX_VISITS).map(|at| (format!("m{at}"), json!(at))).collect();
    entries.insert("a".to_owned(), json!({"email": "first@example.org"}));
    let small = json!({"a": entries.get("a"), "b": 1});
    assert!(fuzzy_lookup(&small, &[key("email")]).is_some());
    assert!(fuzzy_lookup(&Value::Object(entries), &[key("email")]).is_none());
}

#[test]
fn nested_json_strings_are_searched_in_bounded_time() {
    let mut value = json!({"rows": vec![json!({"a": 1}); 20_000], "more": 1});
    for _ in 0..5 {
        value = json!({"result": value.to_string(), "data": value.to_string(), "more": {"x": 1}});
        if value.to_string().len() > 8 << 20 {
            break;
        }
    }
    let path = ["result", "data", "output", "nothing", "of", "this"].map(key);
    assert!(fuzzy_lookup(&value, &path).is_none());
}
