//! Resolves the references of a server's configuration, just before the server is started.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use http::HeaderName;

use super::{CALLER_PREFIX, Template, UnsetVariable};
use crate::config::{
    ConfigError, McpServerConfig, OauthSettings, TransportConfig, caller_header::CallerHeader,
    value_syntax::is_http_url,
};

/// A transport without references. `Debug` shows no values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedServer {
    /// The transport.
    pub transport: TransportConfig,
    /// Headers whose values depend on the caller, which the transport lacks.
    pub caller_headers: Vec<CallerHeader>,
    /// The program to start when the URL does not respond.
    pub program: Option<TransportConfig>,
    /// OAuth settings.
    pub oauth: Option<OauthSettings>,
}

impl McpServerConfig {
    /// The environment variables whose values this server receives.
    pub fn variables(&self) -> BTreeSet<String> {
        self.referenced_variables(|_| true)
    }

    /// Those of its [`variables`](Self::variables) that have no default.
    pub fn required_variables(&self) -> BTreeSet<String> {
        self.referenced_variables(|has_default| !has_default)
    }

    fn referenced_variables(&self, is_selected: impl Fn(bool) -> bool) -> BTreeSet<String> {
        let mut texts: Vec<&str> = Vec::new();
        let mut inherited: &[String] = &[];
        for transport in std::iter::once(&self.transport).chain(&self.program) {
            match transport {
                TransportConfig::Stdio { command, args, env, inherit, cwd } => {
                    texts.push(command);
                    texts.extend(args.iter().chain(env.values()).map(String::as_str));
                    texts.extend(cwd.as_deref().and_then(Path::to_str));
                    inherited = inherit;
                }
                TransportConfig::Http { url, headers, .. } => {
                    texts.push(url);
                    texts.extend(headers.values().map(String::as_str));
                }
            }
        }
        let oauth = self.oauth.iter().flat_map(OauthSettings::template_texts);
        texts.extend(oauth.map(|(_, text)| text.as_str()));
        let templates = texts.into_iter().filter_map(|text| Template::parse(text).ok());
        let names = |template: Template| {
            let selected = template.variables().filter(|(_, has_default)| is_selected(*has_default));
            selected.map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
        };
        let is_variable = |name: &String| !name.starts_with(CALLER_PREFIX);
        templates.flat_map(names).filter(is_variable).chain(inherited.iter().cloned()).collect()
    }

    /// Resolves the references, before every start of the server.
    pub fn resolve(&self, lookup: impl Fn(&str) -> Option<String>) -> Result<ResolvedServer, ConfigError> {
        let resolver = Resolver { server: self.id.as_str(), lookup };
        let transport = resolver.transport(&self.transport)?;
        let caller_headers = resolver.caller_headers(&self.transport)?;
        let program = self.program.as_ref().map(|program| resolver.transport(program)).transpose()?;
        let oauth = self.oauth.as_ref().map(|oauth| resolver.oauth(oauth)).transpose()?;
        Ok(ResolvedServer { transport, caller_headers, program, oauth })
    }
}

struct Resolver<'a, F> {
    server: &'a str,
    lookup: F,
}

impl<F: Fn(&str) -> Option<String>> Resolver<'_, F> {
    fn transport(&self, transport: &TransportConfig) -> Result<TransportConfig, ConfigError> {
        Ok(match transport {
            TransportConfig::Stdio { command, args, env, inherit, cwd } => TransportConfig::Stdio {
                command: self.argument("command", command)?,
                args: (args.iter().enumerate())
                    .map(|(index, text)| self.argument(&format!("args[{index}]"), text))
                    .collect::<Result<_, _>>()?,
                env: self.map("env", env, |value| !value.contains('\0'))?,
                inherit: inherit.clone(),
                cwd: cwd.as_ref().map(|cwd| self.folder(cwd)).transpose()?,
            },
            TransportConfig::Http { url, headers, kind } => TransportConfig::Http {
                url: self.url(url)?,
                headers: self.map("headers", &constant_headers(headers), is_header_value)?,
                kind: *kind,
            },
        })
    }

    fn text(&self, field: &str, text: &str) -> Result<String, ConfigError> {
        let value = self.template(field, text)?.expand(&self.lookup);
        Ok(value.map_err(|variable| self.unset(field, variable))?.into_exposed())
    }

    fn template(&self, field: &str, text: &str) -> Result<Template, ConfigError> {
        Template::parse(text).map_err(|problem| ConfigError::InvalidReference {
            server: self.server.to_owned(),
            field: field.to_owned(),
            problem,
        })
    }

    fn unset(&self, field: &str, UnsetVariable(variable): UnsetVariable) -> ConfigError {
        ConfigError::UnsetVariable { server: self.server.to_owned(), variable, field: field.to_owned() }
    }

    fn invalid_value<T>(&self, field: &str, problem: &'static str) -> Result<T, ConfigError> {
        Err(ConfigError::InvalidValue { server: self.server.to_owned(), field: field.to_owned(), problem })
    }

    fn argument(&self, field: &str, text: &str) -> Result<String, ConfigError> {
        let value = self.text(field, text)?;
        if value.contains('\0') { self.invalid_value(field, "contains a zero byte") } else { Ok(value) }
    }

    fn map(
        &self,
        field: &str,
        map: &BTreeMap<String, String>,
        is_valid: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, String>, ConfigError> {
        let mut values = BTreeMap::new();
        for (name, text) in map {
            let field = format!("{field}.{name}");
            let value = self.text(&field, text)?;
            if !is_valid(&value) {
                return self.invalid_value(&field, "contains a line break or another invalid character");
            }
            values.insert(name.clone(), value);
        }
        Ok(values)
    }

    fn caller_headers(&self, transport: &TransportConfig) -> Result<Vec<CallerHeader>, ConfigError> {
        let TransportConfig::Http { headers, .. } = transport else { return Ok(Vec::new()) };
        let mut caller_headers = Vec::new();
        for (name, text) in headers {
            let field = format!("headers.{name}");
            let template = self.template(&field, text)?;
            if template.depends_on_caller() {
                let Ok(header) = HeaderName::from_bytes(name.as_bytes()) else {
                    return self.invalid_value(&field, "is not a valid header name");
                };
                let value = template.expand_for_callers(&self.lookup);
                let value = value.map_err(|variable| self.unset(&field, variable))?;
                caller_headers.push(CallerHeader::new(header, value));
            }
        }
        Ok(caller_headers)
    }

    fn folder(&self, cwd: &Path) -> Result<PathBuf, ConfigError> {
        let Some(text) = cwd.to_str() else { return Ok(cwd.to_owned()) };
        let folder = PathBuf::from(self.argument("cwd", text)?);
        if folder.is_absolute() { Ok(folder) } else { self.invalid_value("cwd", "is not an absolute path") }
    }

    fn url(&self, text: &str) -> Result<String, ConfigError> {
        let value = self.text("url", text)?;
        if !is_http_url(&value) || url::Url::parse(&value).is_err() {
            return self.invalid_value("url", "is not a URL that starts with `http://` or `https://`");
        }
        Ok(value)
    }

    fn oauth(&self, oauth: &OauthSettings) -> Result<OauthSettings, ConfigError> {
        let mut resolved = oauth.clone();
        for ((field, text), value) in oauth.template_texts().zip(resolved.template_texts_mut()) {
            *value = self.text(field, text)?;
        }
        Ok(resolved)
    }
}

/// The headers that are the same for all callers.
fn constant_headers(headers: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let depends_on_caller =
        |text: &str| Template::parse(text).is_ok_and(|template| template.depends_on_caller());
    let constant = headers.iter().filter(|(_, text)| !depends_on_caller(text));
    constant.map(|(name, text)| (name.clone(), text.clone())).collect()
}

/// Whether a header value contains no control characters except tabs.
fn is_header_value(value: &str) -> bool {
    value.bytes().all(|byte| byte == b'\t' || byte >= b' ' && byte != 0x7f)
}
