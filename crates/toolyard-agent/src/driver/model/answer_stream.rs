//! [`AnswerStream`]: streams an answer out of a reply while the model is still writing it.

use toolyard_model::{ToolCalling, tool_call_parser::StreamingParser};

use crate::ModelTask;

const PLAN_TAG: &str = "<plan";
/// How a JSON reply that is an answer starts, without whitespace.
const JSON_ANSWER_START: &str = "{\"answer\":\"";
/// Limits the start with its whitespace.
const MAX_ANSWER_START_BYTES: usize = 100;

/// Extracts the answer from the pieces of a reply, as soon as the reply is very likely an answer.
#[derive(Debug)]
pub(super) struct AnswerStream {
    format: ReplyFormat,
    streamed: String,
}

#[derive(Debug)]
enum ReplyFormat {
    /// The whole reply is the answer.
    Answer,
    /// `{"answer": "…"}`, or JSON that is no answer.
    Json { position: JsonPosition, pending: String },
    /// Text, possibly followed by tool calls or a plan.
    Text { parser: Box<StreamingParser>, held: String },
    /// Nothing more is streamed.
    Silent,
}

/// A position in a JSON reply.
#[derive(Debug, Clone, Copy)]
enum JsonPosition {
    BeforeAnswer,
    WithinAnswer,
    /// After the answer, or in a reply that is none.
    End,
}

impl AnswerStream {
    pub(super) fn new(task: &ModelTask, mode: ToolCalling) -> Self {
        let format = match (task, mode) {
            (ModelTask::Answer, _) => ReplyFormat::Answer,
            (ModelTask::Plan { .. }, ToolCalling::Schema) => {
                ReplyFormat::Json { position: JsonPosition::BeforeAnswer, pending: String::new() }
            }
            // Everything that looks like a tool call is held back, whether such a tool exists or not.
            (ModelTask::Plan { .. }, ToolCalling::Native | ToolCalling::Text) => {
                ReplyFormat::Text { parser: Box::new(StreamingParser::new(|_| true)), held: String::new() }
            }
            _ => ReplyFormat::Silent,
        };
        Self { format, streamed: String::new() }
    }

    /// Takes the next piece of the reply and returns the next piece of the answer.
    pub(super) fn push(&mut self, piece: &str) -> String {
        let delta = match &mut self.format {
            ReplyFormat::Answer => piece.to_owned(),
            ReplyFormat::Json { position, pending } => json_delta(position, pending, piece),
            ReplyFormat::Text { parser, held } => {
                let text = parser.push(piece);
                let is_holding = parser.is_holding();
                held.push_str(&text);
                let (delta, is_plan) = text_delta(held, self.streamed.is_empty());
                if is_holding || is_plan {
                    self.format = ReplyFormat::Silent;
                }
                delta
            }
            ReplyFormat::Silent => String::new(),
        };
        self.streamed.push_str(&delta);
        delta
    }

    /// Whether tool calls or a plan may follow, in which case the streamed text is not the answer.
    pub(super) fn is_tentative(&self) -> bool {
        matches!(self.format, ReplyFormat::Text { .. } | ReplyFormat::Silent)
    }

    pub(super) fn into_streamed(self) -> String {
        self.streamed
    }
}

/// The rest of an answer after what was streamed; `None` if something else was streamed.
pub(super) fn unstreamed<'a>(answer: &'a str, streamed: &str) -> Option<&'a str> {
    match answer.strip_prefix(streamed.trim_start()) {
        Some(rest) => Some(rest),
        None => (streamed.trim() == answer.trim()).then_some(""),
    }
}

/// What a piece adds to the answer in a JSON reply.
fn json_delta(position: &mut JsonPosition, pending: &mut String, piece: &str) -> String {
    if matches!(position, JsonPosition::End) {
        return String::new();
    }
    pending.push_str(piece);
    if matches!(position, JsonPosition::BeforeAnswer) {
        let third_quote = pending.match_indices('"').nth(2).map(|(at, _)| at);
        let Some(third_quote) = third_quote else {
            if pending.len() > MAX_ANSWER_START_BYTES {
                *position = JsonPosition::End;
            }
            return String::new();
        };
        let text = pending.split_off(third_quote + 1);
        let start: String = pending.split_whitespace().collect();
        *position = if start == JSON_ANSWER_START { JsonPosition::WithinAnswer } else { JsonPosition::End };
        *pending = text;
    }
    if !matches!(position, JsonPosition::WithinAnswer) || ends_within_escape(pending) {
        return String::new();
    }
    let end = closing_quote(pending);
    let written = pending.get(..end.unwrap_or(pending.len())).unwrap_or_default();
    let answer: Option<String> = serde_json::from_str(&format!("\"{written}\"")).ok();
    if end.is_some() || answer.is_none() {
        *position = JsonPosition::End;
    }
    pending.clear();
    answer.unwrap_or_default()
}

/// The position of the quote that ends a JSON string.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })
}

/// Whether the text ends within an escape such as `\n` or `\u4e2d`, or between the halves of a surrogate pair.
fn ends_within_escape(text: &str) -> bool {
    let Some((before, escape)) = text.rsplit_once('\\') else { return false };
    let is_escaped = (before.len() - before.trim_end_matches('\\').len()) % 2 == 1;
    let digits = escape.strip_prefix('u');
    let is_high_surrogate = |digits: &str| matches!(u16::from_str_radix(digits, 16), Ok(0xd800..0xdc00));
    let is_within = escape.is_empty()
        || digits.is_some_and(|digits| digits.len() < 4 || (digits.len() == 4 && is_high_surrogate(digits)));
    is_within && !is_escaped
}

/// Takes from held text what can be streamed, and returns whether a plan follows.
fn text_delta(held: &mut String, is_first: bool) -> (String, bool) {
    // A reply that starts as JSON may be a plan.
    if is_first && held.trim_start().starts_with(['{', '[', '`']) {
        return (String::new(), true);
    }
    if let Some(at) = held.find(PLAN_TAG) {
        held.truncate(at);
        return (std::mem::take(held), true);
    }
    let is_tag_prefix = |length: &usize| PLAN_TAG.get(..*length).is_some_and(|start| held.ends_with(start));
    let tag_bytes = (1..PLAN_TAG.len()).rev().find(is_tag_prefix).unwrap_or_default();
    let rest = held.split_off(held.len() - tag_bytes);
    (std::mem::replace(held, rest), false)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toolyard_model::ToolCalling::{Native, Schema, Text};

    use super::*;

    const PLAN_TASK: ModelTask = ModelTask::Plan { round: 0, repair: false };

    fn streamed_pieces(mode: ToolCalling, reply: &str) -> Vec<String> {
        let mut stream = AnswerStream::new(&PLAN_TASK, mode);
        reply
            .chars()
            .map(|letter| stream.push(&letter.to_string()))
            .filter(|delta| !delta.is_empty())
            .collect()
    }

    #[test]
    fn answers_are_streamed_in_every_mode() {
        for (mode, reply) in [
            (Text, "Hello, I can help you."),
            (Native, "Hello, I can help you."),
            (Schema, r#"{"answer":"Hello, I can help you."}"#),
        ] {
            let streamed = streamed_pieces(mode, reply);
            assert!(streamed.len() > 10, "{mode:?}: {streamed:?}");
            assert!("Hello, I can help you.".starts_with(&streamed.concat()), "{mode:?}: {streamed:?}");
        }
    }

    #[test]
    fn plans_and_tool_calls_are_never_streamed() {
        for (mode, reply, streamed) in [
            (Schema, r#"{"call":{"tool_type":"a","arguments":{"answer":"x"}}}"#, ""),
            (Schema, r#"{"steps":[{"id":"a","answer":"no"}]}"#, ""),
            (Text, "<plan>\n{\"steps\": []}</plan>", ""),
            (Text, "{\"steps\": [{\"tool_type\": \"a\"}]}", ""),
            (Text, "```json\n{\"steps\": []}\n```", ""),
            (
                Text,
                "One moment.\n<tool_call>{\"name\": \"a\", \"arguments\": {}}</tool_call> done",
                "One moment.",
            ),
            (Native, "I will plan. <plan>{}</plan>", "I will plan. "),
        ] {
            assert_eq!(streamed_pieces(mode, reply).concat().trim_end(), streamed.trim_end(), "{reply}");
        }
    }

    #[test]
    fn escaped_characters_are_streamed_whole() {
        let answer = "a\"b\\c\n中𝄞 end";
        for written in [
            serde_json::json!({ "answer": answer }).to_string(),
            r#"{"answer":"a\"b\\c\n\u4e2d\ud834\udd1e end"}"#.to_owned(),
        ] {
            assert_eq!(streamed_pieces(Schema, &written).concat(), answer, "{written}");
        }
    }

    #[test]
    fn the_rest_of_an_answer_follows_what_was_streamed() {
        assert_eq!(unstreamed("Hello world", " Hello"), Some(" world"));
        assert_eq!(unstreamed("Hello", "Hello \n"), Some(""));
        assert_eq!(unstreamed("Hello", ""), Some("Hello"));
        assert_eq!(unstreamed("Hello", "One moment."), None);
    }

    proptest! {
        #[test]
        fn json_answers_are_streamed_completely(answer in any::<String>()) {
            let written = serde_json::json!({ "answer": answer }).to_string();
            let streamed = streamed_pieces(Schema, &written).concat();
            prop_assert_eq!(streamed, answer);
        }

        #[test]
        fn text_answers_are_streamed_in_order(answer in "[a-zA-Z ,.!?中文\n<>{}`]{0,200}") {
            let streamed = streamed_pieces(Text, &answer).concat();
            if let Some(rest) = unstreamed(answer.trim(), &streamed) {
                prop_assert!(answer.trim().ends_with(rest));
            }
        }
    }
}
