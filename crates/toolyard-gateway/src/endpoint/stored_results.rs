//! Serves stored results as resources, so that a client can read the rest of a truncated output without a tool.

use std::{fmt, sync::Arc};

use serde_json::{Value, json};
use toolyard_core::{
    BoxFuture, DataOwner, RawJson, ResultPage, ResultRef, Results, ResultsError, escape_unsafe, group_digits,
};
use toolyard_mcp::{RpcError, error_code};
use toolyard_mcp_server::{ContentCapabilities, ContentKind, ContentRequest, ContentService};

const MAX_PAGE_BYTES: usize = 1 << 20;

/// Stored results at `toolyard://results/REFERENCE`.
pub(super) struct StoredResults(pub(super) Arc<dyn Results>);

impl StoredResults {
    /// Reads a page; `query` is what follows the reference in the URI.
    async fn read(
        &self,
        uri: &str,
        reference: ResultRef,
        query: &str,
        reader: DataOwner,
    ) -> Result<RawJson, RpcError> {
        let offset = match query.strip_prefix("?offset=") {
            Some(number) => number.parse().map_err(|_| not_found(uri, "the offset is not a number"))?,
            None if query.is_empty() => 0,
            None => return Err(not_found(uri, "only `?offset=` may follow the reference")),
        };
        match self.0.read(&reference, reader, offset, MAX_PAGE_BYTES).await {
            Ok(page) => Ok(RawJson::from_value(&contents(uri, &reference, &page))),
            Err(error @ ResultsError::NotFound(_)) => Err(not_found(uri, &error.to_string())),
            Err(error) => {
                Err(RpcError { code: error_code::INTERNAL_ERROR, message: error.to_string(), data: None })
            }
        }
    }
}

impl fmt::Debug for StoredResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoredResults")
    }
}

impl ContentService for StoredResults {
    fn capabilities(&self) -> ContentCapabilities {
        ContentCapabilities { resources: true, ..ContentCapabilities::default() }
    }

    fn list(&self, kind: ContentKind) -> BoxFuture<'_, Vec<RawJson>> {
        let template = json!({
            "uriTemplate": "toolyard://results/{reference}{?offset}",
            "name": "whole result",
            "description": "A result that was too long to be shown whole",
            "mimeType": "text/plain",
        });
        let listed = match kind {
            ContentKind::ResourceTemplates => vec![template.into()],
            _ => Vec::new(),
        };
        Box::pin(std::future::ready(listed))
    }

    fn request<'a>(
        &'a self,
        request: ContentRequest<'a>,
    ) -> BoxFuture<'a, Option<Result<RawJson, RpcError>>> {
        Box::pin(async move {
            if request.method != "resources/read" {
                return None;
            }
            let params = request.params.to_value();
            let uri = params.get("uri").and_then(Value::as_str)?;
            let (reference, query) = ResultRef::from_uri(uri)?;
            let identity = request.caller.as_ref().and_then(|caller| caller.identity());
            let reader = DataOwner::of(identity.map(|identity| &**identity));
            Some(self.read(uri, reference, query, reader).await)
        })
    }
}

/// A page as resource contents, followed by a line with the URI of the next page. Unsafe characters are escaped rather than
/// removed, so that a client can see what a tool sent.
fn contents(uri: &str, reference: &ResultRef, page: &ResultPage) -> Value {
    let text = |text: String| json!({"uri": uri, "mimeType": "text/plain", "text": text});
    let next = page.next.map(|next| {
        let [shown, total] = [next, page.total].map(group_digits);
        let next_uri = format!("{}?offset={next}", reference.uri());
        text(format!("[{shown} of {total} bytes so far; the next part: {next_uri}]"))
    });
    let parts: Vec<Value> =
        std::iter::once(text(escape_unsafe(&page.text).into_owned())).chain(next).collect();
    json!({ "contents": parts })
}

fn not_found(uri: &str, reason: &str) -> RpcError {
    RpcError {
        code: error_code::RESOURCE_NOT_FOUND,
        message: format!("{uri}: {reason}"),
        data: Some(json!({"uri": uri}).into()),
    }
}

#[cfg(test)]
mod tests {
    use toolyard_hub::MemoryResults;

    use super::*;

    async fn read(results: &StoredResults, uri: &str) -> Option<Result<Value, RpcError>> {
        let params = json!({ "uri": uri }).into();
        let request = ContentRequest { method: "resources/read", params: &params, caller: None };
        results.request(request).await.map(|response| response.map(|raw| raw.to_value()))
    }

    #[tokio::test]
    async fn a_result_is_read_page_by_page() {
        let memory = Arc::new(MemoryResults::default());
        let whole = "é".repeat(MAX_PAGE_BYTES);
        let short = memory.store("short", DataOwner::Operator).await.unwrap();
        let long = memory.store(&whole, DataOwner::Operator).await.unwrap();
        let results = StoredResults(memory);
        let short_response = read(&results, &short.uri()).await.unwrap().unwrap();
        assert_eq!(short_response["contents"][0]["text"], "short");
        let first = read(&results, &long.uri()).await.unwrap().unwrap();
        let second_uri = format!("{}?offset={MAX_PAGE_BYTES}", long.uri());
        let page_note = first["contents"][1]["text"].as_str().unwrap();
        assert!(
            page_note.contains(&second_uri) && page_note.starts_with("[1,048,576 of 2,097,152 bytes so far"),
            "{page_note}"
        );
        let second = read(&results, &second_uri).await.unwrap().unwrap();
        let text = |page: &Value| page["contents"][0]["text"].as_str().unwrap().to_owned();
        assert_eq!(text(&first) + &text(&second), whole);
        assert_eq!(second["contents"].as_array().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn unknown_results_are_not_found_and_other_uris_are_ignored() {
        let results = StoredResults(Arc::new(MemoryResults::default()));
        for uri in
            ["toolyard://results/r_x", "toolyard://results/r_x?offset=no", "toolyard://results/r_x/../y"]
        {
            let error = read(&results, uri).await.unwrap().unwrap_err();
            assert_eq!(error.code, error_code::RESOURCE_NOT_FOUND, "{uri}");
        }
        assert!(read(&results, "file:///etc/passwd").await.is_none());
    }
}
