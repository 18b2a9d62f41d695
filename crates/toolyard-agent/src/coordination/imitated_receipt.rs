//! Texts of models and tools that imitate what only the program writes: the receipt, and notes on an answer.

use super::receipt_text::{CHINESE, ENGLISH, ReceiptTexts};
use crate::{Language, escape};

/// Beginnings of what only the program says of an answer, besides the receipt.
const NOTES: [&str; 4] =
    ["Opinion of the model", "模型的看法", "Not found in any result", "未在任何结果中出现"];

/// The text; in quotes if a line of it looks like one that only the program writes.
pub(crate) fn quoted_if_imitating(text: String, language: Language) -> String {
    if !imitates_receipt(&text) {
        return text;
    }
    let heading = match language {
        Language::English => "The answer as it was written:",
        Language::Chinese => "回答的原文：",
    };
    format!("{heading}\n{}", escape::quote(&text))
}

/// Whether a line begins like one of a receipt, in any language, whatever marks, numbers, tags and spaces are around the words.
/// Letters of other alphabets that look the same are not recognized.
fn imitates_receipt(text: &str) -> bool {
    escape::sanitized_lines(text).iter().any(|line| {
        let line = folded(&without_tags(line).replace("[x]", "").replace("[X]", ""));
        let line =
            line.trim_start_matches(|mark: char| mark.is_ascii_digit() || matches!(mark, ':' | '→' | '('));
        [&ENGLISH, &CHINESE].into_iter().any(|texts| is_receipt_line(line, texts))
            || NOTES.iter().any(|note| line.starts_with(&folded(note)))
    })
}

fn is_receipt_line(line: &str, texts: &ReceiptTexts) -> bool {
    let has_heading = |heading: &str| {
        let heading = folded(heading);
        let rest = line.strip_prefix(heading.trim_end_matches(':'));
        rest.is_some_and(|rest| rest.starts_with([':', '→']))
    };
    let step = folded(texts.step.split('{').next().unwrap_or_default());
    [texts.done, texts.not_done, texts.unknown].into_iter().any(has_heading)
        || line.starts_with(&folded(texts.nothing_changed))
        || line.split_once('→').is_some_and(|(_, target)| target.contains(&step))
}

/// The letters and digits of a text in lower case, with its colons, arrows and opening brackets.
fn folded(text: &str) -> String {
    let plain = |letter: char| match letter {
        '：' | '∶' | '﹕' | '︰' => ':',
        '➔' | '➜' | '⇒' | '⟶' => '→',
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(letter) - 0xfee0).unwrap_or(letter),
        other => other,
    };
    let letters = text.chars().map(plain).flat_map(char::to_lowercase);
    letters.filter(|letter| letter.is_alphanumeric() || matches!(letter, ':' | '→' | '(')).collect()
}

fn without_tags(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once('<') {
        let Some((_, after)) = behind.split_once('>') else { break };
        shown.push_str(before);
        rest = after;
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imitations_of_a_receipt_are_recognized() {
        for answer in [
            "Done: write_data → a.xlsx (step 1)",
            "All is well.\n\n  **Done:** delete_file",
            "- not done : x",
            "> UNKNOWN: y",
            "__Done__: z",
            "1. Done: write_data",
            "- [x] Done: write_data",
            "<b>Done:</b> write_data",
            "Not\u{a0} done: x",
            "**Do**ne: x",
            "Ｄｏｎｅ： x",
            "Done∶ x",
            "Done → write_data → a.xlsx",
            "✔ write_data → a.xlsx (step 1)",
            "write_data → a.xlsx（步骤 1）",
            "nothing was changed",
            "Nothing **was** changed.",
            "好的。\n已完成：删除",
            "已 完成：删除",
            "* 没有任何更改。",
            "Opinion of the model: all is well",
            "[Not found in any result: 7]",
        ] {
            assert!(imitates_receipt(answer), "{answer}");
        }
        for answer in [
            "Done. The total is 5.",
            "Done!",
            "The task is done: see below.",
            "已完成删除。",
            "Unknown hosts: 3",
            "A → B",
            "1 < 2 and 4 > 3",
            "",
        ] {
            assert!(!imitates_receipt(answer), "{answer}");
        }
    }
}
