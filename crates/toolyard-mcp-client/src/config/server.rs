//! The configuration of one server.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use toolyard_core::{ContentHash, RawJson, RevisionFamily, SourceId};

use super::{
    held_tools::HeldTools,
    isolation::IsolationSetting,
    oauth_settings::OauthSettings,
    redacted::{RedactedMap, RedactedUrl, safe_preview},
};

/// One configured server. Values may contain `${VAR}` references, which are resolved when the server is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerConfig {
    /// The configured name, not the name the server reports.
    pub id: SourceId,
    /// The transport.
    pub transport: TransportConfig,
    /// The program to start when the URL does not respond; always [`TransportConfig::Stdio`].
    pub program: Option<TransportConfig>,
    /// Whether the server is used.
    pub enabled: bool,
    /// Whether its hints are trusted, its tools may replace equivalent ones of other trusted sources, and clients get its instructions.
    pub trusted: bool,
    /// Whether a call that is not read-only excludes all other calls to the server.
    pub exclusive: bool,
    /// Whether the server remembers nothing between two calls, so that every process of a cluster may have a session with it.
    pub stateless: bool,
    /// Whether callers share an instance; when absent, they do if the server keeps no state.
    pub isolation: Option<IsolationSetting>,
    /// Which tools are held until they are approved.
    pub hold_new_tools: HeldTools,
    /// The family of MCP revisions; detected when absent.
    pub revision_family: Option<RevisionFamily>,
    /// How long the first response may take.
    pub startup_timeout: Duration,
    /// The idle timeout of a call; progress resets it.
    pub call_timeout: Option<Duration>,
    /// Idle time after which the server is stopped; never when absent.
    pub idle_stop: Option<Duration>,
    /// Which tools are used.
    pub tools: ToolFilter,
    /// OAuth settings.
    pub oauth: Option<OauthSettings>,
    /// Tool definitions from the file that configures it (`cached_tools` in the specification), used until the server was
    /// seen; they need not match the server's.
    pub cached_tools: Vec<RawJson>,
}

/// The transport of a server. `Debug` shows no values, which may be secrets.
#[derive(Clone, PartialEq, Eq)]
pub enum TransportConfig {
    /// A program with MCP on stdin and stdout.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Environment variables to set.
        env: BTreeMap<String, String>,
        /// Environment variables to inherit, besides the default ones.
        inherit: Vec<String>,
        /// The working directory.
        cwd: Option<PathBuf>,
    },
    /// An HTTP server.
    Http {
        /// The URL.
        url: String,
        /// Additional headers, such as `Authorization = "Bearer ${TOKEN}"`.
        headers: BTreeMap<String, String>,
        /// Which of the HTTP transports.
        kind: HttpKind,
    },
}

/// The HTTP transports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HttpKind {
    /// Detected.
    #[default]
    Auto,
    /// Streamable HTTP.
    Streamable,
    /// The HTTP+SSE of 2024-11-05.
    Sse,
}

/// Selects tools of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// Only these; all when absent.
    pub only: Option<Vec<String>>,
    /// Not these.
    pub without: Vec<String>,
}

impl ToolFilter {
    /// Whether a tool is used.
    pub fn allows(&self, tool: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|name| name == tool))
            && !self.without.iter().any(|name| name == tool)
    }

    /// A filter that allows what any of the filters allows; everything if there are none.
    pub fn union<'a>(filters: impl IntoIterator<Item = &'a Self>) -> Self {
        let filters: Vec<&Self> = filters.into_iter().collect();
        let Some(first_open) = filters.iter().find(|filter| filter.only.is_none()) else {
            let mut names: Vec<String> = Vec::new();
            for filter in &filters {
                let listed = filter.only.iter().flatten().filter(|name| filter.allows(name));
                let new: Vec<String> = listed.filter(|name| !names.contains(name)).cloned().collect();
                names.extend(new);
            }
            let only = (!filters.is_empty()).then_some(names);
            return Self { only, without: Vec::new() };
        };
        let is_allowed = |name: &&String| filters.iter().any(|filter| filter.allows(name));
        Self {
            only: None,
            without: first_open.without.iter().filter(|name| !is_allowed(name)).cloned().collect(),
        }
    }
}

impl McpServerConfig {
    /// A server with default settings.
    pub fn new(id: impl Into<SourceId>, transport: TransportConfig) -> Self {
        Self {
            id: id.into(),
            transport,
            program: None,
            enabled: true,
            trusted: false,
            exclusive: false,
            stateless: false,
            isolation: None,
            hold_new_tools: HeldTools::default(),
            revision_family: None,
            startup_timeout: Duration::from_secs(60),
            call_timeout: None,
            idle_stop: Some(Duration::from_secs(300)),
            tools: ToolFilter::default(),
            oauth: None,
            cached_tools: Vec::new(),
        }
    }

    /// Whether Toolyard starts the server, so that there is a log of its stderr.
    pub fn has_log(&self) -> bool {
        self.program.is_some() || matches!(self.transport, TransportConfig::Stdio { .. })
    }

    /// A program that speaks MCP on stdin and stdout: `McpServerConfig::stdio("time", "uvx", ["mcp-server-time"])`.
    pub fn stdio<A: Into<String>>(
        id: impl Into<SourceId>,
        command: impl Into<String>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        let transport = TransportConfig::Stdio {
            command: command.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            inherit: Vec::new(),
            cwd: None,
        };
        Self::new(id, transport)
    }

    /// A server at a URL. Streamable HTTP is tried first, then the older SSE transport.
    pub fn http(id: impl Into<SourceId>, url: impl Into<String>) -> Self {
        let transport =
            TransportConfig::Http { url: url.into(), headers: BTreeMap::new(), kind: HttpKind::default() };
        Self::new(id, transport)
    }

    /// Sets an environment variable of a program, or a header of a server at a URL. `${NAME}` in the value refers to a variable of
    /// the environment.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        match &mut self.transport {
            TransportConfig::Stdio { env: values, .. } | TransportConfig::Http { headers: values, .. } => {
                values.insert(name.into(), value.into());
            }
        }
        self
    }

    /// Trusts the server: what it says about the effects of its tools counts, and clients get its instructions.
    #[must_use]
    pub fn trusted(mut self) -> Self {
        self.trusted = true;
        self
    }

    /// Whether each caller has tokens of its own.
    pub fn has_tokens_per_caller(&self) -> bool {
        self.oauth.as_ref().is_some_and(|oauth| oauth.per_caller.is_some())
    }

    /// The name and a prefix of the fingerprint, for the process list.
    pub fn label(&self) -> String {
        let fingerprint = self.fingerprint().to_string();
        format!("{}#{}", self.id, fingerprint.get(..12).unwrap_or(&fingerprint))
    }

    /// The hash of the transport, with unresolved references. It identifies the server.
    pub fn fingerprint(&self) -> ContentHash {
        let parts = self.transport.fingerprint_parts().into_iter();
        let parts: Vec<String> =
            parts.chain(self.program.iter().flat_map(TransportConfig::fingerprint_parts)).collect();
        ContentHash::of_parts(parts.iter().map(String::as_bytes))
    }
}

impl TransportConfig {
    /// All values in order. Maps and lists start with their length, so that no value can move between them unnoticed.
    fn fingerprint_parts(&self) -> Vec<String> {
        let list = |items: &[String]| [items.len().to_string()].into_iter().chain(items.to_vec());
        let map = |items: &BTreeMap<String, String>| {
            let pairs = items.iter().flat_map(|(name, value)| [name.clone(), value.clone()]);
            [items.len().to_string()].into_iter().chain(pairs).collect::<Vec<_>>()
        };
        match self {
            Self::Stdio { command, args, env, inherit, cwd } => ["stdio".to_owned(), command.clone()]
                .into_iter()
                .chain(list(args))
                .chain(map(env))
                .chain(list(inherit))
                .chain(cwd.iter().map(|cwd| cwd.to_string_lossy().into_owned()))
                .collect(),
            Self::Http { url, headers, kind } => ["http".to_owned(), format!("{kind:?}"), url.clone()]
                .into_iter()
                .chain(map(headers))
                .collect(),
        }
    }
}

impl fmt::Debug for TransportConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, args, env, inherit, cwd } => f
                .debug_struct("Stdio")
                .field("command", &safe_preview(command))
                .field("args", &args.len())
                .field("env", &RedactedMap(env))
                .field("inherit", inherit)
                .field("cwd", cwd)
                .finish(),
            Self::Http { url, headers, kind } => f
                .debug_struct("Http")
                .field("url", &RedactedUrl(url))
                .field("headers", &RedactedMap(headers))
                .field("kind", kind)
                .finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::ToolFilter;

    fn filters() -> impl Strategy<Value = Vec<ToolFilter>> {
        let names = || proptest::collection::vec("[a-d]", 0..4);
        let filter =
            (proptest::option::of(names()), names()).prop_map(|(only, without)| ToolFilter { only, without });
        proptest::collection::vec(filter, 1..4)
    }

    proptest! {
        #[test]
        fn a_union_allows_what_any_filter_allows(filters in filters()) {
            let union = ToolFilter::union(&filters);
            for tool in ["a", "b", "c", "d", "e"] {
                prop_assert_eq!(union.allows(tool), filters.iter().any(|filter| filter.allows(tool)), "{}", tool);
            }
        }
    }
}
