//! The Brave Search API.

use serde_json::Value;
use toolyard_core::BoxFuture;

use super::{
    SearchEngine, SearchError, SearchHit, below, hits,
    http::{Http, json_answer},
};
use crate::Secret;

/// Brave Search, asked with a subscription token.
#[derive(Debug)]
pub struct Brave {
    address: String,
    key: Secret,
    http: Http,
}

impl Brave {
    /// Asks the public API, or another address.
    pub fn new(key: Secret, url: Option<&str>) -> Self {
        let base = url.unwrap_or("https://api.search.brave.com");
        Self { address: below(base, "res/v1/web/search"), key, http: Http::default() }
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
            let count = limit.clamp(1, 20).to_string();
            let request = self
                .http
                .client()?
                .get(&self.address)
                .query(&[("q", query), ("count", &count), ("text_decorations", "false")])
                .header("X-Subscription-Token", self.key.reveal())
                .header("Accept", "application/json");
            let answer = json_answer(request).await?;
            if !answer.is_object() {
                return Err(SearchError::NotUnderstood("it is not an object".to_owned()));
            }
            // Without a hit there is no `web` at all.
            let items = answer.pointer("/web/results").and_then(Value::as_array);
            Ok(items.map(|items| hits(items, "description", limit)).unwrap_or_default())
        })
    }
}
