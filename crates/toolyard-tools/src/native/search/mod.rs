//! Search engines behind one small trait, and the settings that choose one.

mod brave;
mod http;
mod searxng;
mod tavily;

use std::sync::Arc;

use serde_json::Value;
use toolyard_core::{BoxFuture, ErrorKind, ToolError};

pub use brave::Brave;
pub use searxng::Searxng;
pub use tavily::Tavily;

use crate::{
    Secret,
    text::{one_line, shortened},
};

const MAX_TITLE: usize = 200;
const MAX_SNIPPET: usize = 500;
const MAX_URL: usize = 2_000;

/// Which search engine is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SearchSettings {
    /// None: every search says how to set one.
    #[default]
    None,
    /// A SearXNG server.
    Searxng {
        /// Its address, such as `http://localhost:8888`.
        url: String,
    },
    /// The Brave Search API.
    Brave {
        /// The subscription token.
        key: Secret,
        /// Another address than the public one.
        url: Option<String>,
    },
    /// The Tavily API.
    Tavily {
        /// The API key.
        key: Secret,
        /// Another address than the public one.
        url: Option<String>,
    },
}

impl SearchSettings {
    /// The engine these settings choose.
    pub fn engine(&self) -> Option<Arc<dyn SearchEngine>> {
        match self {
            Self::None => None,
            Self::Searxng { url } => Some(Arc::new(Searxng::new(url))),
            Self::Brave { key, url } => Some(Arc::new(Brave::new(key.clone(), url.as_deref()))),
            Self::Tavily { key, url } => Some(Arc::new(Tavily::new(key.clone(), url.as_deref()))),
        }
    }
}

/// Somewhere that can be searched.
pub trait SearchEngine: Send + Sync {
    /// A name for messages.
    fn name(&self) -> &str;

    /// At most `limit` hits, best first.
    fn search<'a>(
        &'a self,
        query: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, SearchError>>;
}

/// One thing that was found. Titles and snippets are single lines without control characters.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SearchHit {
    /// The page's title.
    pub title: String,
    /// Its address; always http or https.
    pub url: String,
    /// A few words of it.
    pub snippet: String,
}

/// Why a search brought nothing back. No variant carries a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The connection could not be made.
    #[error("could not be reached: {0}")]
    Unreachable(String),
    /// The connection broke.
    #[error("broke off: {0}")]
    Broken(String),
    /// No answer in time.
    #[error("did not answer in time")]
    TimedOut,
    /// The key is missing, wrong or not allowed to do this.
    #[error("refused the request (HTTP {status})")]
    Refused {
        /// 401 or 403.
        status: u16,
    },
    /// It may work later.
    #[error("is busy or failing (HTTP {status})")]
    Busy {
        /// 429 or 5xx.
        status: u16,
    },
    /// Any other status that is not a success.
    #[error("answered with HTTP {status}")]
    Status {
        /// The status.
        status: u16,
    },
    /// The answer is larger than anyone needs.
    #[error("sent more than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The answer is not what this engine's API promises.
    #[error("sent an answer that cannot be understood: {0}")]
    NotUnderstood(String),
    /// The configured address or key cannot be used.
    #[error("cannot be asked: {0}")]
    BadSettings(String),
}

impl SearchError {
    /// The error as a tool reports it.
    pub fn into_tool_error(self, engine: &str) -> ToolError {
        let (kind, retryable, hint) = match &self {
            Self::Unreachable(_) => (ErrorKind::Unavailable, true, Some("check `url` under [search]")),
            Self::Broken(_) => (ErrorKind::Lost, true, None),
            Self::TimedOut => (ErrorKind::Timeout, true, None),
            Self::Refused { .. } => (
                ErrorKind::Failed,
                false,
                Some("check `key` under [search]; a SearXNG server must allow the json format"),
            ),
            Self::Busy { .. } => (ErrorKind::Failed, true, Some("try again later")),
            Self::Status { status: 300..=399 } => {
                (ErrorKind::Failed, false, Some("set `url` under [search] to the address it redirects to"))
            }
            Self::Status { .. } | Self::BadSettings(_) | Self::NotUnderstood(_) => {
                (ErrorKind::Failed, false, Some("check `engine` and `url` under [search]"))
            }
            Self::TooLarge { .. } => (ErrorKind::Failed, false, None),
        };
        let error = ToolError::new(kind, format!("{engine} {self}")).with_retryable(retryable);
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

/// The items of an answer that can be shown: what has no usable address is left out.
fn hits(items: &[Value], snippet_key: &str, limit: usize) -> Vec<SearchHit> {
    let hit = |item: &Value| {
        let field = |key: &str| one_line(item.get(key).and_then(Value::as_str).unwrap_or_default());
        let url = field("url");
        let usable = (url.starts_with("https://") || url.starts_with("http://"))
            && url.len() <= MAX_URL
            && !url.contains(' ');
        if !usable {
            return None;
        }
        let title = Some(field("title")).filter(|title| !title.is_empty()).unwrap_or_else(|| url.clone());
        let snippet = shortened(&field(snippet_key), MAX_SNIPPET);
        Some(SearchHit { title: shortened(&title, MAX_TITLE), url, snippet })
    };
    items.iter().filter_map(hit).take(limit).collect()
}

/// The address of a path below a base, whether or not the base ends with a slash.
fn below(base: &str, path: &str) -> String {
    format!("{}/{path}", base.trim().trim_end_matches('/'))
}
