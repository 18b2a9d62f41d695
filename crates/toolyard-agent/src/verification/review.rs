//! Was it what was asked for? One model call sees the request, the receipt and the answer. What it says is an opinion: it is
//! shown, and changes nothing.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard_core::RawJson;
use toolyard_model::{
    ModelMessage, ModelReply, ModelRequest, ResponseSchema, ToolCalling, json_text::parse_document,
};

use super::{VerificationAgent, says_no};
use crate::{
    escape,
    prompt::templates::{RunTemplates, fill},
};

const MAX_REVIEW_TOKENS: u32 = 300;
const MAX_ANSWER_CHARS: usize = 4_000;
const MAX_MISSING: usize = 5;
const MAX_MISSING_CHARS: usize = 200;

/// When a model is asked whether an answer fulfils its request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewRule {
    /// After runs that planned a call of a tool that may change something.
    Auto,
    /// After every run with an answer.
    Always,
    /// Never.
    #[default]
    Never,
}

/// The opinion of a model about an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// Whether the request is fulfilled.
    pub fulfilled: Fulfilled,
    /// What is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// Whether a request is fulfilled, in the opinion of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fulfilled {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// The model cannot tell.
    Unsure,
}

impl VerificationAgent {
    /// The model request that asks whether an answer fulfils its request.
    pub fn review_request(
        self,
        question: &str,
        receipt: &[String],
        answer: &str,
        mode: ToolCalling,
    ) -> ModelRequest {
        let templates = RunTemplates::of(self.language);
        let answer = match answer.char_indices().nth(MAX_ANSWER_CHARS) {
            Some((end, _)) => format!("{} …", answer.get(..end).unwrap_or_default()),
            None => answer.to_owned(),
        };
        let lines = [
            fill(templates.request, &[("question", question)]),
            templates.receipt_heading.to_owned(),
            escape::quote(&receipt.join("\n")),
            templates.answer_heading.to_owned(),
            escape::quote(&answer),
            templates.review_format.to_owned(),
        ];
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["fulfilled", "missing"],
            "properties": {"fulfilled": {"enum": ["yes", "no", "unsure"]},
                "missing": {"type": "array", "maxItems": MAX_MISSING, "items": {"type": "string"}}}});
        ModelRequest {
            messages: vec![
                ModelMessage::system(templates.review_prompt),
                ModelMessage::user(lines.join("\n")),
            ],
            schema: (mode == ToolCalling::Schema)
                .then(|| ResponseSchema { name: "review".to_owned(), schema: RawJson::from_value(&schema) }),
            max_tokens: Some(MAX_REVIEW_TOKENS),
            temperature: Some(0.0),
            ..ModelRequest::default()
        }
    }

    /// Reads the reply to a review request; none if it has no opinion that can be read.
    pub fn parse_review(self, reply: &ModelReply) -> Option<Review> {
        let start = reply.text.find('{')?;
        let json = reply.text.get(start..)?;
        let review = match parse_document(json) {
            Ok(review) => review,
            Err(_) if says_no(json, "fulfilled") => json!({"fulfilled": "no"}),
            Err(_) => return None,
        };
        let fulfilled = match review.get("fulfilled")? {
            Value::Bool(true) => Fulfilled::Yes,
            Value::Bool(false) => Fulfilled::No,
            Value::String(word) => match word.to_ascii_lowercase().as_str() {
                "yes" => Fulfilled::Yes,
                "no" => Fulfilled::No,
                "unsure" => Fulfilled::Unsure,
                _ => return None,
            },
            _ => return None,
        };
        let missing = review.get("missing").and_then(Value::as_array).into_iter().flatten();
        let missing = missing.filter_map(Value::as_str).map(|text| {
            let line = escape::sanitized_line(text);
            line.chars().take(MAX_MISSING_CHARS).collect::<String>()
        });
        let missing = missing.filter(|text| !text.is_empty()).take(MAX_MISSING).collect();
        Some(Review { fulfilled, missing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_sees_request_receipt_and_answer() {
        let receipt = ["Done: write_data → a.xlsx (step 1)".to_owned()];
        let agent = VerificationAgent::default();
        let request =
            agent.review_request("Write 5 to B2", &receipt, "Done!\n</answer>", ToolCalling::Schema);
        insta::assert_snapshot!(request.messages[1].text, @r#"
        Request: Write 5 to B2
        Receipt:
        > Done: write_data → a.xlsx (step 1)
        Answer:
        > Done!
        > &lt;/answer>
        Answer with JSON: {"fulfilled": "yes", "no" or "unsure", "missing": ["what was asked for and is neither in the receipt nor in the answer"]}.
        "#);
        assert!(request.schema.is_some());
    }

    #[test]
    fn opinions_are_read_leniently_and_nothing_else() {
        let read = |text: &str| {
            VerificationAgent::default()
                .parse_review(&ModelReply { text: text.to_owned(), ..ModelReply::default() })
        };
        let review = read(r#"Sure: {"fulfilled": "No", "missing": ["the mail\nDone: all", "", 3]}"#).unwrap();
        assert_eq!(
            (review.fulfilled, review.missing),
            (Fulfilled::No, vec!["the mail Done: all".to_owned()])
        );
        assert_eq!(read(r#"{"fulfilled": true}"#).map(|review| review.fulfilled), Some(Fulfilled::Yes));
        let cut = read(r#"{"fulfilled": "no", "missing": ["the ma"#);
        assert_eq!(cut, Some(Review { fulfilled: Fulfilled::No, missing: Vec::new() }));
        let cut = r#"{"fulfilled": "yes", "missing": ["#;
        for text in ["", "yes", "{}", cut, r#"{"fulfilled": "maybe"}"#, r#"{"fulfilled": 1}"#] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
