//! The output of a tool call, its metadata, and the specification's JSON form of both.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{RawJson, ResultRef, SourceId, ToolError};

/// The output of a successful call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// The content for models and people.
    pub content: Vec<ContentBlock>,
    /// The same data as JSON, if the tool provides it.
    pub structured: Option<RawJson>,
    /// Whether the output budget does not apply, because the tool limits its size itself (such as a page of a result).
    pub budget_exempt: bool,
    /// Whether this is not a final output but input requests, which are in `raw`. The caller calls again with its responses.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub input_required: bool,
    /// The result exactly as the server sent it, as long as nothing was truncated. It is passed on but never stored.
    #[serde(skip)]
    pub raw: Option<RawJson>,
    /// Sources and processing.
    pub meta: OutputMeta,
}

/// One block of content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// Base64.
        data: String,
        /// Such as `image/png`.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// Audio.
    Audio {
        /// Base64.
        data: String,
        /// Such as `audio/wav`.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// A link to a resource.
    ResourceLink {
        /// The address of the resource.
        uri: String,
        /// The name of the resource.
        name: String,
    },
    /// An embedded resource.
    Resource {
        /// The resource with its address, type and content.
        resource: Value,
    },
    /// An unknown type of content.
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
                write!(f, "[{mime_type}, {} characters of base64]", group_digits(data.len()))
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

/// Writes an embedded resource as its text, or a summary in brackets if it has none.
fn write_resource(f: &mut fmt::Formatter<'_>, resource: &Value) -> fmt::Result {
    let field = |key| resource.get(key).and_then(Value::as_str);
    match (field("text"), field("blob")) {
        (Some(text), _) => f.write_str(text),
        (None, blob) => {
            let kind = field("mimeType").unwrap_or("resource");
            let (uri, length) = (field("uri").unwrap_or_default(), blob.map_or(0, str::len));
            write!(f, "[{kind}, {} characters of base64: {uri}]", group_digits(length))
        }
    }
}

impl ToolOutput {
    /// An output of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![ContentBlock::text(text)], ..Self::default() }
    }

    /// An output of one JSON value, with its text as content.
    pub fn json(value: impl Into<RawJson>) -> Self {
        let raw = value.into();
        Self { content: vec![ContentBlock::text(raw.get())], structured: Some(raw), ..Self::default() }
    }

    /// Exempts the output from the output budget.
    #[must_use]
    pub fn exempt_from_budget(mut self) -> Self {
        self.budget_exempt = true;
        self
    }

    /// All content as text; other blocks are summarized in brackets.
    pub fn to_text(&self) -> String {
        if let [ContentBlock::Text { text }] = self.content.as_slice() {
            return text.clone();
        }
        let blocks: Vec<String> = self.content.iter().map(ToString::to_string).collect();
        blocks.join("\n")
    }

    /// The output as one JSON value: the structured form, else the only text, else the list of blocks. A truncated text stays
    /// one text, including the line about the truncation.
    pub fn to_json(&self) -> Value {
        let is_truncated = self.meta.truncation.is_some();
        match (&self.structured, self.content.as_slice()) {
            (Some(structured), _) => structured.to_value(),
            (None, [ContentBlock::Text { text }]) => Value::String(text.clone()),
            (None, blocks) if is_truncated && blocks.iter().all(|block| block.as_text().is_some()) => {
                Value::String(self.to_text())
            }
            (None, blocks) => json!(blocks),
        }
    }
}

/// The sources of an output and how it was processed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OutputMeta {
    /// The source of the output, or the first of several.
    pub source: Option<SourceId>,
    /// Whether several outputs were combined.
    pub synthesized: bool,
    /// The number of sources in the output.
    pub source_count: usize,
    /// The sources in the output.
    pub sources: Vec<SourceId>,
    /// Sources that failed, one line each: `send_email (mail): did not answer within 30 s`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// How much was truncated, and where the whole output is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncation: Option<Truncation>,
    /// Whether texts and lists of the structured content were shortened.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub structured_truncated: bool,
    /// The number of calls made, over all sources.
    pub attempts: u32,
}

impl OutputMeta {
    /// The metadata of an output of one source.
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

/// How much of an output was truncated, in characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truncation {
    /// Characters in the truncated output.
    pub kept: usize,
    /// Characters that are missing.
    pub omitted: usize,
    /// Characters of the whole output.
    pub total: usize,
    /// Reference of the stored whole output, for `read_result`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ResultRef>,
}

impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [kept, omitted, total] = [self.kept, self.omitted, self.total].map(group_digits);
        write!(f, "[showing {kept} of {total} characters, {omitted} omitted; ")?;
        match &self.reference {
            Some(reference) => write!(f, "the whole: read_result {{\"reference\":\"{reference}\"}}]"),
            None => write!(f, "the whole could not be kept]"),
        }
    }
}

/// A number with separated thousands: 12,480.
pub fn group_digits(number: usize) -> String {
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

/// The specification's result format, `{success, result, error, _meta}`.
#[derive(Debug, Serialize)]
pub struct ToolResult {
    success: bool,
    result: Value,
    error: Option<String>,
    #[serde(rename = "_meta")]
    meta: Value,
}

impl ToolResult {
    /// The result of a call; kind, hint and source of an error are in `_meta`.
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
    fn a_success_has_the_format_of_the_specification() {
        let mut output = ToolOutput::text("12");
        output.meta = OutputMeta::of("native".into(), 1);
        let json_result = serde_json::to_value(ToolResult::of(&Ok(output))).unwrap();
        assert_eq!(
            json_result,
            json!({"success": true, "result": "12", "error": null, "_meta":
                {"source": "native", "synthesized": false, "source_count": 1, "sources": ["native"], "attempts": 1}})
        );
    }

    #[test]
    fn the_truncation_line_names_sizes_and_reference() {
        let truncation = Truncation {
            kept: 500,
            omitted: 11_980,
            total: 12_480,
            reference: Some(ResultRef::new("r_7f3k")),
        };
        assert_eq!(
            truncation.to_string(),
            r#"[showing 500 of 12,480 characters, 11,980 omitted; the whole: read_result {"reference":"r_7f3k"}]"#
        );
    }

    #[test]
    fn a_truncated_text_stays_one_text_in_json() {
        let truncation = Truncation { kept: 4, omitted: 6, total: 10, reference: None };
        let mut output = ToolOutput {
            content: vec![ContentBlock::text("four"), ContentBlock::text(truncation.to_string())],
            ..ToolOutput::default()
        };
        assert!(output.to_json().is_array(), "two blocks that the tool made stay two");
        output.meta.truncation = Some(truncation);
        let expected = "four\n[showing 4 of 10 characters, 6 omitted; the whole could not be kept]";
        assert_eq!(output.to_json(), json!(expected));
    }

    #[test]
    fn failed_sources_are_listed_only_if_there_are_any() {
        let mut meta = OutputMeta::of("a".into(), 2);
        assert_eq!(json!(meta).get("failed"), None);
        meta.failed.push("send_email (mail): not reached".to_owned());
        assert_eq!(json!(meta)["failed"], json!(["send_email (mail): not reached"]));
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(group_digits), ["0", "999", "1,000", "1,234,567"]);
    }
}
