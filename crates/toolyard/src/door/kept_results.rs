//! Whole results as resources, so that a client can read what was cut away without a tool.

use std::{fmt, sync::Arc};

use serde_json::{Value, json};
use toolyard_core::{BoxFuture, RawJson, ResultPage, ResultRef, Results, ResultsError, grouped};
use toolyard_mcp::{
    server::{ContentKind, ContentKinds, ContentRequest, ContentService},
    wire::RpcError,
};

/// More is not sent at once.
const PAGE: usize = 1 << 20;

/// Kept results at `toolyard://results/REFERENCE`.
pub struct KeptResults(Arc<dyn Results>);

impl KeptResults {
    /// The results that are kept here.
    pub fn new(results: Arc<dyn Results>) -> Self {
        Self(results)
    }

    async fn read(&self, uri: &str, reference: ResultRef, more: &str) -> Result<RawJson, RpcError> {
        let offset = match more.strip_prefix("?offset=") {
            Some(number) => number.parse().map_err(|_| not_there(uri, "the offset is no number"))?,
            None if more.is_empty() => 0,
            None => return Err(not_there(uri, "only `?offset=` may follow the reference")),
        };
        match self.0.read(&reference, offset, PAGE).await {
            Ok(page) => Ok(RawJson::from_value(&contents(uri, &reference, page))),
            Err(error @ ResultsError::Unknown(_)) => Err(not_there(uri, &error.to_string())),
            Err(error) => Err(RpcError { code: -32603, message: error.to_string(), data: None }),
        }
    }
}

impl fmt::Debug for KeptResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptResults")
    }
}

impl ContentService for KeptResults {
    fn kinds(&self) -> ContentKinds {
        ContentKinds { resources: true, ..ContentKinds::default() }
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
            let (reference, more) = ResultRef::of_address(uri)?;
            Some(self.read(uri, reference, more).await)
        })
    }
}

/// A page as the contents of a resource; a line of its own says where the next one is.
fn contents(uri: &str, reference: &ResultRef, page: ResultPage) -> Value {
    let text = |text: String| json!({"uri": uri, "mimeType": "text/plain", "text": text});
    let next = page.next.map(|next| {
        let [shown, total] = [next, page.total].map(grouped);
        let address = format!("{}?offset={next}", reference.address());
        text(format!("[{shown} of {total} bytes so far; the next part: {address}]"))
    });
    let parts: Vec<Value> = std::iter::once(text(page.text)).chain(next).collect();
    json!({ "contents": parts })
}

fn not_there(uri: &str, why: &str) -> RpcError {
    RpcError { code: -32002, message: format!("{uri}: {why}"), data: Some(json!({"uri": uri}).into()) }
}

#[cfg(test)]
mod tests {
    use toolyard_hub::MemoryResults;

    use super::*;

    async fn read(kept: &KeptResults, uri: &str) -> Option<Result<Value, RpcError>> {
        let params = json!({ "uri": uri }).into();
        let request = ContentRequest { method: "resources/read", params: &params, caller: None };
        kept.request(request).await.map(|answer| answer.map(|raw| raw.to_value()))
    }

    #[tokio::test]
    async fn a_result_is_read_whole_or_page_by_page() {
        let results = Arc::new(MemoryResults::default());
        let whole = "é".repeat(PAGE);
        let short = results.keep("short").await.unwrap();
        let long = results.keep(&whole).await.unwrap();
        let kept = KeptResults::new(results);
        let shown = read(&kept, &short.address()).await.unwrap().unwrap();
        assert_eq!(shown["contents"][0]["text"], "short");
        let first = read(&kept, &long.address()).await.unwrap().unwrap();
        let second = format!("{}?offset={PAGE}", long.address());
        let line = first["contents"][1]["text"].as_str().unwrap();
        assert!(line.contains(&second) && line.starts_with("[1,048,576 of 2,097,152 bytes so far"), "{line}");
        let rest = read(&kept, &second).await.unwrap().unwrap();
        let text = |page: &Value| page["contents"][0]["text"].as_str().unwrap().to_owned();
        assert_eq!(text(&first) + &text(&rest), whole);
        assert_eq!(rest["contents"].as_array().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn what_is_not_there_is_said_and_what_is_elsewhere_is_left_to_others() {
        let kept = KeptResults::new(Arc::new(MemoryResults::default()));
        for uri in
            ["toolyard://results/r_x", "toolyard://results/r_x?offset=no", "toolyard://results/r_x/../y"]
        {
            assert_eq!(read(&kept, uri).await.unwrap().unwrap_err().code, -32002, "{uri}");
        }
        assert!(read(&kept, "file:///etc/passwd").await.is_none());
    }
}
