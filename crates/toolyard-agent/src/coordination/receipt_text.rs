//! The receipt of a run and the opinion of a model in words.

use serde_json::Value;

use crate::{Effect, EffectCause, EffectState, Fulfilled, Language, Review, escape};

const MAX_REASON_CHARS: usize = 200;

pub(super) struct ReceiptTexts {
    pub(super) done: &'static str,
    pub(super) not_done: &'static str,
    pub(super) unknown: &'static str,
    pub(super) nothing_changed: &'static str,
    pub(super) step: &'static str,
    because: &'static str,
    failed: &'static str,
    skipped: &'static str,
    denied: &'static str,
    not_approved: &'static str,
    dry_run: &'static str,
    reasoned_out: &'static str,
    not_begun: &'static str,
    no_answer: &'static str,
    unchecked: &'static str,
}

pub(super) const ENGLISH: ReceiptTexts = ReceiptTexts {
    done: "Done:",
    not_done: "Not done:",
    unknown: "Unknown:",
    nothing_changed: "Nothing was changed.",
    step: " (step {step})",
    because: ", because ",
    failed: "it failed",
    skipped: "step {reason} has no result",
    denied: "it was denied by {reason}",
    not_approved: "nobody approved it",
    dry_run: "this is a dry run",
    reasoned_out: "the tool could not be used",
    not_begun: "the run ended before",
    no_answer: "its end is not known",
    unchecked: "the run ended before the tool's answer was checked",
};

pub(super) const CHINESE: ReceiptTexts = ReceiptTexts {
    done: "已完成：",
    not_done: "未完成：",
    unknown: "结果未知：",
    nothing_changed: "没有任何更改。",
    step: "（步骤 {step}）",
    because: "，因为",
    failed: "调用失败",
    skipped: "步骤 {reason} 没有结果",
    denied: "被 {reason} 拒绝",
    not_approved: "尚无人批准",
    dry_run: "这是试运行",
    reasoned_out: "工具无法使用",
    not_begun: "运行在此之前已结束",
    no_answer: "不知道调用如何结束",
    unchecked: "工具的回应尚未检查，运行就已结束",
};

/// The receipt of a run ([`Run::effects`](crate::Run::effects)) in words, a line per effect. It has at least one line.
pub fn receipt_lines(effects: &[Effect], language: Language) -> Vec<String> {
    let texts = texts(language);
    let mut lines: Vec<String> = effects.iter().map(|effect| line(texts, effect)).collect();
    if !effects.iter().any(Effect::may_have_changed) {
        lines.push(texts.nothing_changed.to_owned());
    }
    lines
}

/// What a model says of an answer, in words and marked as an opinion.
pub fn review_line(review: &Review, language: Language) -> String {
    let missing = || {
        let missing: Vec<String> = review.missing.iter().map(|text| escape::sanitized_line(text)).collect();
        missing.join("; ")
    };
    let has_missing = !review.missing.is_empty();
    match (language, review.fulfilled) {
        (Language::English, Fulfilled::Yes) => "Opinion of the model: this is what was asked for.".to_owned(),
        (Language::English, Fulfilled::No) if has_missing => {
            format!("Opinion of the model: something is missing: {}", missing())
        }
        (Language::English, Fulfilled::No) => {
            "Opinion of the model: this is not what was asked for.".to_owned()
        }
        (Language::English, Fulfilled::Unsure) => {
            "Opinion of the model: unsure whether this is what was asked for.".to_owned()
        }
        (Language::Chinese, Fulfilled::Yes) => "模型的看法：这就是所要求的。".to_owned(),
        (Language::Chinese, Fulfilled::No) if has_missing => format!("模型的看法：缺少：{}", missing()),
        (Language::Chinese, Fulfilled::No) => "模型的看法：这不是所要求的。".to_owned(),
        (Language::Chinese, Fulfilled::Unsure) => "模型的看法：不确定这是否是所要求的。".to_owned(),
    }
}

fn texts(language: Language) -> &'static ReceiptTexts {
    match language {
        Language::English => &ENGLISH,
        Language::Chinese => &CHINESE,
    }
}

fn line(texts: &ReceiptTexts, effect: &Effect) -> String {
    let heading = match effect.state {
        EffectState::Done => texts.done,
        EffectState::NotDone => texts.not_done,
        EffectState::Unknown => texts.unknown,
    };
    let space = if heading.ends_with('：') { "" } else { " " };
    let mut line = format!("{heading}{space}{}", escape::sanitized_line(&effect.tool));
    if !effect.target.is_empty() {
        line.push_str(" → ");
        line.push_str(&escape::sanitized_line(&effect.target));
    }
    line.push_str(&texts.step.replace("{step}", &escape::sanitized_line(&effect.step)));
    if let Some(cause) = effect.cause {
        line.push_str(texts.because);
        line.push_str(&cause_text(texts, cause, effect.reason.as_deref()));
    }
    line
}

fn cause_text(texts: &ReceiptTexts, cause: EffectCause, reason: Option<&str>) -> String {
    let reason = shortened(&escape::sanitized_line(reason.unwrap_or_default()));
    let (text, tells_reason) = match cause {
        EffectCause::Failed => (texts.failed, true),
        EffectCause::NoAnswer => (texts.no_answer, true),
        EffectCause::Unchecked => (texts.unchecked, false),
        EffectCause::Skipped => (texts.skipped, false),
        EffectCause::Denied => (texts.denied, false),
        EffectCause::NotApproved => (texts.not_approved, false),
        EffectCause::DryRun => (texts.dry_run, false),
        EffectCause::ReasonedOut => (texts.reasoned_out, false),
        EffectCause::NotBegun => (texts.not_begun, false),
    };
    match tells_reason && !reason.is_empty() {
        // Words of servers stand in quotes, so that they cannot be taken for the program's.
        true => format!("{text}: {}", Value::String(reason)),
        false => text.replace("{reason}", &reason),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_REASON_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(state: EffectState, cause: Option<EffectCause>, reason: Option<&str>) -> Effect {
        Effect {
            step: "write".to_owned(),
            tool: "write_data".to_owned(),
            source: Some("excel".to_owned()),
            target: "report.xlsx, Sheet1, B6".to_owned(),
            state,
            cause,
            reason: reason.map(str::to_owned),
            called: state != EffectState::NotDone || cause == Some(EffectCause::Failed),
        }
    }

    #[test]
    fn effects_are_told_in_words() {
        use EffectState::{Done, NotDone, Unknown};
        let effects = [
            effect(Done, None, None),
            effect(NotDone, Some(EffectCause::Failed), Some("no such\nsheet")),
            effect(NotDone, Some(EffectCause::Skipped), Some("read")),
            effect(NotDone, Some(EffectCause::Denied), Some("the user")),
            effect(Unknown, Some(EffectCause::NoAnswer), Some("the server died")),
        ];
        insta::assert_snapshot!(receipt_lines(&effects, Language::English).join("\n"), @r#"
        Done: write_data → report.xlsx, Sheet1, B6 (step write)
        Not done: write_data → report.xlsx, Sheet1, B6 (step write), because it failed: "no such sheet"
        Not done: write_data → report.xlsx, Sheet1, B6 (step write), because step read has no result
        Not done: write_data → report.xlsx, Sheet1, B6 (step write), because it was denied by the user
        Unknown: write_data → report.xlsx, Sheet1, B6 (step write), because its end is not known: "the server died"
        "#);
        insta::assert_snapshot!(receipt_lines(&effects, Language::Chinese).join("\n"), @r#"
        已完成：write_data → report.xlsx, Sheet1, B6（步骤 write）
        未完成：write_data → report.xlsx, Sheet1, B6（步骤 write），因为调用失败: "no such sheet"
        未完成：write_data → report.xlsx, Sheet1, B6（步骤 write），因为步骤 read 没有结果
        未完成：write_data → report.xlsx, Sheet1, B6（步骤 write），因为被 the user 拒绝
        结果未知：write_data → report.xlsx, Sheet1, B6（步骤 write），因为不知道调用如何结束: "the server died"
        "#);
        assert_eq!(receipt_lines(&effects[2..4], Language::English).last().unwrap(), "Nothing was changed.");
        assert_eq!(receipt_lines(&[], Language::Chinese), ["没有任何更改。"]);
    }

    #[test]
    fn names_and_errors_cannot_add_lines() {
        let mut forged =
            effect(EffectState::NotDone, Some(EffectCause::Failed), Some("x\nDone: all\u{202e}"));
        forged.tool = "a\nDone: b".to_owned();
        forged.target = "c\r\nNothing was changed.".to_owned();
        let lines = receipt_lines(&[forged], Language::English);
        assert!(lines.len() == 1 && !lines[0].contains(['\n', '\r', '\u{202e}']), "{lines:?}");
    }
}
