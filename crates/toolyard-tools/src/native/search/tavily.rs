//! The Tavily search API.

use serde_json::{Value, json};
use toolyard_core::BoxFuture;

use super::{
    SearchEngine, SearchError, SearchHit, below, hits,
    http::{Http, json_answer},
};
use crate::Secret;

/// Tavily, asked with an API key.
#[derive(Debug)]
pub struct Tavily {
    address: String,
    key: Secret,
    http: Http,
}

impl Tavily {
    /// Asks the public API, or another address.
    pub fn new(key: Secret, url: Option<&str>) -> Self {
        let address = below(url.unwrap_or("https://api.tavily.com"), "search");
        Self { address, key, http: Http::default() }
    }
}

impl SearchEngine for Tavily {
    fn name(&self) -> &str {
        "tavily"
    }

    fn search<'a>(
        &'a self,
        query: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, SearchError>> {
        Box::pin(async move {
            let request = self
                .http
                .client()?
                .post(&self.address)
                .bearer_auth(self.key.reveal())
                .json(&json!({"query": query, "max_results": limit}));
            let answer = json_answer(request).await?;
            let items = answer.get("results").and_then(Value::as_array);
            let items = items.ok_or_else(|| SearchError::NotUnderstood("it holds no results".to_owned()))?;
            Ok(hits(items, "content", limit))
        })
    }
}
