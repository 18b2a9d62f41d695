//! [`CallResult`]: the result of `tools/call`, decoded leniently.

use toolyard_core::{
    ContentBlock, ErrorKind, JsonCursor, JsonError, JsonKind, OutputMeta, RawJson, RawToolError, ToolError,
    ToolOutput,
};

use super::content::read_content;
use crate::json::{each_field, each_field_or_skip, truncate, truncated_text};

/// Input requests in a result; further ones are ignored.
const MAX_INPUT_REQUESTS: usize = 100;
/// Bytes of the key of an input request, or of a result type.
const MAX_NAME_BYTES: usize = 256;
/// Longer error texts are truncated.
const MAX_ERROR_TEXT_BYTES: usize = 64 << 10;

/// The result of `tools/call`.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    /// The whole result as sent.
    pub raw: RawJson,
    /// The result type.
    pub kind: ResultKind,
    /// Whether the tool reported a failure.
    pub is_error: bool,
    /// Content for models and users.
    pub content: Vec<ContentBlock>,
    /// Structured content.
    pub structured: Option<RawJson>,
    /// `_meta`.
    pub meta: Option<RawJson>,
}

/// The type of a result.
#[derive(Debug, Clone, PartialEq)]
pub enum ResultKind {
    /// The call is complete.
    Complete,
    /// The server needs input to complete the call.
    InputRequired(InputRequired),
    /// An unknown type.
    Other(String),
}

/// The input that a server needs to complete a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InputRequired {
    /// The input requests by their keys, raw.
    pub requests: Vec<(String, RawJson)>,
    /// The state to send back with the responses.
    pub state: Option<String>,
}

impl CallResult {
    /// Decodes the result of `tools/call`; never fails.
    pub fn read(result: &RawJson) -> Self {
        let mut call_result = Self {
            raw: result.clone(),
            kind: ResultKind::Complete,
            is_error: false,
            content: Vec::new(),
            structured: None,
            meta: None,
        };
        if call_result.read_fields(result).is_err() {
            // Cannot happen: the message was already parsed within the depth limit.
            call_result.kind = ResultKind::Other("too deeply nested".to_owned());
        }
        call_result
    }

    fn read_fields(&mut self, result: &RawJson) -> Result<(), JsonError> {
        let mut cursor = JsonCursor::of(result);
        let mut input = InputRequired::default();
        let (content, structured, meta) = (&mut self.content, &mut self.structured, &mut self.meta);
        let (mut kind, is_error) = (None, &mut self.is_error);
        let read_raw = |cursor: &mut JsonCursor<'_>| {
            let value = cursor.next_value()?;
            Ok((value.kind() != JsonKind::Null).then(|| result.part(value)))
        };
        let is_object = each_field(&mut cursor, |key, cursor| {
            match key {
                "content" => *content = read_content(cursor)?,
                "structuredContent" => *structured = read_raw(cursor)?,
                // A reported failure in any notation must not count as success.
                "isError" => *is_error = matches!(cursor.next_value()?.get(), "true" | "\"true\"" | "1"),
                "resultType" => kind = truncated_text(cursor, MAX_NAME_BYTES)?,
                "inputRequests" => input.requests = read_input_requests(cursor, result)?,
                "requestState" => {
                    input.state = cursor.next_value()?.string().map(std::borrow::Cow::into_owned);
                }
                "_meta" => *meta = read_raw(cursor)?,
                _ => drop(cursor.next_value()?),
            }
            Ok(())
        })?;
        if !is_object {
            *content = read_content(&mut cursor)?;
        }
        self.kind = match kind.as_deref() {
            // The MCP specification: a result without a type is complete.
            None | Some("complete" | "") => ResultKind::Complete,
            Some("input_required") => ResultKind::InputRequired(input),
            Some(other) => ResultKind::Other(other.to_owned()),
        };
        Ok(())
    }

    /// The output of the call. Failures and unknown result types are errors; input requests are passed on raw.
    pub fn into_output(self) -> Result<ToolOutput, ToolError> {
        match &self.kind {
            ResultKind::Complete if self.is_error => return Err(self.failure()),
            ResultKind::Complete => {}
            ResultKind::InputRequired(_) => {
                return Ok(ToolOutput { input_required: true, raw: Some(self.raw), ..ToolOutput::default() });
            }
            // The server may have acted already.
            ResultKind::Other(kind) => {
                let message = format!("unknown result type `{kind}`");
                return Err(ToolError::new(ErrorKind::OutcomeUnknown, message)
                    .with_hint("check on the server whether the call had an effect"));
            }
        }
        let (raw, meta) = (Some(self.raw), OutputMeta::default());
        let mut output = ToolOutput {
            content: self.content,
            structured: self.structured,
            raw,
            meta,
            ..ToolOutput::default()
        };
        if let (true, Some(structured)) = (output.content.is_empty(), &output.structured) {
            // Structured content doubles as text where a server sends none.
            output.content.push(ContentBlock::text(structured.get()));
        }
        Ok(output)
    }

    fn failure(self) -> ToolError {
        let text = ToolOutput { content: self.content, ..ToolOutput::default() }.to_text();
        let text = match (text.trim(), &self.structured) {
            ("", Some(structured)) => structured.get(),
            ("", None) => "the tool failed without a message",
            (text, _) => text,
        };
        ToolError::failed(truncate(text, MAX_ERROR_TEXT_BYTES)).with_raw(RawToolError::ToolResult(self.raw))
    }
}

impl InputRequired {
    /// The input that a result of any method requests; none for complete results.
    pub fn read(result: &RawJson) -> Option<Self> {
        let (mut input, mut is_input_required) = (Self::default(), false);
        // An undecodable result requests nothing.
        each_field(&mut JsonCursor::of(result), |key, cursor| {
            match key {
                "resultType" => is_input_required = cursor.next_value()?.get() == "\"input_required\"",
                "inputRequests" => input.requests = read_input_requests(cursor, result)?,
                "requestState" => {
                    input.state = cursor.next_value()?.string().map(std::borrow::Cow::into_owned);
                }
                _ => drop(cursor.next_value()?),
            }
            Ok(())
        })
        .ok()?;
        is_input_required.then_some(input)
    }
}

fn read_input_requests(
    cursor: &mut JsonCursor<'_>,
    result: &RawJson,
) -> Result<Vec<(String, RawJson)>, JsonError> {
    let mut requests = Vec::new();
    each_field_or_skip(cursor, |key, cursor| {
        let request = cursor.next_value()?;
        if requests.len() < MAX_INPUT_REQUESTS && key.len() <= MAX_NAME_BYTES {
            requests.push((key.to_owned(), result.part(request)));
        }
        Ok(())
    })?;
    Ok(requests)
}

#[cfg(test)]
#[path = "call_result_tests.rs"]
mod tests;
