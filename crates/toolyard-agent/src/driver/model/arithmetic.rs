//! Questions that are a calculation and nothing else, such as `17*23`: planned and answered without a model. Small models
//! answer them wrongly or not at all, and there is nothing to plan.

use serde_json::json;
use toolyard_model::{ModelReply, ModelToolCall};

use super::model_io::question;
use crate::{ModelTask, Run, StepEnd, StepPhase};

const CALCULATE: &str = "calculate";

/// The reply that a model should give; `None` if the question needs one.
pub(super) fn reply(run: &Run, task: &ModelTask) -> Option<ModelReply> {
    let expression = expression(question(run))?;
    match task {
        // If the agent has no such tool, the plan is rejected, and the model is asked for another one.
        ModelTask::Plan { round: 0, repair: false } if run.steps().is_empty() => {
            let arguments = json!({ "expression": expression }).to_string();
            let call = ModelToolCall { id: "result".to_owned(), name: CALCULATE.to_owned(), arguments };
            Some(ModelReply { calls: vec![call], ..ModelReply::default() })
        }
        ModelTask::Answer => {
            let [only] = run.steps() else { return None };
            let StepPhase::Ended(StepEnd::Done { preview, .. }) = &only.phase else { return None };
            (only.step.tool_type == CALCULATE)
                .then(|| ModelReply { text: format!("{expression} = {preview}"), ..ModelReply::default() })
        }
        _ => None,
    }
}

/// The arithmetic expression that a text is, with ASCII operators. Texts that are also written for other things, such as
/// dates (`2024-01-05`), telephone numbers and `24/7`, are none.
fn expression(text: &str) -> Option<String> {
    let text = text.trim().trim_end_matches(['=', '?', ' ']);
    let mut expression = String::with_capacity(text.len());
    for letter in text.chars() {
        expression.push(match letter {
            '×' => '*',
            '÷' => '/',
            '0'..='9' | '.' | '+' | '-' | '*' | '/' | '^' | '(' | ')' | ' ' => letter,
            _ => return None,
        });
    }
    let is_calculation = expression.contains(['+', '*', '^']) || text.contains('÷');
    let is_spaced = expression.contains(" - ") || expression.contains(" / ");
    let operands = expression.split(['+', '-', '*', '/', '^', '(', ')', ' ']).filter(|part| !part.is_empty());
    let are_numbers = operands.clone().all(|part| part.parse::<f64>().is_ok());
    let starts_with_sign = expression.starts_with('+');
    ((is_calculation || is_spaced) && operands.count() > 1 && are_numbers && !starts_with_sign)
        .then_some(expression)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn calculations_are_told_from_other_numbers() {
        for (text, expected) in [
            ("17*23", Some("17*23")),
            (" 2^10 = ?", Some("2^10")),
            ("(1.5 + 2) × 3", Some("(1.5 + 2) * 3")),
            ("84 / 7", Some("84 / 7")),
            ("10 - 3", Some("10 - 3")),
            ("84÷7", Some("84/7")),
            ("2024-01-05", None),
            ("24/7", None),
            ("+49 30 1234", None),
            ("192.168.0.1", None),
            ("42", None),
            ("", None),
            ("what is 2+2", None),
            ("17*x", None),
            ("1.2.3 + 4", None),
        ] {
            assert_eq!(expression(text).as_deref(), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn words_are_never_calculations(text in r"\PC*[a-z]\PC*") {
            prop_assert_eq!(expression(&text), None);
        }
    }
}
