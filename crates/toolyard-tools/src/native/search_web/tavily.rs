//! The Tavily search API.

use serde_json::{Value, json};
use toolyard_core::{BoxFuture, SecretText};

use super::{
    engine::{SearchEngine, SearchError, SearchHit, join_url, parse_hits},
    http::{LazyHttpClient, fetch_json},
};

/// Tavily.
#[derive(Debug)]
pub struct Tavily {
    url: String,
    key: SecretText,
    http: LazyHttpClient,
}

impl Tavily {
    /// The public API, or the one at `url`.
    pub fn new(key: SecretText, url: Option<&str>) -> Self {
        let url = join_url(url.unwrap_or("https://api.tavily.com"), "search");
        Self { url, key, http: LazyHttpClient::default() }
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
                .post(&self.url)
                .bearer_auth(self.key.expose())
                .json(&json!({"query": query, "max_results": limit}));
            let response = fetch_json(request).await?;
            let items = response.get("results").and_then(Value::as_array);
            let items = items
                .ok_or_else(|| SearchError::InvalidResponse("the response has no `results`".to_owned()))?;
            Ok(parse_hits(items, "content", limit))
        })
    }
}
