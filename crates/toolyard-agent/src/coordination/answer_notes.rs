//! An answer with what the program says about it: a model's imitation of a receipt is quoted, values that no step returned
//! and values that a model reasoned out are named.

use super::{CoordinationAgent, StepReport, imitated_receipt::quoted_if_imitating};
use crate::{Language, escape};

struct NoteTexts {
    unfounded: &'static str,
    reasoned: &'static str,
    separator: &'static str,
}

const ENGLISH: NoteTexts = NoteTexts {
    unfounded: "[Not found in any result: {values}]",
    reasoned: "[Reasoned by the model, because the tool could not be used: {values}]",
    separator: ", ",
};

const CHINESE: NoteTexts = NoteTexts {
    unfounded: "【未在任何结果中出现：{values}】",
    reasoned: "【工具无法使用，由模型推断：{values}】",
    separator: "、",
};

impl CoordinationAgent {
    /// The answer with notes after it. An answer with lines that look like those of a receipt is quoted, because only the
    /// program writes receipts.
    pub(crate) fn answer_with_notes(
        &self,
        answer: String,
        unfounded: &[String],
        steps: &[StepReport],
    ) -> String {
        let texts = match self.language {
            Language::English => &ENGLISH,
            Language::Chinese => &CHINESE,
        };
        let mut text = quoted_if_imitating(answer, self.language);
        let reasoned: Vec<String> = steps
            .iter()
            .filter(|step| step.reasoned)
            .map(|step| format!("{} ({})", step.step, step.tool))
            .collect();
        for (template, values) in [(texts.unfounded, unfounded), (texts.reasoned, reasoned.as_slice())] {
            if !values.is_empty() {
                let values = escape::sanitized_line(&values.join(texts.separator));
                text.push_str("\n\n");
                text.push_str(&template.replace("{values}", &values));
            }
        }
        text
    }
}
