//! Restores the `=` of formulas: the one repair that changes an argument which fits.
//!
//! Small models drop the `=`, or write the call once with it and once without. Measured on 2026-11-19 with Qwen2.5-Coder-1.5B:
//! without this repair, the smoke test of `just agent-quality` fails.

use serde_json::Value;

use super::super::plan::Step;

/// Restores the `=` of `SUM(B1:B10)` if the request contains it, and only as `=SUM(B1:B10)`.
pub(in crate::planning) fn restore_equals_signs(step: &mut Step, question: &str) {
    step.arguments.values_mut().for_each(|value| restore_equals_sign(value, question));
}

fn restore_equals_sign(value: &mut Value, question: &str) {
    match value {
        Value::String(text) if is_formula(text) => {
            let formula = format!("={text}");
            let is_word_char = |letter: char| letter.is_ascii_alphanumeric();
            let stands_alone = |(at, _): (usize, &str)| {
                let before = question.get(..at).unwrap_or_default();
                let behind = question.get(at + formula.len()..).unwrap_or_default();
                !before.ends_with(|letter: char| is_word_char(letter) || "=<>!:".contains(letter))
                    && !behind.starts_with(is_word_char)
            };
            let found: Vec<_> = question.match_indices(formula.as_str()).collect();
            let only_with_equals_sign = found.len() == question.matches(text.as_str()).count();
            if !found.is_empty() && only_with_equals_sign && found.into_iter().all(stands_alone) {
                *value = Value::String(formula);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| restore_equals_sign(item, question)),
        Value::Object(entries) => {
            entries.values_mut().for_each(|value| restore_equals_sign(value, question));
        }
        _ => {}
    }
}

/// Whether a text is a formula: a function call, or cells and numbers with operators between them.
fn is_formula(text: &str) -> bool {
    let is_operand = |part: &str| {
        let plain = part.trim().replace('$', "");
        is_cell(&plain) || plain.parse::<f64>().is_ok()
    };
    let name = text.split('(').next().unwrap_or_default();
    let is_call = text.ends_with(')')
        && !name.is_empty()
        && name.len() < text.len()
        && name.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '.');
    let operands: Vec<&str> = text.split(['+', '-', '*', '/', '^', '(', ')', ':']).collect();
    let has_cell = operands.iter().any(|part| is_cell(&part.trim().replace('$', "")));
    is_call
        || (operands.len() > 1
            && has_cell
            && operands.iter().all(|part| part.trim().is_empty() || is_operand(part)))
}

/// Whether a text is a cell address such as `B12`.
fn is_cell(text: &str) -> bool {
    let row = text.trim_start_matches(|letter: char| letter.is_ascii_uppercase());
    (1..=3).contains(&(text.len() - row.len()))
        && (1..=7).contains(&row.len())
        && row.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_dropped_equals_sign_is_restored() {
        let is_restored = |text: &str, question: &str| {
            let mut value = json!([[text]]);
            restore_equals_sign(&mut value, question);
            value[0][0].as_str().unwrap() == format!("={text}")
        };
        for question in ["在 A1 写入公式 =C2*D2", "Put =C2*D2 into A1", "put \"=C2*D2\".", "公式=C2*D2。"]
        {
            assert!(is_restored("C2*D2", question), "{question}");
        }
        for question in ["x=C2*D2", "Put C2*D2 and =C2*D2 into A1 and B1", "=C2*D21", "==C2*D2", "C2*D2", ""]
        {
            assert!(!is_restored("C2*D2", question), "{question}");
        }
        assert!(is_restored("SUM(B1:B10)", "=SUM(B1:B10)") && is_restored("$C$2-1.5", "set =$C$2-1.5"));
        for (text, question) in [
            ("完成", "状态=完成"),
            ("100", "amount>=100"),
            ("done", "status!=done"),
            ("foo-bar", "(name)=foo-bar"),
        ] {
            assert!(!is_restored(text, question), "{question}");
        }
        assert!(!is_restored("A1+1", "where x <=A1+1"));
        assert!(!is_restored("=C2*D2", "Put =C2*D2 into A1"));
        assert!(!is_restored("", "Put = into A1"));
    }
}
