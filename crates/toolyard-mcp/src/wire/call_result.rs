//! The result of `tools/call`, read leniently: content as blocks, structured content and the whole as they came.

use toolyard_core::{
    ContentBlock, ErrorKind, JsonCursor, JsonFault, JsonKind, OutputMeta, RawFailure, RawJson, ToolError,
    ToolOutput,
};

use super::{
    content::read_content,
    walk::{each_field, short_text, shortened},
};

/// More questions than this are never asked at once.
const MAX_QUESTIONS: usize = 100;
/// What identifies a question, or a kind of result.
const MAX_NAME: usize = 256;
/// What a tool says about its failure is kept up to this many bytes.
const MAX_FAILURE: usize = 64 << 10;

/// What a tool answered.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    /// All of it as it came.
    pub raw: RawJson,
    /// What kind of answer it is.
    pub kind: ResultKind,
    /// Whether the tool says that it failed.
    pub is_error: bool,
    /// What a model or a person reads.
    pub content: Vec<ContentBlock>,
    /// The same facts as JSON, where the tool gave them.
    pub structured: Option<RawJson>,
    /// What is said about the answer.
    pub meta: Option<RawJson>,
}

/// What kind of answer a result is.
#[derive(Debug, Clone, PartialEq)]
pub enum ResultKind {
    /// The answer.
    Complete,
    /// The server needs to know more first.
    InputRequired(InputRequired),
    /// Something that is not known here, such as `task`.
    Other(String),
}

/// What a server needs to know before it goes on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InputRequired {
    /// The questions under the server's own keys, as they came.
    pub requests: Vec<(String, RawJson)>,
    /// To be given back as it came, with the answers.
    pub state: Option<String>,
}

impl CallResult {
    /// Reads the result of `tools/call`. Whatever it is, something can be said about it.
    pub fn read(result: &RawJson) -> Self {
        let mut call = Self {
            raw: result.clone(),
            kind: ResultKind::Complete,
            is_error: false,
            content: Vec::new(),
            structured: None,
            meta: None,
        };
        if call.read_fields(result).is_err() {
            // Our own messages are never nested so deeply.
            call.kind = ResultKind::Other("too deeply nested".to_owned());
        }
        call
    }

    fn read_fields(&mut self, result: &RawJson) -> Result<(), JsonFault> {
        let mut cursor = JsonCursor::of(result);
        let mut input = InputRequired::default();
        let (content, structured, meta) = (&mut self.content, &mut self.structured, &mut self.meta);
        let (mut kind, is_error) = (None, &mut self.is_error);
        let part = |cursor: &mut JsonCursor<'_>| {
            let value = cursor.skip()?;
            Ok((value.kind() != JsonKind::Null).then(|| result.part(value)))
        };
        let is_object = each_field(&mut cursor, |key, cursor| {
            match key {
                "content" => *content = read_content(cursor)?,
                "structuredContent" => *structured = part(cursor)?,
                // What says that it failed, however it is spelt, is not taken for done.
                "isError" => *is_error = matches!(cursor.skip()?.get(), "true" | "\"true\"" | "1"),
                "resultType" => kind = short_text(cursor, MAX_NAME)?,
                "inputRequests" => input.requests = read_questions(cursor, result)?,
                "requestState" => input.state = cursor.skip()?.string().map(std::borrow::Cow::into_owned),
                "_meta" => *meta = part(cursor)?,
                _ => drop(cursor.skip()?),
            }
            Ok(())
        })?;
        if !is_object {
            *content = read_content(&mut cursor)?;
        }
        self.kind = match kind.as_deref() {
            // The specification: what says nothing is complete.
            None | Some("complete" | "") => ResultKind::Complete,
            Some("input_required") => ResultKind::InputRequired(input),
            Some(other) => ResultKind::Other(other.to_owned()),
        };
        Ok(())
    }

    /// The answer as the hub takes it: the tool's failure is an error, and so is anything that is no answer. Questions are
    /// passed on; only for whoever takes them do they get here.
    pub fn into_output(self) -> Result<ToolOutput, ToolError> {
        match &self.kind {
            ResultKind::Complete if self.is_error => return Err(self.failure()),
            ResultKind::Complete => {}
            ResultKind::InputRequired(_) => {
                return Ok(ToolOutput { asks: true, raw: Some(self.raw), ..ToolOutput::default() });
            }
            // Whatever it is: the server has begun with something.
            ResultKind::Other(kind) => {
                let message =
                    format!("it answered with a result of the kind `{kind}`, which is not known here");
                return Err(ToolError::new(ErrorKind::OutcomeUnknown, message)
                    .with_hint("look at the server whether anything was done"));
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
            // Servers should say the same as text for whoever reads no JSON; those that do not are helped.
            output.content.push(ContentBlock::text(structured.get()));
        }
        Ok(output)
    }

    fn failure(self) -> ToolError {
        let said = ToolOutput { content: self.content, ..ToolOutput::default() }.to_text();
        let said = match (said.trim(), &self.structured) {
            ("", Some(structured)) => structured.get(),
            ("", None) => "the tool failed and did not say why",
            (said, _) => said,
        };
        ToolError::failed(shortened(said, MAX_FAILURE)).with_raw(RawFailure::Result(self.raw))
    }
}

impl InputRequired {
    /// What a server needs to know before it goes on, if a result of any method says that it does.
    pub fn of(result: &RawJson) -> Option<Self> {
        let (mut input, mut asks) = (Self::default(), false);
        // What cannot be read is no question.
        each_field(&mut JsonCursor::of(result), |key, cursor| {
            match key {
                "resultType" => asks = cursor.skip()?.get() == "\"input_required\"",
                "inputRequests" => input.requests = read_questions(cursor, result)?,
                "requestState" => input.state = cursor.skip()?.string().map(std::borrow::Cow::into_owned),
                _ => drop(cursor.skip()?),
            }
            Ok(())
        })
        .ok()?;
        asks.then_some(input)
    }
}

fn read_questions(
    cursor: &mut JsonCursor<'_>,
    result: &RawJson,
) -> Result<Vec<(String, RawJson)>, JsonFault> {
    let mut questions = Vec::new();
    let is_object = each_field(cursor, |key, cursor| {
        let question = cursor.skip()?;
        if questions.len() < MAX_QUESTIONS && key.len() <= MAX_NAME {
            questions.push((key.to_owned(), result.part(question)));
        }
        Ok(())
    })?;
    if !is_object {
        cursor.skip()?;
    }
    Ok(questions)
}

#[cfg(test)]
#[path = "call_result_tests.rs"]
mod tests;
