//! Finds secrets that stand in a configuration as they are, and puts references in their place.

use std::{collections::BTreeSet, fmt};

use toolyard_core::{ContentHash, RawJson, redact, redact_json};

use super::{
    ServerSettings,
    expand::{Piece, Template},
    hidden::shown,
    name::{is_variable, variable_name},
};

/// A secret that stood in a configuration.
#[derive(Clone, PartialEq, Eq)]
pub struct Lifted {
    /// Where it stood: `env.TOKEN`.
    pub place: String,
    /// The variable that stands there now.
    pub variable: String,
    /// Tells equal secrets from different ones, for as long as an import lasts; never shown or kept.
    pub(super) mark: ContentHash,
}

impl Lifted {
    /// Tells equal secrets from different ones: what [`ContentHash::of`] makes of this one. Not to be shown or kept.
    pub fn mark(&self) -> ContentHash {
        self.mark
    }
}

impl fmt::Debug for Lifted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lifted")
            .field("place", &self.place)
            .field("variable", &self.variable)
            .finish_non_exhaustive()
    }
}

/// A text from outside as it may be shown.
pub(super) fn without_secrets(text: &str) -> String {
    shown(text)
}

/// Puts references where secrets stand. What is left is fit for a file; each place is told, no secret is.
pub(super) fn lift(settings: &mut ServerSettings, server: &str) -> Vec<Lifted> {
    let taken = settings.variables();
    let mut lifter = Lifter { server, taken, found: Vec::new() };
    for (name, text) in &mut settings.env {
        let variable = if is_variable(name) { name.clone() } else { variable_name(&[server, name]) };
        lifter.value(format!("env.{}", shown(name)), name, text, &variable);
    }
    for (name, text) in &mut settings.headers {
        let is_token = name.eq_ignore_ascii_case("authorization");
        let variable = variable_name(&[server, if is_token { "token" } else { name }]);
        lifter.value(format!("headers.{}", shown(name)), name, text, &variable);
    }
    if let Some(text) = settings.oauth.as_mut().and_then(|oauth| oauth.client_secret.as_mut()) {
        let variable = variable_name(&[server, "client secret"]);
        lifter.value("oauth.client_secret".to_owned(), "client_secret", text, &variable);
    }
    if let Some(url) = &mut settings.url {
        lifter.url("url", url);
    }
    if let Some(command) = &mut settings.command {
        lifter.plain("command".to_owned(), command, &variable_name(&[server, "command"]));
    }
    lifter.arguments(&mut settings.args);
    lifter.found
}

struct Lifter<'a> {
    server: &'a str,
    /// Variables that are referred to already, and so hold something else.
    taken: BTreeSet<String>,
    found: Vec<Lifted>,
}

impl Lifter<'_> {
    /// A value that stands under a name.
    fn value(&mut self, place: String, key: &str, text: &mut String, variable: &str) {
        let mut template = read(text);
        for piece in &mut template.pieces {
            if let Piece::Reference { variable, default } = piece
                && default
                    .as_ref()
                    .is_some_and(|default| is_secret(key, default) || is_secret(variable, default))
            {
                self.tell(place.clone(), variable, default.take().unwrap_or_default().as_str());
                *text = String::new();
            }
        }
        let literal = literal(&template);
        if is_secret(key, &literal) {
            let (scheme, secret) = split_scheme(&literal);
            let variable = self.free(variable, secret);
            *text = format!("{scheme}${{{variable}}}");
            self.tell(place, &variable, secret);
        } else if text.is_empty() {
            *text = template.to_string();
        }
    }

    /// A value whose place says nothing about it.
    fn plain(&mut self, place: String, text: &mut String, variable: &str) {
        let literal = literal(&read(text));
        if redact(text) != text.as_str() || !is_path(&literal) && has_long_token(&literal) {
            let variable = self.free(variable, text);
            self.tell(place, &variable, text);
            *text = format!("${{{variable}}}");
        }
    }

    fn arguments(&mut self, arguments: &mut [String]) {
        let mut before = String::new();
        for (number, text) in arguments.iter_mut().enumerate() {
            let place = format!("args[{number}]");
            let original = text.clone();
            let flag = before.trim_start_matches('-');
            let variable = |name: &str| {
                let numbered = format!("argument {number}");
                variable_name(&[self.server, if name.is_empty() { &numbered } else { name }])
            };
            let follows_flag = before.starts_with('-') && !before.contains('=') && !text.starts_with('-');
            let pair = serde_json::to_string(&[before.as_str(), text.as_str()]).unwrap_or_default();
            let is_value = follows_flag && has_word(&literal(&read(text)));
            if is_value && is_place_for_secrets(flag, text) {
                let variable = variable(flag);
                self.value(place.clone(), "password", text, &variable);
            } else if let Some((start, key, value)) = split_assignment(text) {
                let variable = variable(key);
                let (start, key, mut value) = (start.to_owned(), key.to_owned(), value.to_owned());
                self.value(place.clone(), &key, &mut value, &variable);
                *text = format!("{start}{value}");
            } else if is_value && redact(&pair) != pair {
                let variable = variable(flag);
                self.value(place.clone(), "password", text, &variable);
            } else if super::settings::is_web(text) {
                self.url(&place, text);
            }
            if *text == original || redact(text) != text.as_str() {
                let variable = variable("");
                self.plain(place, text, &variable);
            }
            before = original;
        }
    }

    /// An address: the user, values of the query, and parts of the path that are no words.
    fn url(&mut self, place: &str, url: &mut String) {
        let mut template = read(url);
        for piece in &mut template.pieces {
            if let Piece::Reference { variable, default } = piece
                && default
                    .as_ref()
                    .is_some_and(|default| redact(default) != *default || has_long_token(default))
            {
                self.tell(place.to_owned(), variable, default.take().unwrap_or_default().as_str());
            }
        }
        let mut lifted = Template::default();
        for piece in template.pieces {
            match piece {
                Piece::Text(text) => self.url_text(place, &text, &mut lifted),
                Piece::Reference { .. } => lifted.pieces.push(piece),
            }
        }
        let text = lifted.to_string();
        if redact(&text) == text {
            *url = text;
        } else {
            let variable = self.free(&variable_name(&[self.server, "url"]), url);
            self.tell(place.to_owned(), &variable, url);
            *url = format!("${{{variable}}}");
        }
    }

    fn url_text(&mut self, place: &str, text: &str, lifted: &mut Template) {
        let mut is_host = false;
        for part in text.split_inclusive(['/', '?', '&', '#']) {
            let bare = part.trim_end_matches(['/', '?', '&', '#']);
            let end = part.get(bare.len()..).unwrap_or_default();
            let (kept, key, value) = match (bare.split_once('='), bare.rsplit_once('@')) {
                (Some((key, value)), _) => (format!("{key}="), key, value),
                (None, Some((user, _))) if is_host => (String::new(), "password", user),
                _ => (String::new(), "", bare),
            };
            let is_user = is_host && key == "password";
            let is_found =
                if key.is_empty() { !is_host && has_long_token(value) } else { is_secret(key, value) };
            lifted.push_text(&kept);
            if is_found {
                let name = variable_name(&[self.server, if key.is_empty() { "token" } else { key }]);
                let variable = self.free(&name, value);
                self.tell(place.to_owned(), &variable, value);
                lifted.pieces.push(Piece::Reference { variable, default: None });
            } else {
                lifted.push_text(value);
            }
            if is_user {
                lifted.push_text(bare.get(value.len()..).unwrap_or_default());
            }
            lifted.push_text(end);
            // The host comes after the second slash of `https://`, whose own part is empty.
            is_host = bare.is_empty() && end == "/";
        }
    }

    /// The variable, or another one when it stands for something else already.
    fn free(&self, variable: &str, secret: &str) -> String {
        let mark = ContentHash::of(secret);
        let is_other = |name: &str| {
            self.taken.contains(name)
                || self.found.iter().any(|found| found.variable == name && found.mark != mark)
        };
        let numbered = (2_u32..).map(|number| format!("{variable}_{number}"));
        std::iter::once(variable.to_owned()).chain(numbered).find(|name| !is_other(name)).unwrap_or_default()
    }

    fn tell(&mut self, place: String, variable: &str, secret: &str) {
        let mark = ContentHash::of(secret);
        self.found.push(Lifted { place, variable: variable.to_owned(), mark });
    }
}

fn read(text: &str) -> Template {
    Template::parse(text).unwrap_or_else(|_| Template { pieces: vec![Piece::Text(text.to_owned())] })
}

/// What of a value does not come from variables.
fn literal(template: &Template) -> String {
    let texts = template.pieces.iter().map(|piece| match piece {
        Piece::Text(text) => text.as_str(),
        Piece::Reference { .. } => "",
    });
    texts.collect()
}

/// `--key=value`, `KEY=value` or `Name: value`: how it starts, the name, the value.
fn split_assignment(text: &str) -> Option<(&str, &str, &str)> {
    let end = text.find(['=', ':'])?;
    let key = text.get(..end)?.trim_start_matches('-');
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let after = text.get(end + 1..)?;
    let value = after.trim_start_matches(' ');
    let is_address = after.starts_with("//");
    let start = text.get(..text.len() - value.len())?;
    let is_key = !key.is_empty() && key.bytes().all(is_name) && !has_long_token(key);
    (is_key && !is_address).then_some((start, key, value))
}

/// `Bearer ` and the rest.
fn split_scheme(value: &str) -> (&str, &str) {
    let is_scheme = |word: &str| {
        ["bearer", "basic", "token", "apikey", "digest"]
            .iter()
            .any(|scheme| word.eq_ignore_ascii_case(scheme))
    };
    match value.split_once(' ') {
        Some((word, rest)) if is_scheme(word) => value.split_at(value.len() - rest.len()),
        _ => ("", value),
    }
}

/// Whether a text that stands under this name should not stand in a file.
fn is_secret(key: &str, literal: &str) -> bool {
    let (_, bare) = split_scheme(literal);
    has_word(bare)
        && !is_switch(bare)
        && (is_place_for_secrets(key, bare)
            || is_redacted_under(key, literal)
            || redact(literal) != literal
            || has_long_token(bare))
}

fn has_word(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

/// A value that only turns something on or off, or counts.
fn is_switch(value: &str) -> bool {
    ["true", "false", "yes", "no", "on", "off", "none", "null"]
        .iter()
        .any(|word| value.eq_ignore_ascii_case(word))
        || value.len() <= 3 && value.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether what stands under this name is meant to be secret: by the rules, or by the last word of a name that an
/// operator chose for a server, unless it is a path.
fn is_place_for_secrets(key: &str, value: &str) -> bool {
    const WORDS: [&str; 10] =
        ["key", "apikey", "pat", "pwd", "pass", "dsn", "auth", "cookie", "credential", "credentials"];
    let is_public = key.to_ascii_lowercase().contains("public");
    let last = key.rsplit(['_', '-', '.']).next().unwrap_or_default();
    let is_named = WORDS.iter().any(|word| last.eq_ignore_ascii_case(word));
    is_telling(key) || is_named && !is_public && !value.starts_with(['/', '~', '.', '\\'])
}

/// Whether whatever stands under this name is a secret: the rules are asked with a word that is none by its looks.
fn is_telling(key: &str) -> bool {
    !key.is_empty() && is_redacted_under(key, "swordfish")
}

fn is_redacted_under(key: &str, value: &str) -> bool {
    let (_, is_changed) = redact_json(&RawJson::from_value(&serde_json::json!({ key: value })));
    is_changed
}

fn is_path(text: &str) -> bool {
    text.contains(['/', '\\']) || text.starts_with(['~', '.', '@'])
}

/// Letters and digits mixed without a break, for longer than names are.
fn has_long_token(text: &str) -> bool {
    const LONG: usize = 16;
    text.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|run| {
        run.len() >= LONG
            && run.bytes().any(|byte| byte.is_ascii_digit())
            && run.bytes().any(|byte| byte.is_ascii_alphabetic())
    })
}

#[cfg(test)]
#[path = "secret_tests.rs"]
mod tests;
