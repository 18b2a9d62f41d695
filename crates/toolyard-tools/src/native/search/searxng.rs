//! SearXNG: a metasearch server that anyone can run.

use serde_json::Value;
use toolyard_core::BoxFuture;

use super::{
    SearchEngine, SearchError, SearchHit, below, hits,
    http::{Http, json_answer},
};

/// A SearXNG server; its `search.formats` must include `json`.
#[derive(Debug)]
pub struct Searxng {
    address: String,
    http: Http,
}

impl Searxng {
    /// The server at `url`, such as `http://localhost:8888`.
    pub fn new(url: &str) -> Self {
        Self { address: below(url, "search"), http: Http::default() }
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
            let request = self.http.client()?.get(&self.address).query(&[("q", query), ("format", "json")]);
            let answer = json_answer(request).await?;
            let items = answer.get("results").and_then(Value::as_array);
            let items = items.ok_or_else(|| SearchError::NotUnderstood("it holds no results".to_owned()))?;
            Ok(hits(items, "content", limit))
        })
    }
}
