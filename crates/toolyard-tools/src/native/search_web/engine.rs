//! The interface of search engines and its errors.

use serde_json::Value;
use toolyard_core::{BoxFuture, ErrorKind, ToolError};

use crate::text::{one_line, truncate};

const MAX_TITLE_CHARS: usize = 200;
const MAX_SNIPPET_CHARS: usize = 500;
const MAX_URL_BYTES: usize = 2_000;

/// A web search engine.
pub trait SearchEngine: Send + Sync {
    /// The name in messages.
    fn name(&self) -> &str;

    /// Returns at most `limit` hits, best first.
    fn search<'a>(
        &'a self,
        query: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchHit>, SearchError>>;
}

/// A search result. Title and snippet are single lines without unsafe characters.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SearchHit {
    /// The page's title.
    pub title: String,
    /// The page's URL, `http` or `https`.
    pub url: String,
    /// An excerpt of the page.
    pub snippet: String,
}

/// Why a search failed, to be read after the name of the engine. No variant contains a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The connection to the search engine failed.
    ///
    /// Remedy: check `url` of `[web_search]` and the network; open the URL in a browser.
    #[error("could not be reached: {0}")]
    Unreachable(String),
    /// The search engine closed the connection during its response.
    ///
    /// Remedy: try again; see the log of the search engine.
    #[error("closed the connection: {0}")]
    ConnectionLost(String),
    /// The search engine did not respond in time.
    ///
    /// Remedy: try again later, or use another engine in `[web_search]`.
    #[error("did not answer in time")]
    TimedOut,
    /// The API key is missing, wrong, or lacks permission.
    ///
    /// Remedy: set `key` of `[web_search]` to a variable with a valid key; a SearXNG must allow the format `json` in
    /// its settings.
    #[error("refused the request (HTTP {status})")]
    Unauthorized {
        /// 401 or 403.
        status: u16,
    },
    /// The search engine limits the rate of requests, or fails.
    ///
    /// Remedy: try again later; a plan with more requests, or another engine, avoids it.
    #[error("is busy or failing (HTTP {status})")]
    Busy {
        /// 429 or 5xx.
        status: u16,
    },
    /// The search engine answered with another status than success.
    ///
    /// Remedy: check `url` of `[web_search]`: it is the address of the engine, such as `http://localhost:8888`.
    #[error("answered with HTTP {status}")]
    UnexpectedStatus {
        /// The HTTP status code.
        status: u16,
    },
    /// The response of the search engine is too large.
    ///
    /// Remedy: check `url` of `[web_search]`: something else may answer there.
    #[error("sent more than {limit} bytes")]
    ResponseTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The response is not what the API of the engine returns.
    ///
    /// Remedy: check `engine` and `url` of `[web_search]`; a SearXNG must allow the format `json` in its settings
    /// (`search.formats`).
    #[error("sent an invalid response: {0}")]
    InvalidResponse(String),
    /// `url` or `key` of `[web_search]` is missing or invalid; the text says which.
    ///
    /// Remedy: correct `[web_search]` in `toolyard.toml`; `toolyard doctor` checks it.
    #[error("is not configured correctly: {0}")]
    InvalidSettings(String),
}

impl SearchError {
    /// The error as a tool reports it.
    pub fn into_tool_error(self, engine: &str) -> ToolError {
        let (kind, retryable, hint) = match &self {
            Self::Unreachable(_) => (ErrorKind::Unavailable, true, Some("check `url` under [web_search]")),
            Self::ConnectionLost(_) => (ErrorKind::ResponseLost, true, None),
            Self::TimedOut => (ErrorKind::Timeout, true, None),
            Self::Unauthorized { .. } => (
                ErrorKind::Failed,
                false,
                Some("check `key` under [web_search]; a SearXNG server must allow the json format"),
            ),
            Self::Busy { .. } => (ErrorKind::Failed, true, Some("try again later")),
            Self::UnexpectedStatus { status: 300..=399 } => {
                (ErrorKind::Failed, false, Some("set `url` under [web_search] to the redirect target"))
            }
            Self::UnexpectedStatus { .. } | Self::InvalidSettings(_) | Self::InvalidResponse(_) => {
                (ErrorKind::Failed, false, Some("check `engine` and `url` under [web_search]"))
            }
            Self::ResponseTooLarge { .. } => (ErrorKind::Failed, false, None),
        };
        let error = ToolError::new(kind, format!("{engine} {self}")).with_retryable(retryable);
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

/// The items of a response as hits, without those that have no usable URL.
pub(super) fn parse_hits(items: &[Value], snippet_key: &str, limit: usize) -> Vec<SearchHit> {
    let parse = |item: &Value| {
        let field = |key: &str| one_line(item.get(key).and_then(Value::as_str).unwrap_or_default());
        let url = field("url");
        let is_usable = (url.starts_with("https://") || url.starts_with("http://"))
            && url.len() <= MAX_URL_BYTES
            && !url.contains(' ');
        if !is_usable {
            return None;
        }
        let title = Some(field("title")).filter(|title| !title.is_empty()).unwrap_or_else(|| url.clone());
        let snippet = truncate(&field(snippet_key), MAX_SNIPPET_CHARS);
        Some(SearchHit { title: truncate(&title, MAX_TITLE_CHARS), url, snippet })
    };
    items.iter().filter_map(parse).take(limit).collect()
}

pub(super) fn join_url(base: &str, path: &str) -> String {
    format!("{}/{path}", base.trim().trim_end_matches('/'))
}
