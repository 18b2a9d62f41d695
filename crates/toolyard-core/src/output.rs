//! What a call brought back, what is known about where it came from, and the seeds' JSON form of both.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{RawJson, ResultRef, SourceId, ToolError};

/// The answer of a tool that succeeded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// What a model or a person reads.
    pub content: Vec<ContentBlock>,
    /// The same facts as JSON, where the tool gave them.
    pub structured: Option<RawJson>,
    /// Whether the tool chose the size of this answer itself, as a page of a result is; budgets leave it alone then.
    pub sized: bool,
    /// Whether this is no answer yet but questions, all of them in `raw`: the caller calls again with its answers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
    /// The answer as its server sent it, byte for byte, while nothing of it was cut. It is passed on and never kept.
    #[serde(skip)]
    pub raw: Option<RawJson>,
    /// Where it came from and what was done to it.
    pub meta: OutputMeta,
}

/// One piece of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// Base64.
        data: String,
        /// Such as `image/png`.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// A sound.
    Audio {
        /// Base64.
        data: String,
        /// Such as `audio/wav`.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// A pointer to something that can be read elsewhere.
    ResourceLink {
        /// Where it is.
        uri: String,
        /// What it is called.
        name: String,
    },
    /// Something that can be read, sent along.
    Resource {
        /// Its address, kind and content.
        resource: Value,
    },
    /// A kind of content that is not known here.
    #[serde(untagged)]
    Other(Value),
}

impl ContentBlock {
    /// A block of plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            _ => None,
        }
    }
}

impl fmt::Display for ContentBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { text } => f.write_str(text),
            Self::Image { data, mime_type } | Self::Audio { data, mime_type } => {
                write!(f, "[{mime_type}, {} characters of base64]", grouped(data.len()))
            }
            Self::ResourceLink { uri, name } => write!(f, "[{name}: {uri}]"),
            Self::Resource { resource } => write_resource(f, resource),
            Self::Other(value) => match value.get("type").and_then(Value::as_str) {
                Some(kind) => write!(f, "[content of the unknown type {kind}]"),
                None => f.write_str("[content without a type]"),
            },
        }
    }
}

/// An embedded resource as its text, or named in brackets where it has none.
fn write_resource(f: &mut fmt::Formatter<'_>, resource: &Value) -> fmt::Result {
    let word = |key| resource.get(key).and_then(Value::as_str);
    match (word("text"), word("blob")) {
        (Some(text), _) => f.write_str(text),
        (None, blob) => {
            let kind = word("mimeType").unwrap_or("resource");
            let (uri, length) = (word("uri").unwrap_or_default(), blob.map_or(0, str::len));
            write!(f, "[{kind}, {} characters of base64: {uri}]", grouped(length))
        }
    }
}

impl ToolOutput {
    /// An answer of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(text)], ..Self::default() }
    }

    /// An answer of one JSON value, shown as its text.
    pub fn json(value: impl Into<RawJson>) -> Self {
        let raw = value.into();
        Self { content: vec![ContentBlock::text(raw.get())], structured: Some(raw), ..Self::default() }
    }

    /// The same answer, to be shown whole.
    #[must_use]
    pub fn sized(mut self) -> Self {
        self.sized = true;
        self
    }

    /// All text of the answer; blocks that are not text are named in brackets.
    pub fn to_text(&self) -> String {
        if let [ContentBlock::Text { text }] = self.content.as_slice() {
            return text.clone();
        }
        let blocks: Vec<String> = self.content.iter().map(ToString::to_string).collect();
        blocks.join("\n")
    }

    /// The answer as one JSON value: the structured form, else the only text, else the list of blocks. A text that
    /// was cut stays one text: the line on what is missing belongs to it.
    pub fn to_json(&self) -> Value {
        let cut = self.meta.omitted.is_some();
        match (&self.structured, self.content.as_slice()) {
            (Some(structured), _) => structured.to_value(),
            (None, [ContentBlock::Text { text }]) => Value::String(text.clone()),
            (None, blocks) if cut && blocks.iter().all(|block| block.as_text().is_some()) => {
                Value::String(self.to_text())
            }
            (None, blocks) => json!(blocks),
        }
    }
}

/// Where an answer came from and what was done to it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OutputMeta {
    /// The source that answered, or the first of several.
    pub source: Option<SourceId>,
    /// Whether several answers were put together.
    pub synthesized: bool,
    /// How many sources are in the answer.
    pub source_count: usize,
    /// Which sources are in the answer.
    pub sources: Vec<SourceId>,
    /// Who was asked too and failed, one line each: `send_email (mail): did not answer within 30 s`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// What was cut away, and where the whole is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<Omitted>,
    /// How many calls were made for it, over all sources.
    pub attempts: u32,
}

impl OutputMeta {
    /// The facts about an answer of one source.
    pub fn of(source: SourceId, attempts: u32) -> Self {
        Self {
            sources: vec![source.clone()],
            source: Some(source),
            source_count: 1,
            attempts,
            ..Self::default()
        }
    }
}

/// How much of a text was left out, counted in characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Omitted {
    /// Characters that are shown.
    pub kept: usize,
    /// Characters that are not.
    pub omitted: usize,
    /// Both together.
    pub total: usize,
    /// Under which name the whole can be read with `read_result`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ResultRef>,
}

impl fmt::Display for Omitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [kept, omitted, total] = [self.kept, self.omitted, self.total].map(grouped);
        write!(f, "[showing {kept} of {total} characters, {omitted} omitted; ")?;
        match &self.reference {
            Some(reference) => write!(f, "the whole: read_result {{\"reference\":\"{reference}\"}}]"),
            None => write!(f, "the whole could not be kept]"),
        }
    }
}

/// A number with its thousands set apart: 12,480.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The seeds' result shape, `{success, result, error, _meta}`.
#[derive(Debug, Serialize)]
pub struct ToolResult {
    success: bool,
    result: Value,
    error: Option<String>,
    #[serde(rename = "_meta")]
    meta: Value,
}

impl ToolResult {
    /// The shape for an answer or for an error; an error's kind, hint and source stand in `_meta`.
    pub fn of(outcome: &Result<ToolOutput, ToolError>) -> Self {
        match outcome {
            Ok(output) => {
                Self { success: true, result: output.to_json(), error: None, meta: json!(output.meta) }
            }
            Err(error) => Self {
                success: false,
                result: Value::Null,
                error: Some(error.message().to_owned()),
                meta: json!(error),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_shape_of_a_success() {
        let mut output = ToolOutput::text("12");
        output.meta = OutputMeta::of("native".into(), 1);
        let shape = serde_json::to_value(ToolResult::of(&Ok(output))).unwrap();
        assert_eq!(
            shape,
            json!({"success": true, "result": "12", "error": null, "_meta":
                {"source": "native", "synthesized": false, "source_count": 1, "sources": ["native"], "attempts": 1}})
        );
    }

    #[test]
    fn the_residual_line_says_what_was_kept_and_where_the_rest_is() {
        let omitted =
            Omitted { kept: 500, omitted: 11_980, total: 12_480, reference: Some(ResultRef::new("r_7f3k")) };
        assert_eq!(
            omitted.to_string(),
            r#"[showing 500 of 12,480 characters, 11,980 omitted; the whole: read_result {"reference":"r_7f3k"}]"#
        );
    }

    #[test]
    fn a_cut_text_stays_one_text_in_json() {
        let omitted = Omitted { kept: 4, omitted: 6, total: 10, reference: None };
        let mut output = ToolOutput {
            content: vec![ContentBlock::text("four"), ContentBlock::text(omitted.to_string())],
            ..ToolOutput::default()
        };
        assert!(output.to_json().is_array(), "two blocks that the tool made stay two");
        output.meta.omitted = Some(omitted);
        let expected = "four\n[showing 4 of 10 characters, 6 omitted; the whole could not be kept]";
        assert_eq!(output.to_json(), json!(expected));
    }

    #[test]
    fn who_failed_beside_an_answer_is_said_only_where_there_is_someone() {
        let mut meta = OutputMeta::of("a".into(), 2);
        assert_eq!(json!(meta).get("failed"), None);
        meta.failed.push("send_email (mail): not reached".to_owned());
        assert_eq!(json!(meta)["failed"], json!(["send_email (mail): not reached"]));
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
