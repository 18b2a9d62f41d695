//! Truncates an output to its budget and stores the whole under a reference.

use std::borrow::Cow;

use serde_json::Value;
use tokio::time::timeout_at;
use toolyard_core::{ContentBlock, RawJson, ResultRef, Results, ToolKind, ToolOutput, Truncation};

use crate::{
    execution::{attempt::Call, dispatch::DispatchOutcome},
    output::{
        budget::cut,
        synthesizer::{ELLIPSIS, UntruncatedText},
    },
};

/// A truncated text and the whole to store.
struct TruncatedText {
    kept: String,
    /// Characters of the whole that are shown.
    kept_characters: usize,
    whole: String,
}

/// Truncates an output to `limit` characters and stores the whole, as long as the call has time.
pub(crate) async fn truncate_output(
    call: &Call<'_>,
    asked: DispatchOutcome,
    limit: usize,
    results: &dyn Results,
) -> ToolOutput {
    let DispatchOutcome { mut output, kind, whole } = asked;
    output.meta.attempts = call.attempts();
    if let Some(part) = truncated_text(&output, whole.as_ref(), limit) {
        let reference = store_whole(call, &part.whole, results).await;
        replace_text(&mut output, part, reference);
    }
    call.note("result", None, || {
        let shown =
            output.meta.truncation.as_ref().map_or_else(|| "shown whole".to_owned(), ToString::to_string);
        (kind_name(kind).to_owned(), shown)
    });
    output
}

async fn store_whole(call: &Call<'_>, whole: &str, results: &dyn Results) -> Option<ResultRef> {
    match timeout_at(call.last_moment(), results.store(whole)).await {
        Ok(Ok(reference)) => Some(reference),
        Ok(Err(error)) => {
            tracing::warn!(%error, "failed to store the whole result");
            None
        }
        Err(_elapsed) => {
            tracing::warn!("failed to store the whole result before the deadline");
            None
        }
    }
}

/// `None` if the output fits, its JSON included. The whole is `fuller` if given, else the text plus JSON that differs from it.
fn truncated_text(
    output: &ToolOutput,
    fuller: Option<&UntruncatedText>,
    limit: usize,
) -> Option<TruncatedText> {
    if output.budget_exempt || (limit == usize::MAX && fuller.is_none()) {
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
    let marks = fuller.map_or(0, |fuller| count_marks(&kept, &fuller.marks));
    let kept_characters = kept.chars().count().saturating_sub(marks);
    let whole = match (fuller, long_json, json) {
        (Some(fuller), ..) => fuller.text.clone(),
        (None, Some(json), _) if fitted.is_none() => json.to_owned(),
        (None, _, Some(json)) if !same_value(&text, json) => format!("{text}\n\n{json}"),
        _ => text.into_owned(),
    };
    Some(TruncatedText { kept, kept_characters, whole })
}

/// The text to truncate; other content blocks are kept.
fn text_blocks(output: &ToolOutput) -> Cow<'_, str> {
    match (output.content.as_slice(), &output.structured) {
        ([], Some(structured)) => structured.get().into(),
        ([ContentBlock::Text { text }], _) => text.into(),
        (blocks, _) => blocks.iter().filter_map(ContentBlock::as_text).collect::<Vec<_>>().join("\n").into(),
    }
}

/// Characters of `kept` that are inserted marks.
fn count_marks(kept: &str, marks: &[usize]) -> usize {
    let shown =
        |at: &usize| kept.get(*at..).map_or(0, |rest| rest.chars().take(ELLIPSIS.chars().count()).count());
    marks.iter().map(shown).sum()
}

/// Whether a text is the same JSON value.
fn same_value(text: &str, json: &str) -> bool {
    let read = |text| serde_json::from_str::<Value>(text).ok();
    text == json || read(text).is_some_and(|value| read(json) == Some(value))
}

/// Replaces the text of an output by its beginning and a truncation notice; other content blocks are kept.
fn replace_text(output: &mut ToolOutput, part: TruncatedText, reference: Option<ResultRef>) {
    let kept = part.kept_characters;
    let omitted = part.whole.chars().count().saturating_sub(kept);
    let omitted = Truncation { kept, omitted, total: kept + omitted, reference };
    let mut content = vec![ContentBlock::text(part.kept), ContentBlock::text(omitted.to_string())];
    content.retain(|block| block.as_text() != Some(""));
    content.extend(output.content.drain(..).filter(|block| block.as_text().is_none()));
    output.content = content;
    output.structured = None;
    output.raw = None;
    output.meta.truncation = Some(omitted);
}

fn kind_name(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Calculate => "calculate",
        ToolKind::Time => "time",
        ToolKind::Search => "search",
        ToolKind::Extract => "extract",
        ToolKind::History => "history",
        ToolKind::Other => "other",
    }
}
