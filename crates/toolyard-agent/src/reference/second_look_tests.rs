//! Second looks that must not take all the time there is.

use serde_json::json;

use super::{super::trail::MAX_LOOKS, *};

fn key(name: &str) -> Part {
    Part::Key(name.to_owned())
}

#[test]
fn what_cannot_be_looked_at_whole_has_no_only_part() {
    let mut entries: Map<String, Value> = (0..MAX_LOOKS).map(|at| (format!("m{at}"), json!(at))).collect();
    entries.insert("a".to_owned(), json!({"email": "first@example.org"}));
    let small = json!({"a": entries.get("a"), "b": 1});
    assert!(second_look(&small, &[key("email")]).is_some());
    assert!(second_look(&Value::Object(entries), &[key("email")]).is_none());
}

#[test]
fn wrappings_within_wrappings_cost_a_bounded_time() {
    let mut value = json!({"rows": vec![json!({"a": 1}); 20_000], "more": 1});
    for _ in 0..5 {
        value = json!({"result": value.to_string(), "data": value.to_string(), "more": {"x": 1}});
        if value.to_string().len() > 8 << 20 {
            break;
        }
    }
    let path = ["result", "data", "output", "nothing", "of", "this"].map(key);
    assert!(second_look(&value, &path).is_none());
}
