//! `[servers.NAME]` of `toolyard.toml`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_core::RevisionFamily;

use super::{
    ConfigError, DurationSetting, HeldTools, HttpKind, IdleStop, IsolationSetting, McpServerConfig,
    OauthSettings, ToolFilter, TransportConfig,
    caller_header::may_depend_on_caller,
    client_file::parsed_servers::templates_mut,
    redacted::{RedactedMap, RedactedUrl, safe_preview},
    server_name::check_server_name,
    template::{CALLER_PREFIX, Piece, STORED_SECRET_PREFIX, Template},
    value_syntax::{is_environment_name, is_http_url},
};

/// Linux passes no longer value to a program.
const MAX_VALUE_BYTES: usize = 128 << 10;

/// One server: a program (`command`), a URL (`url`), or a program that serves a URL (both).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSettings {
    /// The program to start; if `url` is also set, the program is started when the URL does not respond.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Arguments; `${VAR}`, `${VAR:-default}`, `${secret:NAME}` and `${file:PATH}` are resolved at start, `$$` is a dollar sign.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The working directory, relative to this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Environment variables to inherit, besides the default ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inherit: Vec<String>,
    /// The URL of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The transport; detected when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<TransportSetting>,
    /// Whether the server is used.
    #[serde(skip_serializing_if = "is_true")]
    pub enabled: bool,
    /// Whether its hints are trusted, its tools may replace equivalent ones of other trusted sources, and clients get its instructions.
    #[serde(skip_serializing_if = "is_false")]
    pub trusted: bool,
    /// Whether a call that is not read-only excludes all other calls to the server.
    #[serde(skip_serializing_if = "is_false")]
    pub exclusive: bool,
    /// Whether the server remembers nothing between two calls. In a cluster, every process then has a session of its own with it.
    /// By default, one process has the session, and the others send their calls there, unless the server speaks MCP 2026-07-28 over
    /// HTTP, which has no sessions.
    #[serde(skip_serializing_if = "is_false")]
    pub stateless: bool,
    /// Whether callers that are told apart share an instance of the server. By default, each has one of its own if the server
    /// is a program or has sessions (MCP revisions until 2025-11-25), and they share one otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationSetting>,
    /// Which new tools need approval. `added`: those that the server adds after its first approval, all of them if it is not
    /// trusted, otherwise those that share a name with a tool of another source or are riskier than all approved ones. `all`:
    /// also those of the first connection.
    #[serde(skip_serializing_if = "is_default")]
    pub hold_new_tools: HeldTools,
    /// The family of MCP revisions; detected when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<RevisionSetting>,
    /// How long the first response may take; 60 seconds when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup_timeout: Option<DurationSetting>,
    /// The idle timeout of a call; progress resets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_timeout: Option<DurationSetting>,
    /// Idle time after which the server is stopped, or `never`; 5 minutes when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_stop: Option<IdleStop>,
    /// Use only these tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Do not use these tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_tools: Vec<String>,
    /// Environment variables to set: `TOKEN = "${TOKEN}"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Headers of every request: `Authorization = "Bearer ${TOKEN}"`. `${caller:subject}`, `${caller:issuer}`, `${caller:name}` and
    /// `${caller:claims.NAME}` are those of the caller.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// OAuth settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OauthSettings>,
}

/// The transport of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TransportSetting {
    /// Detected.
    Auto,
    /// Streamable HTTP.
    Http,
    /// The HTTP+SSE of 2024-11-05.
    Sse,
    /// Standard input and output of a program.
    Stdio,
}

/// A family of MCP revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RevisionSetting {
    /// With `initialize` handshake: 2025-11-25 and earlier.
    Legacy,
    /// Stateless: 2026-07-28 and later.
    Modern,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_true(flag: &bool) -> bool {
    *flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_default(held: &HeldTools) -> bool {
    *held == HeldTools::default()
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            cwd: None,
            inherit: Vec::new(),
            url: None,
            transport: None,
            enabled: true,
            trusted: false,
            exclusive: false,
            stateless: false,
            isolation: None,
            hold_new_tools: HeldTools::default(),
            revision: None,
            startup_timeout: None,
            call_timeout: None,
            idle_stop: None,
            tools: None,
            without_tools: Vec::new(),
            env: BTreeMap::new(),
            headers: BTreeMap::new(),
            oauth: None,
        }
    }
}

impl ServerSettings {
    /// The configuration; a relative `cwd` is relative to `base`. References are not resolved.
    pub fn into_config(self, name: &str, base: &Path) -> Result<McpServerConfig, ConfigError> {
        check_server_name(name).map_err(|problem| ConfigError::invalid_name(name, problem))?;
        let defaults = McpServerConfig::new(name, self.transport_config(name, base)?);
        let program = self.url.as_ref().and_then(|_| self.program(base));
        Ok(McpServerConfig {
            program,
            enabled: self.enabled,
            trusted: self.trusted,
            exclusive: self.exclusive,
            stateless: self.stateless,
            isolation: self.isolation,
            hold_new_tools: self.hold_new_tools,
            revision_family: self.revision.map(RevisionSetting::family),
            startup_timeout: self.startup_timeout.map_or(defaults.startup_timeout, |setting| setting.0),
            call_timeout: self.call_timeout.map(|setting| setting.0),
            idle_stop: match self.idle_stop {
                None => defaults.idle_stop,
                Some(IdleStop::Never) => None,
                Some(IdleStop::After(setting)) => Some(setting.0),
            },
            tools: self.tool_filter(),
            oauth: self.oauth,
            ..defaults
        })
    }

    /// Which tools are used.
    pub fn tool_filter(&self) -> ToolFilter {
        ToolFilter { only: self.tools.clone(), without: self.without_tools.clone() }
    }

    /// The referenced variables.
    pub fn variables(&self) -> BTreeSet<String> {
        self.referenced_variables(|_| true)
    }

    /// The referenced variables without a default.
    pub fn required_variables(&self) -> BTreeSet<String> {
        self.referenced_variables(|has_default| !has_default)
    }

    /// Replaces the references to a variable by references to another one.
    pub fn rename_variable(&mut self, old: &str, new: &str) {
        for text in templates_mut(self) {
            let Ok(mut template) = Template::parse(text) else { continue };
            for piece in &mut template.pieces {
                if let Piece::Reference { variable, default } = piece
                    && variable == old
                {
                    new.clone_into(variable);
                    // A stored secret has no default.
                    default.take_if(|_| new.starts_with(STORED_SECRET_PREFIX));
                }
            }
            *text = template.to_string();
        }
    }

    fn referenced_variables(&self, is_selected: impl Fn(bool) -> bool) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for template in self.template_texts().filter_map(|(_, text)| Template::parse(text).ok()) {
            let found = template.variables().filter(|(_, has_default)| is_selected(*has_default));
            let found = found.filter(|(name, _)| !name.starts_with(CALLER_PREFIX));
            names.extend(found.map(|(name, _)| name.to_owned()));
        }
        names
    }

    /// The transport, checked as far as possible without resolving references.
    fn transport_config(&self, server: &str, base: &Path) -> Result<TransportConfig, ConfigError> {
        self.check_conflicts(server)?;
        self.check_values(server)?;
        match (self.program(base), &self.url) {
            (Some(program), None) => Ok(program),
            (_, Some(url)) => Ok(TransportConfig::Http {
                url: url.clone(),
                headers: self.headers.clone(),
                kind: match self.transport {
                    Some(TransportSetting::Http) => HttpKind::Streamable,
                    Some(TransportSetting::Sse) => HttpKind::Sse,
                    _ => HttpKind::Auto,
                },
            }),
            (None, None) => Err(ConfigError::NoTransport { server: server.to_owned() }),
        }
    }

    fn program(&self, base: &Path) -> Option<TransportConfig> {
        Some(TransportConfig::Stdio {
            command: self.command.clone()?,
            args: self.args.clone(),
            env: self.env.clone(),
            inherit: self.inherit.clone(),
            cwd: self.cwd.as_deref().map(|cwd| resolve_folder(cwd, base)),
        })
    }

    fn check_conflicts(&self, server: &str) -> Result<(), ConfigError> {
        let other_field = match (&self.command, &self.url) {
            (Some(_), None) => "command",
            (None, Some(_)) => "url",
            _ => return Ok(()),
        };
        let conflicting: &[(&'static str, bool)] = if other_field == "url" {
            &[
                ("`args`", !self.args.is_empty()),
                ("`env`", !self.env.is_empty()),
                ("`inherit`", !self.inherit.is_empty()),
                ("`cwd`", self.cwd.is_some()),
                ("`transport = \"stdio\"`", self.transport == Some(TransportSetting::Stdio)),
            ]
        } else {
            &[
                ("`headers`", !self.headers.is_empty()),
                ("`oauth`", self.oauth.is_some()),
                ("`transport = \"http\"`", self.transport == Some(TransportSetting::Http)),
                ("`transport = \"sse\"`", self.transport == Some(TransportSetting::Sse)),
            ]
        };
        match conflicting.iter().find(|(_, is_set)| *is_set) {
            Some((field, _)) => Err(ConfigError::Conflict { server: server.to_owned(), field, other_field }),
            None => Ok(()),
        }
    }

    fn check_values(&self, server: &str) -> Result<(), ConfigError> {
        let invalid =
            |field: String, problem| ConfigError::InvalidValue { server: server.to_owned(), field, problem };
        if self.command.as_deref().is_some_and(|command| command.trim().is_empty()) {
            return Err(invalid("`command`".to_owned(), "is empty: set the program to start"));
        }
        if let Some(name) = self.env.keys().chain(&self.inherit).find(|name| !is_environment_name(name)) {
            return Err(invalid(
                format!("`{}`", safe_preview(name)),
                "is not a valid environment variable name",
            ));
        }
        if let Some(name) =
            self.headers.keys().find(|name| http::HeaderName::from_bytes(name.as_bytes()).is_err())
        {
            return Err(invalid(format!("`{}`", safe_preview(name)), "is not a valid header name"));
        }
        if self.isolation == Some(IsolationSetting::Shared)
            && self.oauth.as_ref().is_some_and(|oauth| oauth.per_caller.is_some())
        {
            return Err(invalid(
                "`oauth.per_caller`".to_owned(),
                "needs an instance for each caller: remove `isolation = \"shared\"`",
            ));
        }
        if let Some(Err((field, problem))) = self.oauth.as_ref().map(OauthSettings::check) {
            return Err(invalid(field.to_owned(), problem));
        }
        for (field, text) in self.template_texts() {
            if text.len() > MAX_VALUE_BYTES {
                return Err(invalid(field, "is longer than 128 KiB"));
            }
            let template = Template::parse(text).map_err(|problem| ConfigError::InvalidReference {
                server: server.to_owned(),
                field: field.clone(),
                problem,
            })?;
            if template.depends_on_caller()
                && !field.strip_prefix("headers.").is_some_and(may_depend_on_caller)
            {
                return Err(invalid(field, "cannot depend on the caller; only headers of your own can"));
            }
            if field == "url" && template.leading_text().is_some_and(|text| !is_http_url(text)) {
                return Err(invalid("`url`".to_owned(), "must start with `http://` or `https://`"));
            }
        }
        Ok(())
    }

    /// Every value that may contain references, with its field.
    fn template_texts(&self) -> impl Iterator<Item = (String, &String)> {
        let oauth = self.oauth.iter().flat_map(OauthSettings::template_texts);
        let single = [("command", &self.command), ("cwd", &self.cwd), ("url", &self.url)];
        let single = single.into_iter().filter_map(|(field, text)| Some((field, text.as_ref()?)));
        single
            .chain(oauth)
            .map(|(field, text)| (field.to_owned(), text))
            .chain(self.args.iter().enumerate().map(|(index, text)| (format!("args[{index}]"), text)))
            .chain(self.env.iter().map(|(name, text)| (format!("env.{name}"), text)))
            .chain(self.headers.iter().map(|(name, text)| (format!("headers.{name}"), text)))
    }
}

/// A folder relative to `base`, unless it is absolute or starts with a reference.
fn resolve_folder(cwd: &str, base: &Path) -> PathBuf {
    if cwd.starts_with("${") || Path::new(cwd).is_absolute() {
        return PathBuf::from(cwd);
    }
    Path::new(&Template::escape(&base.to_string_lossy())).join(cwd)
}

impl RevisionSetting {
    fn family(self) -> RevisionFamily {
        match self {
            Self::Legacy => RevisionFamily::Legacy,
            Self::Modern => RevisionFamily::Modern,
        }
    }
}

impl fmt::Debug for ServerSettings {
    /// Shows names only; any value may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSettings")
            .field("command", &self.command.as_deref().map(safe_preview))
            .field("args", &self.args.len())
            .field("env", &RedactedMap(&self.env))
            .field("url", &self.url.as_deref().map(RedactedUrl))
            .field("headers", &RedactedMap(&self.headers))
            .field("enabled", &self.enabled)
            .field("trusted", &self.trusted)
            .field("oauth", &self.oauth)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
