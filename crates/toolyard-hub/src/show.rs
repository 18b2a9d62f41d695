//! Shows as much of an answer as its budget allows, and keeps the whole where it can be read.

use std::borrow::Cow;

use serde_json::Value;
use tokio::time::timeout_at;
use toolyard_core::{ContentBlock, Omitted, RawJson, ResultRef, Results, ToolKind, ToolOutput};

use crate::{
    attempt::Call,
    budget::cut,
    execution::Asked,
    synthesizer::{MORE, Whole},
};

/// What is shown of an answer that does not fit, and what is kept of it.
struct Part {
    kept: String,
    /// How many of the whole's characters that is.
    kept_characters: usize,
    whole: String,
}

/// Cuts what is longer than `limit` characters, and keeps the whole, as long as the call has time.
pub(crate) async fn show(call: &Call<'_>, asked: Asked, limit: usize, results: &dyn Results) -> ToolOutput {
    let Asked { mut output, kind, whole } = asked;
    output.meta.attempts = call.attempts();
    if let Some(part) = part_to_show(&output, whole.as_ref(), limit) {
        let reference = keep(call, &part.whole, results).await;
        show_part(&mut output, part, reference);
    }
    call.note("result", None, || {
        let shown =
            output.meta.omitted.as_ref().map_or_else(|| "shown whole".to_owned(), ToString::to_string);
        (kind_word(kind).to_owned(), shown)
    });
    output
}

async fn keep(call: &Call<'_>, whole: &str, results: &dyn Results) -> Option<ResultRef> {
    match timeout_at(call.last_moment(), results.keep(whole)).await {
        Ok(Ok(reference)) => Some(reference),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the whole result is lost");
            None
        }
        Err(_elapsed) => {
            tracing::warn!("the whole result is lost: it was not kept before the deadline");
            None
        }
    }
}

/// Nothing when all of it may be shown, the JSON form included. What the sources said in full, where there is more than
/// the text, is the whole; else the text, and JSON that says something else.
fn part_to_show(output: &ToolOutput, fuller: Option<&Whole>, limit: usize) -> Option<Part> {
    if output.sized || (limit == usize::MAX && fuller.is_none()) {
        return None;
    }
    let text = text_blocks(output);
    let fitted = cut(&text, limit);
    let json = output.structured.as_ref().map(RawJson::get);
    let long_json = json.filter(|json| json.len() > limit && json.chars().nth(limit).is_some());
    if fitted.is_none() && fuller.is_none() && long_json.is_none() {
        return None;
    }
    let kept = fitted.unwrap_or(&text).to_owned();
    let marks = fuller.map_or(0, |fuller| marks_in(&kept, &fuller.marks));
    let kept_characters = kept.chars().count().saturating_sub(marks);
    let whole = match (fuller, long_json, json) {
        (Some(fuller), ..) => fuller.text.clone(),
        (None, Some(json), _) if fitted.is_none() => json.to_owned(),
        (None, _, Some(json)) if !same_value(&text, json) => format!("{text}\n\n{json}"),
        _ => text.into_owned(),
    };
    Some(Part { kept, kept_characters, whole })
}

/// The text to be cut: blocks that are not text are shown as they are.
fn text_blocks(output: &ToolOutput) -> Cow<'_, str> {
    match (output.content.as_slice(), &output.structured) {
        ([], Some(structured)) => structured.get().into(),
        ([ContentBlock::Text { text }], _) => text.into(),
        (blocks, _) => blocks.iter().filter_map(ContentBlock::as_text).collect::<Vec<_>>().join("\n").into(),
    }
}

/// How many characters of `kept` belong to marks that nobody said.
fn marks_in(kept: &str, marks: &[usize]) -> usize {
    let shown =
        |at: &usize| kept.get(*at..).map_or(0, |rest| rest.chars().take(MORE.chars().count()).count());
    marks.iter().map(shown).sum()
}

/// Whether a text is the same JSON, in whatever spelling.
fn same_value(text: &str, json: &str) -> bool {
    let read = |text| serde_json::from_str::<Value>(text).ok();
    text == json || read(text).is_some_and(|value| read(json) == Some(value))
}

/// Replaces the text of an answer by its beginning and a line on what is missing. Blocks that are not text stay.
fn show_part(output: &mut ToolOutput, part: Part, reference: Option<ResultRef>) {
    let kept = part.kept_characters;
    let omitted = part.whole.chars().count().saturating_sub(kept);
    let omitted = Omitted { kept, omitted, total: kept + omitted, reference };
    let mut content = vec![ContentBlock::text(part.kept), ContentBlock::text(omitted.to_string())];
    content.retain(|block| block.as_text() != Some(""));
    content.extend(output.content.drain(..).filter(|block| block.as_text().is_none()));
    output.content = content;
    output.structured = None;
    output.raw = None;
    output.meta.omitted = Some(omitted);
}

fn kind_word(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Calculate => "calculate",
        ToolKind::Time => "time",
        ToolKind::Search => "search",
        ToolKind::Extract => "extract",
        ToolKind::History => "history",
        ToolKind::Other => "other",
    }
}
