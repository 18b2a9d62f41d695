//! Truncates an output to its budget and stores the whole under a reference.

use std::borrow::Cow;

use serde_json::Value;
use tokio::{sync::Semaphore, time::timeout_at};
use toolyard_core::{ContentBlock, RawJson, ResultRef, Results, ToolOutput, Truncation};

use crate::{
    execution::{attempt::Call, dispatch::DispatchOutcome},
    output::{
        budget::truncated_prefix,
        synthesizer::{ELLIPSIS, UntruncatedText},
    },
};

/// Texts up to this size are compared as JSON values in place.
const MAX_INLINE_COMPARE_BYTES: usize = 256 << 10;
/// Longer texts are not compared as JSON values, and both are stored.
const MAX_COMPARED_BYTES: usize = 4 << 20;
/// How many long texts are compared at once, so that a server with many of them takes neither all memory nor all threads.
static LONG_COMPARISONS: Semaphore = Semaphore::const_new(2);

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
    dispatched: DispatchOutcome,
    limit: usize,
    results: &dyn Results,
) -> ToolOutput {
    let DispatchOutcome { mut output, kind, whole, .. } = dispatched;
    output.meta.attempts = call.attempts();
    if let Some(truncated) = truncated_text(&output, whole.as_ref(), limit).await {
        let reference = store_whole(call, &truncated.whole, results).await;
        replace_text(&mut output, truncated, reference);
    }
    call.log_decision("result", None, || {
        let shown =
            output.meta.truncation.as_ref().map_or_else(|| "shown whole".to_owned(), ToString::to_string);
        (format!("{kind:?}").to_lowercase(), shown)
    });
    output
}

async fn store_whole(call: &Call<'_>, whole: &str, results: &dyn Results) -> Option<ResultRef> {
    match timeout_at(call.processing_deadline(), results.store(whole, call.data_owner())).await {
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

/// The truncated text and the whole; `None` if the output fits, its JSON included. The whole is `untruncated` if given,
/// else the text plus JSON that differs from it.
async fn truncated_text(
    output: &ToolOutput,
    untruncated: Option<&UntruncatedText>,
    limit: usize,
) -> Option<TruncatedText> {
    if output.budget_exempt || (limit == usize::MAX && untruncated.is_none()) {
        return None;
    }
    let text = text_blocks(output);
    let shortened = truncated_prefix(&text, limit);
    let json = output.structured.as_ref().map(RawJson::get);
    let long_json = json.filter(|json| json.len() > limit && json.chars().nth(limit).is_some());
    if shortened.is_none() && untruncated.is_none() && long_json.is_none() {
        return None;
    }
    let kept = shortened.unwrap_or(&text).to_owned();
    let ellipsis_chars =
        untruncated.map_or(0, |untruncated| count_ellipsis_chars(&kept, &untruncated.ellipsis_offsets));
    let kept_characters = kept.chars().count().saturating_sub(ellipsis_chars);
    let whole = match (untruncated, long_json, json) {
        (Some(untruncated), ..) => untruncated.text.clone(),
        (None, Some(json), _) if shortened.is_none() => json.to_owned(),
        (None, _, Some(json)) => match is_same_value_off_thread(&text, json).await {
            true => text.into_owned(),
            false => format!("{text}\n\n{json}"),
        },
        (None, _, None) => text.into_owned(),
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

/// Characters of `kept` that belong to inserted ellipses.
fn count_ellipsis_chars(kept: &str, ellipsis_offsets: &[usize]) -> usize {
    let shown = |offset: &usize| {
        kept.get(*offset..).map_or(0, |rest| rest.chars().take(ELLIPSIS.chars().count()).count())
    };
    ellipsis_offsets.iter().map(shown).sum()
}

/// [`is_same_value`]. Large texts are compared on another thread, because other calls would wait.
async fn is_same_value_off_thread(text: &str, json: &str) -> bool {
    let size = text.len().max(json.len());
    if size <= MAX_INLINE_COMPARE_BYTES || text == json {
        return is_same_value(text, json);
    }
    // Rather than wait for others, both are stored.
    let Some(permit) = LONG_COMPARISONS.try_acquire().ok().filter(|_| size <= MAX_COMPARED_BYTES) else {
        return false;
    };
    let (text, json) = (text.to_owned(), json.to_owned());
    let compared = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        is_same_value(&text, &json)
    });
    compared.await.unwrap_or(false)
}

/// Whether the JSON says the same as the text: it is the same value, or an object whose only field is that value or that
/// text.
fn is_same_value(text: &str, json: &str) -> bool {
    let read = |text| serde_json::from_str::<Value>(text).ok();
    if text == json {
        return true;
    }
    let Some(structured) = read(json) else { return false };
    let only_field = structured.as_object().filter(|fields| fields.len() == 1);
    let wrapped = only_field.and_then(|fields| fields.values().next());
    wrapped.and_then(Value::as_str) == Some(text)
        || read(text).is_some_and(|value| structured == value || wrapped == Some(&value))
}

/// Replaces the text of an output by its beginning and a truncation notice; other content blocks are kept.
fn replace_text(output: &mut ToolOutput, truncated: TruncatedText, reference: Option<ResultRef>) {
    let kept = truncated.kept_characters;
    let omitted = truncated.whole.chars().count().saturating_sub(kept);
    let truncation = Truncation { kept, omitted, total: kept + omitted, reference };
    let mut content = vec![ContentBlock::text(truncated.kept), ContentBlock::text(truncation.to_string())];
    content.retain(|block| block.as_text() != Some(""));
    content.extend(output.content.drain(..).filter(|block| block.as_text().is_none()));
    output.content = content;
    output.structured = None;
    output.raw = None;
    output.meta.truncation = Some(truncation);
}
