//! Settings that choose a search engine.

use std::sync::Arc;

use toolyard_core::SecretText;

use super::{brave::Brave, engine::SearchEngine, searxng::Searxng, tavily::Tavily};

/// The configured search engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SearchSettings {
    /// No engine: every search fails with a hint.
    #[default]
    None,
    /// A SearXNG server.
    Searxng {
        /// Its base URL, such as `http://localhost:8888`.
        url: String,
    },
    /// The Brave Search API.
    Brave {
        /// The subscription token.
        key: SecretText,
        /// The base URL, if not the public one.
        url: Option<String>,
    },
    /// The Tavily API.
    Tavily {
        /// The API key.
        key: SecretText,
        /// The base URL, if not the public one.
        url: Option<String>,
    },
}

impl SearchSettings {
    /// Creates the configured engine.
    pub fn engine(&self) -> Option<Arc<dyn SearchEngine>> {
        match self {
            Self::None => None,
            Self::Searxng { url } => Some(Arc::new(Searxng::new(url))),
            Self::Brave { key, url } => Some(Arc::new(Brave::new(key.clone(), url.as_deref()))),
            Self::Tavily { key, url } => Some(Arc::new(Tavily::new(key.clone(), url.as_deref()))),
        }
    }
}
