//! References to variables in configured values, looked up when a server is started and never before.
//!
//! There is one form: `${VAR}`, `${VAR:-default}` for a variable that may be unset or empty, and `$$` for a dollar sign.
//! A `$` before anything else is itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::{Path, PathBuf},
};

use super::{McpServerConfig, OauthConfig, TransportConfig, name::is_variable, settings::is_web};

/// Why a reference cannot be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReferenceProblem {
    /// No `}`.
    #[error("a `${{` has no `}}`; a dollar sign before a brace is written `$$`")]
    Unclosed,
    /// Not the name of a variable.
    #[error(
        "only `${{VAR}}` and `${{VAR:-default}}` are understood; a dollar sign before a brace is written `$$`"
    )]
    NotAVariable,
    /// A reference in a default.
    #[error("a default cannot hold another reference")]
    Nested,
    /// VS Code would ask.
    #[error("`${{input:…}}` is asked for by VS Code only: set an environment variable and write `${{VAR}}`")]
    Input,
    /// How editors write environment variables.
    #[error("`${{env:VAR}}` is written `${{VAR}}` here")]
    Environment,
    /// A folder of an editor.
    #[error("`${{userHome}}` is written `${{HOME}}` here, and `${{workspaceFolder}}` as a path")]
    Folder,
}

/// Why a server's configuration cannot be completed. The values themselves are never told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExpandError {
    /// A variable without a default is not set.
    #[error("server `{server}` needs the environment variable `{variable}` ({place}), which is not set")]
    Unset {
        /// The server.
        server: String,
        /// The variable.
        variable: String,
        /// Where it is used: `headers.Authorization`.
        place: String,
    },
    /// A reference that cannot be understood.
    #[error("server `{server}`: {place}: {problem}")]
    Reference {
        /// The server.
        server: String,
        /// Where.
        place: String,
        /// Why.
        problem: ReferenceProblem,
    },
    /// A value that cannot be used once the variables are known.
    #[error("server `{server}`: {place} {problem}")]
    Value {
        /// The server.
        server: String,
        /// Where.
        place: String,
        /// What is wrong.
        problem: &'static str,
    },
}

/// A text that may hold what came from variables. It is shown only to whoever asks for it by name.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The text itself.
    pub fn into_exposed(self) -> String {
        self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(…)")
    }
}

/// A configured value, read: text and references.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Template {
    pub(super) pieces: Vec<Piece>,
}

/// A piece of a configured value.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// Stands for itself.
    Text(String),
    /// Stands for the value of a variable.
    Reference { variable: String, default: Option<String> },
}

impl Template {
    /// Reads a configured value.
    pub fn parse(text: &str) -> Result<Self, ReferenceProblem> {
        let mut template = Self::default();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            template.push_text(before);
            if let Some(after) = after.strip_prefix('$') {
                template.push_text("$");
                rest = after;
            } else if let Some(after) = after.strip_prefix('{') {
                let (inner, after) = after.split_once('}').ok_or(ReferenceProblem::Unclosed)?;
                template.pieces.push(reference(inner)?);
                rest = after;
            } else {
                template.push_text("$");
                rest = after;
            }
        }
        template.push_text(rest);
        Ok(template)
    }

    /// A text that stands for itself, as a configured value.
    pub fn escape(text: &str) -> String {
        text.replace('$', "$$")
    }

    /// The names of the variables it needs, and whether each has a default.
    pub fn variables(&self) -> impl Iterator<Item = (&str, bool)> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Reference { variable, default } => Some((variable.as_str(), default.is_some())),
            Piece::Text(_) => None,
        })
    }

    /// The value with its variables looked up, or the name of the first one that is not set.
    pub fn expand(&self, lookup: impl Fn(&str) -> Option<String>) -> Result<SecretText, String> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Reference { variable, default } => match (lookup(variable), default) {
                    (Some(value), Some(default)) if value.is_empty() => text.push_str(default),
                    (Some(value), _) => text.push_str(&value),
                    (None, Some(default)) => text.push_str(default),
                    (None, None) => return Err(variable.clone()),
                },
            }
        }
        Ok(SecretText(text))
    }

    pub(super) fn push_text(&mut self, text: &str) {
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Text(last)) => last.push_str(text),
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
    }

    /// The text it begins with, if it does not begin with a reference.
    pub(super) fn leading_text(&self) -> Option<&str> {
        match self.pieces.first() {
            None => Some(""),
            Some(Piece::Text(text)) => Some(text),
            Some(Piece::Reference { .. }) => None,
        }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => f.write_str(&Self::escape(text)),
            Piece::Reference { variable, default: None } => write!(f, "${{{variable}}}"),
            Piece::Reference { variable, default: Some(default) } => write!(f, "${{{variable}:-{default}}}"),
        })
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.variables().map(|(variable, _)| variable)).finish()
    }
}

/// What stands between the braces.
fn reference(inner: &str) -> Result<Piece, ReferenceProblem> {
    let (variable, default) = match inner.split_once(":-") {
        Some((variable, default)) => (variable, Some(default)),
        None => (inner, None),
    };
    if default.is_some_and(|default| default.contains("${")) {
        return Err(ReferenceProblem::Nested);
    }
    match variable {
        "userHome" | "workspaceFolder" => Err(ReferenceProblem::Folder),
        _ if is_variable(variable) => {
            Ok(Piece::Reference { variable: variable.to_owned(), default: default.map(str::to_owned) })
        }
        _ if inner.starts_with("input:") => Err(ReferenceProblem::Input),
        _ if inner.starts_with("env:") => Err(ReferenceProblem::Environment),
        _ => Err(ReferenceProblem::NotAVariable),
    }
}

/// How a server is reached once its variables are looked up. It is shown without values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// How it is reached; no references are left in it.
    pub transport: TransportConfig,
    /// The program to start when its address does not answer.
    pub program: Option<TransportConfig>,
    /// How one signs in.
    pub oauth: Option<OauthConfig>,
}

impl McpServerConfig {
    /// The variables whose values this server would get to see: what a person should know before trusting a file.
    pub fn variables(&self) -> BTreeSet<String> {
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
        let oauth = self.oauth.iter().flat_map(|oauth| [&oauth.client_id, &oauth.client_secret]);
        texts.extend(oauth.flatten().map(String::as_str));
        let templates = texts.into_iter().filter_map(|text| Template::parse(text).ok());
        let names =
            |template: Template| template.variables().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
        templates.flat_map(names).chain(inherited.iter().cloned()).collect()
    }

    /// Looks up the variables this server's configuration refers to: just before it is started, every time anew.
    pub fn resolve(&self, lookup: impl Fn(&str) -> Option<String>) -> Result<Resolved, ExpandError> {
        let resolver = Resolver { server: self.id.as_str(), lookup };
        let transport = resolver.transport(&self.transport)?;
        let program = self.program.as_ref().map(|program| resolver.transport(program)).transpose()?;
        let oauth = self.oauth.as_ref().map(|oauth| resolver.oauth(oauth)).transpose()?;
        Ok(Resolved { transport, program, oauth })
    }
}

struct Resolver<'a, F> {
    server: &'a str,
    lookup: F,
}

impl<F: Fn(&str) -> Option<String>> Resolver<'_, F> {
    fn transport(&self, transport: &TransportConfig) -> Result<TransportConfig, ExpandError> {
        Ok(match transport {
            TransportConfig::Stdio { command, args, env, inherit, cwd } => TransportConfig::Stdio {
                command: self.argument("command", command)?,
                args: (args.iter().enumerate())
                    .map(|(number, text)| self.argument(&format!("args[{number}]"), text))
                    .collect::<Result<_, _>>()?,
                env: self.map("env", env, |value| !value.contains('\0'))?,
                inherit: inherit.clone(),
                cwd: cwd.as_ref().map(|cwd| self.folder(cwd)).transpose()?,
            },
            TransportConfig::Http { url, headers, kind } => TransportConfig::Http {
                url: self.url(url)?,
                headers: self.map("headers", headers, is_header_value)?,
                kind: *kind,
            },
        })
    }

    fn text(&self, place: &str, text: &str) -> Result<String, ExpandError> {
        let template = Template::parse(text).map_err(|problem| ExpandError::Reference {
            server: self.server.to_owned(),
            place: place.to_owned(),
            problem,
        })?;
        let value = template.expand(&self.lookup).map_err(|variable| ExpandError::Unset {
            server: self.server.to_owned(),
            variable,
            place: place.to_owned(),
        })?;
        Ok(value.into_exposed())
    }

    fn wrong<T>(&self, place: &str, problem: &'static str) -> Result<T, ExpandError> {
        Err(ExpandError::Value { server: self.server.to_owned(), place: place.to_owned(), problem })
    }

    fn argument(&self, place: &str, text: &str) -> Result<String, ExpandError> {
        let value = self.text(place, text)?;
        if value.contains('\0') { self.wrong(place, "holds a zero byte") } else { Ok(value) }
    }

    fn map(
        &self,
        field: &str,
        map: &BTreeMap<String, String>,
        is_fine: impl Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, String>, ExpandError> {
        let mut values = BTreeMap::new();
        for (name, text) in map {
            let place = format!("{field}.{name}");
            let value = self.text(&place, text)?;
            if !is_fine(&value) {
                return self.wrong(&place, "holds a line break or another letter that cannot stand there");
            }
            values.insert(name.clone(), value);
        }
        Ok(values)
    }

    fn folder(&self, cwd: &Path) -> Result<PathBuf, ExpandError> {
        let Some(text) = cwd.to_str() else { return Ok(cwd.to_owned()) };
        let folder = PathBuf::from(self.argument("cwd", text)?);
        if folder.is_absolute() { Ok(folder) } else { self.wrong("cwd", "is not a whole path") }
    }

    fn url(&self, text: &str) -> Result<String, ExpandError> {
        let value = self.text("url", text)?;
        if !is_web(&value) || url::Url::parse(&value).is_err() {
            return self.wrong("url", "is not an address that begins with `http://` or `https://`");
        }
        Ok(value)
    }

    fn oauth(&self, oauth: &OauthConfig) -> Result<OauthConfig, ExpandError> {
        let text =
            |place, text: &Option<String>| text.as_ref().map(|text| self.text(place, text)).transpose();
        Ok(OauthConfig {
            client_id: text("oauth.client_id", &oauth.client_id)?,
            client_secret: text("oauth.client_secret", &oauth.client_secret)?,
            ..oauth.clone()
        })
    }
}

/// Letters a header may carry: anything but control characters, tabs aside.
fn is_header_value(value: &str) -> bool {
    value.bytes().all(|byte| byte == b'\t' || byte >= b' ' && byte != 0x7f)
}

#[cfg(test)]
#[path = "expand_tests.rs"]
mod tests;
