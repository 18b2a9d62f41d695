//! What can be counted in a value.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The lengths of the lists of a value, and the numbers of lines, blocks and similar lines of its texts.
pub(super) fn counts(value: &Value) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    collect(value, &mut found);
    found
}

fn collect(value: &Value, found: &mut BTreeSet<usize>) {
    match value {
        Value::Array(items) => {
            found.insert(items.len());
            // Records that agree in a field are counted, too: three of five are open.
            let mut fields: BTreeMap<(String, String), usize> = BTreeMap::new();
            for (key, field) in items.iter().filter_map(Value::as_object).flatten() {
                if !field.is_array() && !field.is_object() {
                    *fields.entry((key.clone(), field.to_string())).or_default() += 1;
                }
            }
            found.extend(fields.into_values());
            items.iter().for_each(|item| collect(item, found));
        }
        Value::Object(entries) => {
            found.insert(entries.len());
            entries.values().for_each(|item| collect(item, found));
        }
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Array(_) | Value::Object(_))) => collect(&inner, found),
            _ => found.extend(text_counts(text)),
        },
        _ => {}
    }
}

fn text_counts(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let blocks = text.split("\n\n").filter(|block| !block.trim().is_empty()).count();
    let mut starts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in &lines {
        for start in line_starts(line) {
            *starts.entry(start).or_default() += 1;
        }
    }
    let items = text.split([',', '、', '，']).count();
    let mut found = vec![lines.len(), lines.len().saturating_sub(1), blocks, blocks.saturating_sub(1), items];
    found.extend(starts.into_values().filter(|count| *count > 1));
    found
}

/// What lines of the same kind start with: a field name, a list marker, a tag, or their first word.
fn line_starts(line: &str) -> Vec<&str> {
    let field = line.split_once(':').map(|(field, _)| field);
    let bullet = line.split_once("] ").map(|(bullet, _)| bullet).filter(|bullet| bullet.len() <= 8);
    let word = line.split(' ').next().filter(|word| !word.is_empty());
    field.into_iter().chain(bullet).chain(word).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_lines_and_kinds_of_lines_are_counted() {
        assert!(counts(&json!({"rows": [[1, 2, 3], [4, 5, 6]]})).contains(&2));
        assert!(counts(&json!("# Todo\n- [x] a\n- [x] b\n- [x] c\n- [ ] d\n- [ ] e")).contains(&2));
        assert!(counts(&json!("ID: 1\nx: y\n\nID: 2\nx: y\n\nID: 3\nx: y")).contains(&3));
        assert!(counts(&json!([{"open": true}, {"open": false}, {"open": true}])).contains(&1));
    }
}
