//! The Brave Search API.

use serde_json::Value;
use toolyard_core::{BoxFuture, SecretText};

use super::{
    engine::{SearchEngine, SearchError, SearchHit, join_url, parse_hits},
    http::{LazyHttpClient, fetch_json},
};

/// The largest `count` that the API accepts.
const MAX_COUNT: usize = 20;

/// Brave Search.
#[derive(Debug)]
pub struct Brave {
    url: String,
    key: SecretText,
    http: LazyHttpClient,
}

impl Brave {
    /// The public API, or the one at `url`.
    pub fn new(key: SecretText, url: Option<&str>) -> Self {
        let base = url.unwrap_or("https://api.search.brave.com");
        Self { url: join_url(base, "res/v1/web/search"), key, http: LazyHttpClient::default() }
    }
}

impl SearchEngine for Brave {
    fn name(&self) -> &str {
        "brave"
    }

    fn search<'a>(
        &'a self,
        query: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, SearchError>> {
        Box::pin(async move {
            let count = limit.clamp(1, MAX_COUNT).to_string();
            let request = self
                .http
                .client()?
                .get(&self.url)
                .query(&[("q", query), ("count", &count), ("text_decorations", "false")])
                .header("X-Subscription-Token", self.key.expose())
                .header("Accept", "application/json");
            let response = fetch_json(request).await?;
            if !response.is_object() {
                return Err(SearchError::InvalidResponse("the response is not an object".to_owned()));
            }
            // A response without hits has no `web`.
            let items = response.pointer("/web/results").and_then(Value::as_array);
            Ok(items.map(|items| parse_hits(items, "description", limit)).unwrap_or_default())
        })
    }
}
