//! What of a reply can be told while it is being written: an answer, as soon as it can hardly be anything else.

use serde_json::Value;
use toolyard_model::{ToolCalling, tool_call_tag::CallSplitter};

use crate::{ModelTask, planning::lenient};

/// With what a plan begins in text.
const PLAN: &str = "<plan";
/// Longer replies are looked at less often: they are read from their beginning each time.
const SMALL: usize = 4 << 10;

/// Listens to a reply and says what can be shown of it.
#[derive(Debug)]
pub(super) struct Saying {
    way: Way,
    said: String,
}

#[derive(Debug)]
enum Way {
    /// All of it is the answer.
    All,
    /// `{"answer": "…"}`, or something else that is no answer.
    Form { heard: String, looked_at: usize },
    /// Words, perhaps with calls or a plan behind them.
    Words { splitter: Box<CallSplitter>, held: String },
    /// Nothing more is told before the reply is over.
    Silent,
}

impl Saying {
    /// For a request that asks for this.
    pub(super) fn new(task: &ModelTask, mode: ToolCalling) -> Self {
        let way = match (task, mode) {
            (ModelTask::Answer, _) => Way::All,
            (ModelTask::Plan { .. }, ToolCalling::Schema) => Way::Form { heard: String::new(), looked_at: 0 },
            // Whatever looks like a call is not told, whether there is such a tool or not.
            (ModelTask::Plan { .. }, ToolCalling::Native | ToolCalling::Text) => {
                Way::Words { splitter: Box::new(CallSplitter::new(|_| true)), held: String::new() }
            }
            _ => Way::Silent,
        };
        Self { way, said: String::new() }
    }

    /// What can be told after this piece.
    pub(super) fn push(&mut self, piece: &str) -> String {
        let told = match &mut self.way {
            Way::All => piece.to_owned(),
            Way::Form { heard, looked_at } => form(heard, looked_at, piece, &self.said),
            Way::Words { splitter, held } => {
                let shown = splitter.push(piece);
                let is_over = splitter.has_found();
                held.push_str(&shown);
                let (told, is_plan) = words(held, self.said.is_empty());
                if is_over || is_plan {
                    self.way = Way::Silent;
                }
                told
            }
            Way::Silent => String::new(),
        };
        self.said.push_str(&told);
        told
    }

    /// Whether calls may follow what is told.
    pub(super) fn is_tentative(&self) -> bool {
        matches!(self.way, Way::Words { .. } | Way::Silent)
    }

    /// Everything that was told.
    pub(super) fn into_said(self) -> String {
        self.said
    }
}

/// What is left to tell of an answer; none where something else was told.
pub(super) fn untold<'a>(answer: &'a str, said: &str) -> Option<&'a str> {
    match answer.strip_prefix(said.trim_start()) {
        Some(rest) => Some(rest),
        None => (said.trim() == answer.trim()).then_some(""),
    }
}

/// What came to the answer in a form.
fn form(heard: &mut String, looked_at: &mut usize, piece: &str, said: &str) -> String {
    heard.push_str(piece);
    if (heard.len() > SMALL && heard.len() - *looked_at < *looked_at / 32) || ends_within_a_letter(heard) {
        return String::new();
    }
    *looked_at = heard.len();
    let Some(read) = lenient::read(heard) else { return String::new() };
    match &read.value {
        Value::Object(entries) if entries.len() == 1 => match entries.get("answer") {
            Some(Value::String(answer)) => answer.strip_prefix(said).unwrap_or_default().to_owned(),
            _ => String::new(),
        },
        _ => String::new(),
    }
}

/// Whether the text ends in the middle of `\n`, `\u4e2d` or of two of those that are one letter.
fn ends_within_a_letter(text: &str) -> bool {
    let Some((before, escape)) = text.rsplit_once('\\') else { return false };
    let is_escaped = (before.len() - before.trim_end_matches('\\').len()) % 2 == 1;
    let digits = escape.strip_prefix('u');
    let is_first_half = |digits: &str| matches!(u16::from_str_radix(digits, 16), Ok(0xd800..0xdc00));
    let is_within = escape.is_empty()
        || digits.is_some_and(|digits| digits.len() < 4 || (digits.len() == 4 && is_first_half(digits)));
    is_within && !is_escaped
}

/// What of held words can be told, and whether a plan begins behind them.
fn words(held: &mut String, is_first: bool) -> (String, bool) {
    // A whole reply that is JSON may be a plan.
    if is_first && held.trim_start().starts_with(['{', '[', '`']) {
        return (String::new(), true);
    }
    if let Some(at) = held.find(PLAN) {
        held.truncate(at);
        return (std::mem::take(held), true);
    }
    let kept =
        (1..PLAN.len()).rev().find(|length| PLAN.get(..*length).is_some_and(|start| held.ends_with(start)));
    let rest = held.split_off(held.len() - kept.unwrap_or_default());
    (std::mem::replace(held, rest), false)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toolyard_model::ToolCalling::{Native, Schema, Text};

    use super::*;

    const PLAN_TASK: ModelTask = ModelTask::Plan { round: 0, repair: false };

    fn pieces(mode: ToolCalling, reply: &str) -> Vec<String> {
        let mut saying = Saying::new(&PLAN_TASK, mode);
        reply.chars().map(|letter| saying.push(&letter.to_string())).filter(|told| !told.is_empty()).collect()
    }

    #[test]
    fn an_answer_is_told_as_it_comes_whatever_its_form() {
        for (mode, reply) in [
            (Text, "Hello, I can help you."),
            (Native, "Hello, I can help you."),
            (Schema, r#"{"answer":"Hello, I can help you."}"#),
        ] {
            let told = pieces(mode, reply);
            assert!(told.len() > 10, "{mode:?}: {told:?}");
            assert!("Hello, I can help you.".starts_with(&told.concat()), "{mode:?}: {told:?}");
        }
    }

    #[test]
    fn plans_and_calls_are_never_told() {
        for (mode, reply, told) in [
            (Schema, r#"{"call":{"tool_type":"a","arguments":{"answer":"x"}}}"#, ""),
            (Schema, r#"{"steps":[{"id":"a","answer":"no"}]}"#, ""),
            (Text, "<plan>\n{\"steps\": []}</plan>", ""),
            (Text, "{\"steps\": [{\"tool_type\": \"a\"}]}", ""),
            (Text, "```json\n{\"steps\": []}\n```", ""),
            (
                Text,
                "One moment. <tool_call>{\"name\": \"a\", \"arguments\": {}}</tool_call> done",
                "One moment.",
            ),
            (Native, "I will plan. <plan>{}</plan>", "I will plan. "),
        ] {
            assert_eq!(pieces(mode, reply).concat().trim_end(), told.trim_end(), "{reply}");
        }
    }

    #[test]
    fn letters_are_told_whole() {
        let answer = "a\"b\\c\n中𝄞 end";
        for written in [
            serde_json::json!({ "answer": answer }).to_string(),
            r#"{"answer":"a\"b\\c\n\u4e2d\ud834\udd1e end"}"#.to_owned(),
        ] {
            assert_eq!(pieces(Schema, &written).concat(), answer, "{written}");
        }
    }

    #[test]
    fn what_is_left_is_told_at_the_end() {
        assert_eq!(untold("Hello world", " Hello"), Some(" world"));
        assert_eq!(untold("Hello", "Hello \n"), Some(""));
        assert_eq!(untold("Hello", ""), Some("Hello"));
        assert_eq!(untold("Hello", "One moment."), None);
    }

    proptest! {
        /// Whatever a model answers in a form, what was told and what is left are the answer.
        #[test]
        fn nothing_is_lost_or_told_twice(answer in any::<String>()) {
            let written = serde_json::json!({ "answer": answer }).to_string();
            let said = pieces(Schema, &written).concat();
            prop_assert_eq!(said, answer);
        }

        #[test]
        fn words_are_told_in_order(answer in "[a-zA-Z ,.!?中文\n<>{}`]{0,200}") {
            let said = pieces(Text, &answer).concat();
            if let Some(rest) = untold(answer.trim(), &said) {
                prop_assert!(answer.trim().ends_with(rest));
            }
        }
    }
}
