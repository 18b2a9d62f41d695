//! One server as the operator describes it.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use toolyard_core::{ContentHash, ProtocolEra, SourceId};

use super::hidden::{Address, Names};

/// One configured server. Values may hold `${VAR}` references; they are looked up when it is started, never before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerConfig {
    /// The operator's name for it; never what the server calls itself.
    pub id: SourceId,
    /// How it is reached.
    pub transport: TransportConfig,
    /// The program to start when its address does not answer; always [`TransportConfig::Stdio`].
    pub program: Option<TransportConfig>,
    /// Whether it is used at all.
    pub enabled: bool,
    /// Whether its hints are believed and it may stand in for other trusted sources.
    pub trusted: bool,
    /// Whether a call that is not read-only must have it to itself.
    pub exclusive: bool,
    /// Whether even its first definitions wait for a person.
    pub strict: bool,
    /// The protocol era, where the operator knows better than detection.
    pub era: Option<ProtocolEra>,
    /// How long it may take until it answers for the first time.
    pub startup_timeout: Duration,
    /// How long a call may be silent; progress starts this anew.
    pub call_timeout: Option<Duration>,
    /// How long it may be idle before it is stopped; none for never.
    pub idle_stop: Option<Duration>,
    /// Which of its tools are used.
    pub tools: ToolFilter,
    /// How one signs in, where the server does not say enough itself.
    pub oauth: Option<OauthConfig>,
}

/// How one signs in.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct OauthConfig {
    /// The client's id, where it was registered by hand.
    pub client_id: Option<String>,
    /// The client's secret.
    pub client_secret: Option<String>,
    /// What to ask for.
    pub scopes: Vec<String>,
    /// The port of the loopback callback.
    pub callback_port: Option<u16>,
}

/// How a server is reached. It is shown without values: they may be secrets, above all once variables are looked up.
#[derive(Clone, PartialEq, Eq)]
pub enum TransportConfig {
    /// A program that talks over its standard input and output.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables it gets besides the harmless ones.
        env: BTreeMap<String, String>,
        /// Variables of ours it may see besides the harmless ones.
        inherit: Vec<String>,
        /// Where it runs.
        cwd: Option<PathBuf>,
    },
    /// An address.
    Http {
        /// Where.
        url: String,
        /// More headers, such as `Authorization = "Bearer ${TOKEN}"`.
        headers: BTreeMap<String, String>,
        /// Which of the HTTP transports.
        kind: HttpKind,
    },
}

/// Which of the HTTP transports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HttpKind {
    /// Found out by asking.
    #[default]
    Auto,
    /// Streamable HTTP.
    Streamable,
    /// The HTTP+SSE of 2024-11-05.
    Sse,
}

/// Which tools of a server are used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// Only these; none for all.
    pub only: Option<Vec<String>>,
    /// Not these.
    pub without: Vec<String>,
}

impl ToolFilter {
    /// Whether a tool of this name is used.
    pub fn admits(&self, tool: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|name| name == tool))
            && !self.without.iter().any(|name| name == tool)
    }
}

impl McpServerConfig {
    /// A server with the usual settings.
    pub fn new(id: impl Into<SourceId>, transport: TransportConfig) -> Self {
        Self {
            id: id.into(),
            transport,
            program: None,
            enabled: true,
            trusted: false,
            exclusive: false,
            strict: false,
            era: None,
            startup_timeout: Duration::from_secs(60),
            call_timeout: None,
            idle_stop: Some(Duration::from_secs(300)),
            tools: ToolFilter::default(),
            oauth: None,
        }
    }

    /// Its name and the beginning of its fingerprint: what tells it apart from another server of the same name, for
    /// whoever looks at the list of processes.
    pub fn label(&self) -> String {
        let fingerprint = self.fingerprint().to_string();
        format!("{}#{}", self.id, fingerprint.get(..12).unwrap_or(&fingerprint))
    }

    /// The hash of what makes it this server and no other: how it is reached. References stay references in it.
    pub fn fingerprint(&self) -> ContentHash {
        let parts = self.transport.parts().into_iter();
        let parts: Vec<String> = parts.chain(self.program.iter().flat_map(TransportConfig::parts)).collect();
        ContentHash::of_parts(parts.iter().map(String::as_bytes))
    }
}

impl TransportConfig {
    /// Everything that makes it this way of reaching a server and no other, in order. Maps and lists begin with their
    /// length, so that nothing can move from one to the next unseen.
    fn parts(&self) -> Vec<String> {
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
                .field("command", &super::secret::without_secrets(command))
                .field("args", &args.len())
                .field("env", &Names(env))
                .field("inherit", inherit)
                .field("cwd", cwd)
                .finish(),
            Self::Http { url, headers, kind } => f
                .debug_struct("Http")
                .field("url", &Address(url))
                .field("headers", &Names(headers))
                .field("kind", kind)
                .finish(),
        }
    }
}

impl fmt::Debug for OauthConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OauthConfig").field("scopes", &self.scopes.len()).finish_non_exhaustive()
    }
}
