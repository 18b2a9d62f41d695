//! SearXNG, a self-hosted metasearch server.

use serde_json::Value;
use toolyard_core::BoxFuture;

use super::{
    engine::{SearchEngine, SearchError, SearchHit, join_url, parse_hits},
    http::{LazyHttpClient, fetch_json},
};

/// A SearXNG server; its `search.formats` must include `json`.
#[derive(Debug)]
pub struct Searxng {
    url: String,
    http: LazyHttpClient,
}

impl Searxng {
    /// The server at `url`, such as `http://localhost:8888`.
    pub fn new(url: &str) -> Self {
        Self { url: join_url(url, "search"), http: LazyHttpClient::default() }
    }
}

impl SearchEngine for Searxng {
    fn name(&self) -> &str {
        "searxng"
    }

    fn search<'a>(
        &'a self,
        query: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, SearchError>> {
        Box::pin(async move {
            let request = self.http.client()?.get(&self.url).query(&[("q", query), ("format", "json")]);
            let response = fetch_json(request).await?;
            let items = response.get("results").and_then(Value::as_array);
            let items = items
                .ok_or_else(|| SearchError::InvalidResponse("the response has no `results`".to_owned()))?;
            Ok(parse_hits(items, "content", limit))
        })
    }
}
