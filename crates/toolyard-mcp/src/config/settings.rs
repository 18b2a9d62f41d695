//! `[servers.NAME]` of `toolyard.toml` as plain data, and the server it describes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_core::ProtocolEra;

use super::{
    ConfigError, HttpKind, IdleStop, McpServerConfig, OauthConfig, Span, ToolFilter, TransportConfig,
    check_name,
    expand::Template,
    hidden::{Address, Names, shown},
    secret, valid_name,
};

/// The longest single value: Linux hands no longer one to a program, and no server takes a longer header.
const LONGEST_VALUE: usize = 128 << 10;

/// One server: a program to start (`command`), an address to ask (`url`), or a program that is asked at its address.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSettings {
    /// The program to start; with `url` too, it is started when the address does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments; `${VAR}` and `${VAR:-default}` are looked up when it is started, `$$` is a dollar sign.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Where it runs; relative to this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Environment variables of ours that it may see besides the harmless ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inherit: Vec<String>,
    /// The address to ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// How it talks; found out when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<TransportSetting>,
    /// Whether it is used at all.
    #[serde(skip_serializing_if = "is_on")]
    pub enabled: bool,
    /// Whether its hints are believed, and it may stand in for other trusted sources.
    #[serde(skip_serializing_if = "is_off")]
    pub trusted: bool,
    /// Whether a call that changes something must have the server to itself.
    #[serde(skip_serializing_if = "is_off")]
    pub exclusive: bool,
    /// Whether even its first tool definitions wait for a person.
    #[serde(skip_serializing_if = "is_off")]
    pub strict: bool,
    /// Its protocol, where detection gets it wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub era: Option<EraSetting>,
    /// How long it may take until it answers for the first time; 60 seconds when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup_timeout: Option<Span>,
    /// How long a call may be silent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_timeout: Option<Span>,
    /// How long it may be idle before it is stopped, or `never`; 5 minutes when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_stop: Option<IdleStop>,
    /// Only these of its tools are used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// These of its tools are not used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_tools: Vec<String>,
    /// Environment variables it gets: `TOKEN = "${TOKEN}"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Headers of every request: `Authorization = "Bearer ${TOKEN}"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// How one signs in, where the server does not say enough itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OauthSettings>,
}

/// How a server talks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TransportSetting {
    /// Found out by asking.
    Auto,
    /// Streamable HTTP.
    Http,
    /// The HTTP+SSE of 2024-11-05.
    Sse,
    /// Standard input and output of a program.
    Stdio,
}

/// The two families of protocol revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EraSetting {
    /// With `initialize`: 2025-11-25 and before.
    Legacy,
    /// Stateless: 2026-07-28 and after.
    Modern,
}

/// How one signs in.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OauthSettings {
    /// The client's id, where it was registered by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The client's secret as a reference: `${CLIENT_SECRET}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// What to ask for; what the server says it needs when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The port of the loopback callback, where it was registered by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback_port: Option<u16>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_on(flag: &bool) -> bool {
    *flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_off(flag: &bool) -> bool {
    !flag
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
            strict: false,
            era: None,
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
    /// The server these settings describe; a relative `cwd` is relative to `base`. Nothing is looked up.
    pub fn into_config(self, name: &str, base: &Path) -> Result<McpServerConfig, ConfigError> {
        check_name(name).map_err(|problem| ConfigError::Name {
            name: shown(name),
            problem,
            better: valid_name(name),
        })?;
        let usual = McpServerConfig::new(name, self.reach(name, base)?);
        let program = self.url.as_ref().and_then(|_| self.program(base));
        Ok(McpServerConfig {
            program,
            enabled: self.enabled,
            trusted: self.trusted,
            exclusive: self.exclusive,
            strict: self.strict,
            era: self.era.map(EraSetting::era),
            startup_timeout: self.startup_timeout.map_or(usual.startup_timeout, |span| span.0),
            call_timeout: self.call_timeout.map(|span| span.0),
            idle_stop: match self.idle_stop {
                None => usual.idle_stop,
                Some(IdleStop::Never) => None,
                Some(IdleStop::After(span)) => Some(span.0),
            },
            tools: ToolFilter { only: self.tools, without: self.without_tools },
            oauth: self.oauth.map(OauthSettings::config),
            ..usual
        })
    }

    /// What should not stay as it is, in words: secrets that stand in the file itself.
    pub fn warnings(&self, name: &str) -> Vec<String> {
        let advice = |lifted: secret::Lifted| {
            format!(
                "server `{name}`: {} looks like a secret that stands in the file: write `${{{}}}` and set that \
                 variable",
                lifted.place, lifted.variable
            )
        };
        secret::lift(&mut self.clone(), name).into_iter().map(advice).collect()
    }

    /// The variables these settings refer to.
    pub fn variables(&self) -> BTreeSet<String> {
        self.references(|_| true)
    }

    /// The variables without which the server cannot be reached: those that have no default.
    pub fn needed_variables(&self) -> BTreeSet<String> {
        self.references(|has_default| !has_default)
    }

    fn references(&self, wanted: impl Fn(bool) -> bool) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for template in self.texts().filter_map(|(_, text)| Template::parse(text).ok()) {
            let found = template.variables().filter(|(_, has_default)| wanted(*has_default));
            names.extend(found.map(|(name, _)| name.to_owned()));
        }
        names
    }

    /// How the server is reached, checked as far as that is possible before variables are looked up.
    fn reach(&self, server: &str, base: &Path) -> Result<TransportConfig, ConfigError> {
        self.check_contradictions(server)?;
        self.check_references(server)?;
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

    /// The program that is started.
    fn program(&self, base: &Path) -> Option<TransportConfig> {
        Some(TransportConfig::Stdio {
            command: self.command.clone()?,
            args: self.args.clone(),
            env: self.env.clone(),
            inherit: self.inherit.clone(),
            cwd: self.cwd.as_deref().map(|cwd| folder(cwd, base)),
        })
    }

    fn check_contradictions(&self, server: &str) -> Result<(), ConfigError> {
        let beside = match (&self.command, &self.url) {
            (Some(_), None) => "command",
            (None, Some(_)) => "url",
            _ => return Ok(()),
        };
        let wrong: &[(&'static str, bool)] = if beside == "url" {
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
        match wrong.iter().find(|(_, is_wrong)| *is_wrong) {
            Some((field, _)) => Err(ConfigError::Contradiction { server: server.to_owned(), field, beside }),
            None => Ok(()),
        }
    }

    fn check_references(&self, server: &str) -> Result<(), ConfigError> {
        let value = |field: String, problem| ConfigError::Value { server: server.to_owned(), field, problem };
        if self.command.as_deref().is_some_and(|command| command.trim().is_empty()) {
            return Err(value("`command`".to_owned(), "is empty: give the program to start"));
        }
        if let Some(name) = self.env.keys().chain(&self.inherit).find(|name| !is_environment_name(name)) {
            return Err(value(format!("`{}`", shown(name)), "cannot be the name of an environment variable"));
        }
        if let Some(name) = self.headers.keys().find(|name| !is_header_name(name)) {
            return Err(value(format!("`{}`", shown(name)), "cannot be the name of a header"));
        }
        for (field, text) in self.texts() {
            if text.len() > LONGEST_VALUE {
                return Err(value(field, "is longer than 128 KiB, which no program can be given"));
            }
            let template = Template::parse(text).map_err(|problem| ConfigError::Reference {
                server: server.to_owned(),
                field: field.clone(),
                problem,
            })?;
            if field == "url" && template.leading_text().is_some_and(|text| !is_web(text)) {
                return Err(value("`url`".to_owned(), "must begin with `http://` or `https://`"));
            }
        }
        Ok(())
    }

    /// Every value that may hold references, and where it stands.
    fn texts(&self) -> impl Iterator<Item = (String, &String)> {
        let one = |field: &str, text: &'_ Option<String>| text.as_ref().map(|_| field.to_owned());
        let oauth = self.oauth.iter().flat_map(|oauth| {
            let id = oauth.client_id.iter().map(|text| ("oauth.client_id".to_owned(), text));
            id.chain(oauth.client_secret.iter().map(|text| ("oauth.client_secret".to_owned(), text)))
        });
        (one("command", &self.command).into_iter().zip(&self.command))
            .chain(one("cwd", &self.cwd).into_iter().zip(&self.cwd))
            .chain(one("url", &self.url).into_iter().zip(&self.url))
            .chain(self.args.iter().enumerate().map(|(number, text)| (format!("args[{number}]"), text)))
            .chain(self.env.iter().map(|(name, text)| (format!("env.{name}"), text)))
            .chain(self.headers.iter().map(|(name, text)| (format!("headers.{name}"), text)))
            .chain(oauth)
    }
}

/// A folder relative to `base`, unless a variable that comes first decides.
fn folder(cwd: &str, base: &Path) -> PathBuf {
    if cwd.starts_with("${") || Path::new(cwd).is_absolute() {
        return PathBuf::from(cwd);
    }
    Path::new(&Template::escape(&base.to_string_lossy())).join(cwd)
}

pub(super) fn is_web(text: &str) -> bool {
    let begins = |start: &str| text.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start));
    begins("http://") || begins("https://")
}

fn is_environment_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// A token of RFC 9110.
fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

impl EraSetting {
    fn era(self) -> ProtocolEra {
        match self {
            Self::Legacy => ProtocolEra::Legacy,
            Self::Modern => ProtocolEra::Modern,
        }
    }
}

impl OauthSettings {
    fn config(self) -> OauthConfig {
        let Self { client_id, client_secret, scopes, callback_port } = self;
        OauthConfig { client_id, client_secret, scopes, callback_port }
    }
}

impl fmt::Debug for ServerSettings {
    /// Names, never values: any of them may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSettings")
            .field("command", &self.command.as_deref().map(secret::without_secrets))
            .field("args", &self.args.len())
            .field("env", &Names(&self.env))
            .field("url", &self.url.as_deref().map(Address))
            .field("headers", &Names(&self.headers))
            .field("enabled", &self.enabled)
            .field("trusted", &self.trusted)
            .field("oauth", &self.oauth)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for OauthSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OauthSettings").field("scopes", &self.scopes.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
