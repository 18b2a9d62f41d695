//! References to variables in configured values, resolved when a server is started.
//!
//! `${VAR}` is the value of a variable, `${VAR:-default}` has a default for an unset or empty one, `${secret:NAME}` is a
//! stored secret, `${file:PATH}` is the content of a file, and `$$` is a dollar sign. A `$` before anything else stands for
//! itself.

pub(super) mod resolve;

use std::fmt;

use super::{caller_header::is_caller_reference, value_syntax::is_variable_name};
use crate::SecretText;

/// Why a reference is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReferenceError {
    /// The `}` of a reference is missing.
    ///
    /// Remedy: close the brace, or write `$$` for a dollar sign.
    #[error("`${{` without `}}`; write `$$` for a dollar sign before a brace")]
    Unclosed,
    /// A value of a setting has `${…}` with something else in it.
    ///
    /// Remedy: use one of the forms in the message, or write `$$` for a dollar sign.
    #[error(
        "only `${{VAR}}`, `${{VAR:-default}}`, `${{secret:NAME}}` and `${{file:PATH}}` are supported; write `$$` for a dollar \
         sign before a brace"
    )]
    NotAVariable,
    /// A relative path would depend on where Toolyard is started.
    ///
    /// Remedy: write the whole path: `${file:/run/secrets/token}`.
    #[error("the path in `${{file:PATH}}` must start with `/` or `~/`")]
    RelativeFile,
    /// A header refers to something that callers do not have.
    ///
    /// Remedy: use one of the four forms, such as `${caller:claims.email}`.
    #[error("`${{caller:…}}` must name `subject`, `issuer`, `name` or `claims.NAME`")]
    Caller,
    /// `${VAR:-…}` has another reference as its default.
    ///
    /// Remedy: write the default as plain text.
    #[error("a default cannot contain a reference")]
    Nested,
    /// VS Code asks its user for such values, Toolyard does not.
    ///
    /// Remedy: store the value: `toolyard secrets set NAME`, and write `${secret:NAME}`; or use an environment
    /// variable.
    #[error("`${{input:…}}` works only in VS Code: set an environment variable and write `${{VAR}}`")]
    Input,
    /// `${env:VAR}` is the form of other programs.
    ///
    /// Remedy: write `${VAR}`.
    #[error("write `${{VAR}}` instead of `${{env:VAR}}`")]
    Environment,
    /// These variables exist only in an editor.
    ///
    /// Remedy: write `${HOME}` or the whole path.
    #[error("write `${{HOME}}` instead of `${{userHome}}`, and a path instead of `${{workspaceFolder}}`")]
    Folder,
}

/// A variable, secret or file without a default that does not exist.
///
/// Remedy: set the variable, store the secret with `toolyard secrets set NAME`, create the file, or give the reference
/// a default: `${VAR:-default}`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} {}", describe_variable(.0), describe_absence(.0))]
pub struct UnsetVariable(pub String);

/// What the name of a stored secret follows in a reference. Lookups of variables receive the name with this prefix, which
/// no environment variable can have.
pub const STORED_SECRET_PREFIX: &str = "secret:";

/// What the path of a file follows in a reference. Lookups of variables receive the path with this prefix.
pub const SECRET_FILE_PREFIX: &str = "file:";

/// What a property of the caller follows in a reference; only headers of servers have such references.
pub(crate) const CALLER_PREFIX: &str = "caller:";

/// A reference to what only the user's own settings may use: a stored secret or a file.
pub fn is_private_reference(variable: &str) -> bool {
    variable.starts_with(STORED_SECRET_PREFIX) || variable.starts_with(SECRET_FILE_PREFIX)
}

/// Whether a stored secret can have this name: letters, digits and `_`, not starting with a digit.
pub fn is_secret_name(name: &str) -> bool {
    is_variable_name(name)
}

/// A variable in words: an environment variable, a stored secret or a file.
pub(in crate::config) fn describe_variable(variable: &str) -> String {
    if let Some(property) = variable.strip_prefix(CALLER_PREFIX) {
        return format!("`{property}` of the caller");
    }
    match (variable.strip_prefix(STORED_SECRET_PREFIX), variable.strip_prefix(SECRET_FILE_PREFIX)) {
        (Some(name), _) => format!("the stored secret `{name}`"),
        (None, Some(path)) => format!("the file `{path}`"),
        (None, None) => format!("the environment variable `{variable}`"),
    }
}

/// What is wrong with a variable that has no value.
pub(in crate::config) fn describe_absence(variable: &str) -> &'static str {
    match variable {
        _ if variable.starts_with(STORED_SECRET_PREFIX) => "is not available",
        _ if variable.starts_with(SECRET_FILE_PREFIX) => "cannot be read",
        _ => "is not set",
    }
}

/// A parsed value: text and references.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Template {
    pub(in crate::config) pieces: Vec<Piece>,
}

#[derive(Clone, PartialEq, Eq)]
pub(in crate::config) enum Piece {
    Text(String),
    Reference { variable: String, default: Option<String> },
}

impl Template {
    /// Parses a configured value.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let mut template = Self::default();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            template.push_text(before);
            if let Some(after) = after.strip_prefix('$') {
                template.push_text("$");
                rest = after;
            } else if let Some(after) = after.strip_prefix('{') {
                let (inner, after) = after.split_once('}').ok_or(ReferenceError::Unclosed)?;
                template.pieces.push(parse_reference(inner)?);
                rest = after;
            } else {
                template.push_text("$");
                rest = after;
            }
        }
        template.push_text(rest);
        Ok(template)
    }

    /// Escapes a literal text as a configured value.
    pub fn escape(text: &str) -> String {
        text.replace('$', "$$")
    }

    /// The referenced variables, and whether each has a default.
    pub fn variables(&self) -> impl Iterator<Item = (&str, bool)> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Reference { variable, default } => Some((variable.as_str(), default.is_some())),
            Piece::Text(_) => None,
        })
    }

    /// Expands the references.
    pub fn expand(&self, lookup: impl Fn(&str) -> Option<String>) -> Result<SecretText, UnsetVariable> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Reference { variable, default } => match (lookup(variable), default) {
                    (Some(value), Some(default)) if value.is_empty() => text.push_str(default),
                    (Some(value), _) => text.push_str(&value),
                    (None, Some(default)) => text.push_str(default),
                    (None, None) => return Err(UnsetVariable(variable.clone())),
                },
            }
        }
        Ok(SecretText::new(text))
    }

    /// Whether the value depends on the caller.
    pub(in crate::config) fn depends_on_caller(&self) -> bool {
        self.variables().any(|(variable, _)| variable.starts_with(CALLER_PREFIX))
    }

    /// Expands all references but those to the caller.
    pub(in crate::config) fn expand_for_callers(
        self,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, UnsetVariable> {
        let mut template = Self::default();
        for piece in self.pieces {
            match piece {
                Piece::Reference { variable, default } if variable.starts_with(CALLER_PREFIX) => {
                    template.pieces.push(Piece::Reference { variable, default });
                }
                piece => {
                    let text = Self { pieces: vec![piece] }.expand(&lookup)?;
                    template.push_text(text.expose());
                }
            }
        }
        Ok(template)
    }

    pub(in crate::config) fn push_text(&mut self, text: &str) {
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Text(last)) => last.push_str(text),
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
    }

    /// The leading text; `None` if the value starts with a reference.
    pub(in crate::config) fn leading_text(&self) -> Option<&str> {
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

/// Shows the variables only, because literal text may be a secret.
impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.variables().map(|(variable, _)| variable)).finish()
    }
}

fn parse_reference(inner: &str) -> Result<Piece, ReferenceError> {
    if let Some(path) = inner.strip_prefix(SECRET_FILE_PREFIX) {
        let is_absolute = path.starts_with('/') || path.starts_with("~/");
        return match is_absolute && !path.contains("${") {
            true => Ok(Piece::Reference { variable: inner.to_owned(), default: None }),
            false => Err(ReferenceError::RelativeFile),
        };
    }
    let (variable, default) = match inner.split_once(":-") {
        Some((variable, default)) => (variable, Some(default)),
        None => (inner, None),
    };
    if default.is_some_and(|default| default.contains("${")) {
        return Err(ReferenceError::Nested);
    }
    match variable {
        _ if default.is_none()
            && variable.strip_prefix(STORED_SECRET_PREFIX).is_some_and(is_variable_name) =>
        {
            Ok(Piece::Reference { variable: variable.to_owned(), default: None })
        }
        "userHome" | "workspaceFolder" => Err(ReferenceError::Folder),
        _ if is_variable_name(variable) => {
            Ok(Piece::Reference { variable: variable.to_owned(), default: default.map(str::to_owned) })
        }
        _ if variable.strip_prefix(CALLER_PREFIX).is_some_and(is_caller_reference) => {
            Ok(Piece::Reference { variable: variable.to_owned(), default: default.map(str::to_owned) })
        }
        _ if inner.starts_with(CALLER_PREFIX) => Err(ReferenceError::Caller),
        _ if inner.starts_with("input:") => Err(ReferenceError::Input),
        _ if inner.starts_with("env:") => Err(ReferenceError::Environment),
        _ => Err(ReferenceError::NotAVariable),
    }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
