//! The answer that the user gets after it was compared with what the steps did.

use super::{CoordinationAgent, StepReport};
use crate::{Language, escape, verification::answer::AnswerReview};

/// Characters of a result in the list of steps.
const MAX_PREVIEW_CHARS: usize = 120;

struct ReviewTexts {
    done: &'static str,
    not_done: &'static str,
    no_step: &'static str,
    unsupported: &'static str,
    model_said: &'static str,
    no_answer: &'static str,
    last_result: &'static str,
    unverified: &'static str,
    reasoned: &'static str,
    separator: &'static str,
}

const ENGLISH: ReviewTexts = ReviewTexts {
    done: "Done:",
    not_done: "Not everything was done:",
    no_step: "no step of this run did it",
    unsupported: "Not confirmed by any step:",
    model_said: "The model's answer, not confirmed:",
    no_answer: "The model gave no answer.",
    last_result: "The last result:",
    unverified: "[Not found in any result: {values}]",
    reasoned: "[Reasoned by the model, because the tool could not be used: {values}]",
    separator: ", ",
};

const CHINESE: ReviewTexts = ReviewTexts {
    done: "已完成：",
    not_done: "没有全部完成：",
    no_step: "本次运行没有任何步骤做到",
    unsupported: "没有任何步骤能证实：",
    model_said: "模型的回答（未经证实）：",
    no_answer: "模型没有给出回答。",
    last_result: "最后的结果：",
    unverified: "【未在任何结果中出现：{values}】",
    reasoned: "【工具无法使用，由模型推断：{values}】",
    separator: "、",
};

impl CoordinationAgent {
    /// The answer, with what was not done before it and unverified numbers after it. An answer that claims changes in a
    /// language whose claims cannot be checked is replaced by the list of the steps that were done.
    pub(crate) fn reviewed_answer(
        &self,
        answer: String,
        review: &AnswerReview,
        steps: &[StepReport],
    ) -> String {
        let texts = match self.language {
            Language::English => &ENGLISH,
            Language::Chinese => &CHINESE,
        };
        let mut lines = Vec::new();
        if review.is_partial() {
            lines.extend(not_done_lines(texts, review));
            lines.push(String::new());
            let heading = if review.is_result { texts.last_result } else { texts.model_said };
            lines.push(heading.to_owned());
            lines.push(escape::quote(&answer));
        } else if review.is_unjudged {
            lines.push(texts.done.to_owned());
            lines.extend(steps.iter().filter(|step| !step.lacks_value).map(done_line));
        } else {
            lines.push(answer);
        }
        if !review.unverified.is_empty() {
            let values = review.unverified.join(texts.separator);
            lines.push(String::new());
            lines.push(texts.unverified.replace("{values}", &values));
        }
        let reasoned: Vec<String> = steps
            .iter()
            .filter(|step| step.reasoned)
            .map(|step| format!("{} ({})", step.step, step.tool))
            .collect();
        if !reasoned.is_empty() {
            lines.push(String::new());
            lines.push(
                texts.reasoned.replace("{values}", &escape::sanitized_line(&reasoned.join(texts.separator))),
            );
        }
        lines.join("\n")
    }
}

fn done_line(step: &StepReport) -> String {
    let preview: String = escape::sanitized_line(&step.preview).chars().take(MAX_PREVIEW_CHARS).collect();
    format!("- {} ({}): {preview}", escape::sanitized_line(&step.step), escape::sanitized_line(&step.tool))
}

fn not_done_lines(texts: &ReviewTexts, review: &AnswerReview) -> Vec<String> {
    let mut lines = Vec::new();
    let line = |text: &str| escape::sanitized_line(text);
    if review.has_no_answer {
        lines.push(texts.no_answer.to_owned());
    }
    if !(review.unfinished.is_empty() && review.missing_changes.is_empty()) {
        lines.push(texts.not_done.to_owned());
    }
    lines.extend(
        review
            .unfinished
            .iter()
            .map(|step| format!("- {} ({}): {}", line(&step.step), line(&step.tool), line(&step.reason))),
    );
    lines
        .extend(review.missing_changes.iter().map(|change| format!("- {}: {}", line(change), texts.no_step)));
    if !review.unsupported_claims.is_empty() {
        lines.push(texts.unsupported.to_owned());
        lines.extend(review.unsupported_claims.iter().map(|claim| format!("- {}", line(claim))));
    }
    lines
}
