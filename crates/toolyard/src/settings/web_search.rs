//! `[web_search]` as plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_core::SecretText;
use toolyard_tools::native::SearchSettings;

use super::{Settings, SettingsError, error::resolve_secret};

/// The search engine of the tool `search_web`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSearchSettings {
    /// The engine.
    pub engine: SearchEngine,
    /// The engine's URL; required for SearXNG.
    pub url: Option<String>,
    /// The API key, as a reference to an environment variable: `${BRAVE_API_KEY}`.
    pub key: Option<String>,
}

/// A search engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are those of the engines")]
pub enum SearchEngine {
    Searxng,
    Brave,
    Tavily,
}

impl Settings {
    /// The search engine, with its key looked up by `variable`.
    pub fn search_engine(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<SearchSettings, SettingsError> {
        let Some(WebSearchSettings { engine, url, key }) = &self.web_search else {
            return Ok(SearchSettings::None);
        };
        let key = || match key {
            Some(reference) => resolve_secret("[web_search] key", reference, "BRAVE_API_KEY", variable),
            None => Err(SettingsError::MissingKey { key: "[web_search] key = \"${VARIABLE}\"" }),
        };
        Ok(match engine {
            SearchEngine::Searxng => SearchSettings::Searxng {
                url: url.clone().ok_or(SettingsError::MissingKey { key: "[web_search] url" })?,
            },
            SearchEngine::Brave => SearchSettings::Brave { key: SecretText::new(key()?), url: url.clone() },
            SearchEngine::Tavily => SearchSettings::Tavily { key: SecretText::new(key()?), url: url.clone() },
        })
    }
}
