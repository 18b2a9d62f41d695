//! Removes unsafe characters from a result and stores its unchanged form, so that a client can still read what the tool sent.

use toolyard_core::{DataOwner, RawJson, RawToolError, Results, ToolError, ToolOutput, text::sanitize_json};
use toolyard_mcp::{FieldEdit, edit_fields, raw_field};

/// The `_meta` key for the URI of the unchanged result.
const RAW_RESULT_META: &str = "toolyard/rawResult";
/// Larger results are sanitized on a thread for blocking work.
const MAX_INLINE_BYTES: usize = 128 << 10;

/// Sanitizes the result of a server. If that changes it, the unchanged result is stored and its URI is added to `_meta`.
pub(super) async fn sanitize_output(
    mut output: ToolOutput,
    results: &dyn Results,
    owner: DataOwner,
) -> ToolOutput {
    // Input requests contain state that must stay unchanged; the MCP server sanitizes their texts.
    if let Some(raw) = output.raw.clone().filter(|_| !output.input_required)
        && let Some(safe) = sanitize_result(&raw, results, owner).await
    {
        output.raw = Some(safe);
    }
    output
}

/// The same for a result that reports a failure.
pub(super) async fn sanitize_error(error: ToolError, results: &dyn Results, owner: DataOwner) -> ToolError {
    let Some(RawToolError::ToolResult(raw)) = error.raw().cloned() else { return error };
    match sanitize_result(&raw, results, owner).await {
        Some(safe) => error.with_raw(RawToolError::ToolResult(safe)),
        None => error,
    }
}

/// The sanitized result with the URI of the unchanged one; none if nothing has to be changed.
async fn sanitize_result(raw: &RawJson, results: &dyn Results, owner: DataOwner) -> Option<RawJson> {
    let safe = sanitize_if_unsafe(raw.clone()).await?;
    Some(match results.store(raw.get(), owner).await {
        Ok(reference) => with_raw_result(&safe, &reference.uri()),
        Err(error) => {
            tracing::warn!(%error, "failed to store the unchanged form of a result");
            safe
        }
    })
}

/// The result without unsafe characters; none if it has none.
async fn sanitize_if_unsafe(raw: RawJson) -> Option<RawJson> {
    let (safe, is_changed) = if raw.get().len() <= MAX_INLINE_BYTES {
        sanitize_json(&raw)
    } else {
        // Fails only if the runtime shuts down.
        tokio::task::spawn_blocking(move || sanitize_json(&raw)).await.ok()?
    };
    is_changed.then_some(safe)
}

/// Adds the URI of the unchanged result to the `_meta` of a result.
fn with_raw_result(result: &RawJson, uri: &str) -> RawJson {
    let remove = |name: &'static str| {
        move |key: &str, _: &RawJson| if key == name { FieldEdit::Remove } else { FieldEdit::Keep }
    };
    let meta = raw_field(result, "_meta").map(|meta| edit_fields(&meta, remove(RAW_RESULT_META)));
    let meta = meta.unwrap_or_default().with_text(RAW_RESULT_META, uri);
    edit_fields(result, remove("_meta")).with_object("_meta", &meta).to_raw()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolyard_core::ResultRef;
    use toolyard_hub::MemoryResults;

    use super::*;

    const OWNER: DataOwner = DataOwner::Operator;

    fn output(raw: serde_json::Value) -> ToolOutput {
        ToolOutput { raw: Some(raw.into()), ..ToolOutput::default() }
    }

    #[tokio::test]
    async fn the_unchanged_form_of_a_sanitized_result_is_readable_under_its_reference() {
        let results = MemoryResults::default();
        let sent = json!({"content": [{"type": "text", "text": "a\u{202e}b"}], "_meta": {"theirs": 1}});
        let safe = sanitize_output(output(sent.clone()), &results, OWNER).await.raw.unwrap().to_value();
        assert_eq!(safe["content"][0]["text"], "ab");
        assert_eq!(safe["_meta"]["theirs"], 1);
        let uri = safe["_meta"][RAW_RESULT_META].as_str().unwrap();
        let (reference, _) = ResultRef::from_uri(uri).unwrap();
        let page = results.read(&reference, OWNER, 0, 1_000).await.unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&page.text).unwrap(), sent);
    }

    #[tokio::test]
    async fn the_unchanged_form_of_a_failure_is_readable_too() {
        let results = MemoryResults::default();
        let sent =
            RawJson::from(json!({"content": [{"type": "text", "text": "a\u{1b}[31mb"}], "isError": true}));
        let error = ToolError::failed("no").with_raw(RawToolError::ToolResult(sent));
        let error = sanitize_error(error, &results, OWNER).await;
        let Some(RawToolError::ToolResult(safe)) = error.raw() else { panic!("{error:?}") };
        let safe = safe.to_value();
        assert_eq!(safe["content"][0]["text"], "ab");
        assert!(safe["_meta"][RAW_RESULT_META].is_string());
    }

    #[tokio::test]
    async fn a_safe_result_stays_as_it_is() {
        let sent = output(json!({"content": [{"type": "text", "text": "中文 👩\u{200d}💻"}]}));
        assert_eq!(sanitize_output(sent.clone(), &MemoryResults::default(), OWNER).await, sent);
    }
}
