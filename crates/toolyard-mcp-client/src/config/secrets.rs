//! Finds secrets in settings and replaces them with references.

use std::{collections::BTreeSet, fmt};

use toolyard_core::{ContentHash, RawJson, redact, redact_json};

use super::{
    McpServerConfig, ServerSettings, TransportConfig,
    redacted::safe_preview,
    template::{Piece, Template, is_private_reference},
    value_syntax::{is_http_url, is_variable_name, to_variable_name},
};
use crate::SecretText;

/// A secret that was replaced with a reference.
#[derive(Clone, PartialEq, Eq)]
pub struct ExtractedSecret {
    /// The field: `env.TOKEN`.
    pub field: String,
    /// The variable that replaces it.
    pub variable: String,
    /// Identifies equal secrets during an import; never displayed or stored.
    pub fingerprint: ContentHash,
    /// The secret itself, if the variable stands for exactly this text; absent if the replaced text had references.
    pub value: Option<SecretText>,
}

impl fmt::Debug for ExtractedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtractedSecret")
            .field("field", &self.field)
            .field("variable", &self.variable)
            .finish_non_exhaustive()
    }
}

pub(super) fn extract_secrets(settings: &mut ServerSettings, server: &str) -> Vec<ExtractedSecret> {
    let taken = settings.variables();
    let mut extractor = SecretExtractor { server, taken, found: Vec::new() };
    for (name, text) in &mut settings.env {
        let variable = if is_variable_name(name) { name.clone() } else { to_variable_name(&[server, name]) };
        extractor.extract_named(format!("env.{}", safe_preview(name)), name, text, &variable);
    }
    for (name, text) in &mut settings.headers {
        let is_token = name.eq_ignore_ascii_case("authorization");
        let variable = to_variable_name(&[server, if is_token { "token" } else { name }]);
        extractor.extract_named(format!("headers.{}", safe_preview(name)), name, text, &variable);
    }
    if let Some(text) = settings.oauth.as_mut().and_then(|oauth| oauth.client_secret.as_mut()) {
        let variable = to_variable_name(&[server, "client secret"]);
        extractor.extract_named("oauth.client_secret".to_owned(), "client_secret", text, &variable);
    }
    let id_jag = settings.oauth.as_mut().and_then(|oauth| oauth.id_jag.as_mut());
    if let Some(text) = id_jag.and_then(|client| client.client_secret.as_mut()) {
        let variable = to_variable_name(&[server, "id jag client secret"]);
        extractor.extract_named("oauth.id_jag.client_secret".to_owned(), "client_secret", text, &variable);
    }
    if let Some(url) = &mut settings.url {
        extractor.extract_from_url("url", url);
    }
    if let Some(command) = &mut settings.command {
        extractor.extract_unnamed("command".to_owned(), command, &to_variable_name(&[server, "command"]));
    }
    extractor.extract_from_arguments(&mut settings.args);
    extractor.found
}

impl ServerSettings {
    /// These settings with references in place of literal secrets, and the fields that had one: `env.TOKEN`, `args[2]`, `url`.
    pub fn without_secrets(&self, server: &str) -> (Self, Vec<String>) {
        let mut settings = self.clone();
        let secrets = extract_secrets(&mut settings, server);
        (settings, secrets.into_iter().map(|secret| secret.field).collect())
    }
}

impl McpServerConfig {
    /// The settings that have a key and a value, with references resolved: variables, headers, options, parts of URLs. Any
    /// of them may be a secret.
    pub(crate) fn named_values(&self, lookup: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
        // References that cannot be resolved have no value, and the server cannot start.
        let Ok(resolved) = self.resolve(lookup) else { return Vec::new() };
        let mut values: Vec<(String, String)> = Vec::new();
        let mut urls: Vec<String> = Vec::new();
        for transport in std::iter::once(resolved.transport).chain(resolved.program) {
            match transport {
                TransportConfig::Stdio { args, env, .. } => {
                    values.extend(named_arguments(&args));
                    urls.extend(args.into_iter().filter(|text| is_http_url(text)));
                    values.extend(env);
                }
                TransportConfig::Http { url, headers, .. } => {
                    urls.push(url);
                    values.extend(headers);
                }
            }
        }
        let client_secrets = resolved
            .oauth
            .into_iter()
            .flat_map(|oauth| [oauth.client_secret, oauth.id_jag.and_then(|client| client.client_secret)]);
        values.extend(client_secrets.flatten().map(|secret| ("client_secret".to_owned(), secret)));
        urls.extend(values.iter().map(|(_, value)| value.clone()).filter(|value| value.contains("://")));
        for url in urls.iter().filter_map(|url| url::Url::parse(url).ok()) {
            values.extend(url.password().map(|password| ("password".to_owned(), password.to_owned())));
            values.extend(url.query_pairs().into_owned());
        }
        values
    }
}

/// The arguments that have a name: `--name value`, `--name=value`, `NAME=value`, `Name: value`.
fn named_arguments(arguments: &[String]) -> Vec<(String, String)> {
    let mut previous = "";
    let mut named = Vec::new();
    for text in arguments {
        if is_option_value(previous, text) {
            named.push((previous.trim_start_matches('-').to_owned(), text.clone()));
        }
        named.extend(split_assignment(text).map(|(_, key, value)| (key.to_owned(), value.to_owned())));
        previous = text;
    }
    named
}

/// Whether an argument is the value of the option before it: `--token VALUE`.
fn is_option_value(previous: &str, text: &str) -> bool {
    previous.starts_with('-') && !previous.contains('=') && !text.starts_with('-')
}

/// The secret in the value of a key, without an authorization scheme; none if the value is no secret. Unlike
/// [`extract_secrets`], this spares paths, addresses and identifiers, which are part of ordinary results.
pub(crate) fn secret_part<'v>(key: &str, value: &'v str) -> Option<&'v str> {
    const PUBLIC_WORDS: [&str; 12] =
        ["id", "ids", "name", "url", "uri", "path", "dir", "file", "host", "project", "version", "commit"];
    let (_, bare) = split_scheme(value);
    let last = key.rsplit(['_', '-', '.']).next().unwrap_or_default();
    let is_location = bare.starts_with(['/', '~', '.']) || bare.contains("://") || bare.contains(":\\");
    let is_public = is_location || PUBLIC_WORDS.iter().any(|word| last.eq_ignore_ascii_case(word));
    let is_secret = has_alphanumeric(bare)
        && !is_flag_value(bare)
        && (names_secret_value(key, bare)
            || is_redacted_under(key, value)
            || redact(value) != value
            || !is_public && has_long_token(bare));
    is_secret.then_some(bare)
}

struct SecretExtractor<'a> {
    server: &'a str,
    /// Variables that are already referenced.
    taken: BTreeSet<String>,
    found: Vec<ExtractedSecret>,
}

impl SecretExtractor<'_> {
    /// Extracts the secret of a value whose key may indicate one.
    fn extract_named(&mut self, field: String, key: &str, text: &mut String, variable: &str) {
        let mut template = parse_or_literal(text);
        let mut has_secret_default = false;
        for piece in &mut template.pieces {
            if let Piece::Reference { variable, default } = piece
                && default
                    .as_ref()
                    .is_some_and(|default| is_secret(key, default) || is_secret(variable, default))
            {
                self.record(field.clone(), variable, default.take().unwrap_or_default().as_str(), true);
                has_secret_default = true;
            }
        }
        let literal = literal_text(&template);
        if is_secret(key, &literal) {
            let (scheme, secret) = split_scheme(&literal);
            let variable = self.free_variable(variable, secret);
            *text = format!("{scheme}${{{variable}}}");
            self.record(field, &variable, secret, is_literal(&template));
        } else if has_secret_default {
            *text = template.to_string();
        }
    }

    /// Extracts the secret of a value without a key.
    fn extract_unnamed(&mut self, field: String, text: &mut String, variable: &str) {
        let template = parse_or_literal(text);
        let literal = literal_text(&template);
        if is_redacted(text) || !is_path(&literal) && has_long_token(&literal) {
            *text = self.extract_whole(field, &template, text, variable);
        }
    }

    /// Records a whole value as a secret; returns the reference that replaces it.
    fn extract_whole(&mut self, field: String, template: &Template, text: &str, variable: &str) -> String {
        let literal = literal_text(template);
        let secret = if is_literal(template) { literal.as_str() } else { text };
        let variable = self.free_variable(variable, secret);
        self.record(field, &variable, secret, is_literal(template));
        format!("${{{variable}}}")
    }

    fn extract_from_arguments(&mut self, arguments: &mut [String]) {
        let mut previous = String::new();
        for (index, text) in arguments.iter_mut().enumerate() {
            let field = format!("args[{index}]");
            let original = text.clone();
            let flag = previous.trim_start_matches('-');
            let variable = |name: &str| {
                let numbered = format!("argument {index}");
                to_variable_name(&[self.server, if name.is_empty() { &numbered } else { name }])
            };
            let follows_flag = is_option_value(&previous, text);
            let pair = serde_json::to_string(&[previous.as_str(), text.as_str()]).unwrap_or_default();
            let is_value = follows_flag && has_alphanumeric(&literal_text(&parse_or_literal(text)));
            if is_value && names_secret_value(flag, text) {
                let variable = variable(flag);
                self.extract_named(field.clone(), "password", text, &variable);
            } else if let Some((prefix, key, value)) = split_assignment(text) {
                let variable = variable(key);
                let (prefix, key, mut value) = (prefix.to_owned(), key.to_owned(), value.to_owned());
                self.extract_named(field.clone(), &key, &mut value, &variable);
                *text = format!("{prefix}{value}");
            } else if is_value && redact(&pair) != pair {
                let variable = variable(flag);
                self.extract_named(field.clone(), "password", text, &variable);
            } else if is_http_url(text) {
                self.extract_from_url(&field, text);
            }
            if *text == original || is_redacted(text) {
                let variable = variable("");
                self.extract_unnamed(field, text, &variable);
            }
            previous = original;
        }
    }

    /// Extracts the secrets of a URL: user, query values and random-looking path segments.
    fn extract_from_url(&mut self, field: &str, url: &mut String) {
        let mut template = parse_or_literal(url);
        for piece in &mut template.pieces {
            if let Piece::Reference { variable, default } = piece
                && default
                    .as_ref()
                    .is_some_and(|default| redact(default) != *default || has_long_token(default))
            {
                self.record(field.to_owned(), variable, default.take().unwrap_or_default().as_str(), true);
            }
        }
        let mut extracted = Template::default();
        for piece in template.pieces {
            match piece {
                Piece::Text(text) => self.extract_from_url_text(field, &text, &mut extracted),
                Piece::Reference { .. } => extracted.pieces.push(piece),
            }
        }
        let text = extracted.to_string();
        if !is_redacted(&text) {
            *url = text;
        } else {
            let variable = to_variable_name(&[self.server, "url"]);
            *url = self.extract_whole(field.to_owned(), &parse_or_literal(url), url, &variable);
        }
    }

    fn extract_from_url_text(&mut self, field: &str, text: &str, extracted: &mut Template) {
        let mut is_host = false;
        for part in text.split_inclusive(['/', '?', '&', '#']) {
            let bare = part.trim_end_matches(['/', '?', '&', '#']);
            let separator = part.get(bare.len()..).unwrap_or_default();
            let (kept, key, value) = match (bare.split_once('='), bare.rsplit_once('@')) {
                (Some((key, value)), _) => (format!("{key}="), key, value),
                (None, Some((user, _))) if is_host => (String::new(), "password", user),
                _ => (String::new(), "", bare),
            };
            let is_user = is_host && key == "password";
            let is_secret_part =
                if key.is_empty() { !is_host && has_long_token(value) } else { is_secret(key, value) };
            extracted.push_text(&kept);
            if is_secret_part {
                let name = to_variable_name(&[self.server, if key.is_empty() { "token" } else { key }]);
                let variable = self.free_variable(&name, value);
                self.record(field.to_owned(), &variable, value, true);
                extracted.pieces.push(Piece::Reference { variable, default: None });
            } else {
                extracted.push_text(value);
            }
            if is_user {
                extracted.push_text(bare.get(value.len()..).unwrap_or_default());
            }
            extracted.push_text(separator);
            // The host follows the second slash of `https://`, whose own part is empty.
            is_host = bare.is_empty() && separator == "/";
        }
    }

    /// The variable, with a number appended if it has another value already.
    fn free_variable(&self, variable: &str, secret: &str) -> String {
        let fingerprint = ContentHash::of(secret);
        let is_other = |name: &str| {
            self.taken.contains(name)
                || self.found.iter().any(|found| found.variable == name && found.fingerprint != fingerprint)
        };
        let numbered = (2_u32..).map(|number| format!("{variable}_{number}"));
        std::iter::once(variable.to_owned()).chain(numbered).find(|name| !is_other(name)).unwrap_or_default()
    }

    /// `is_whole`: the variable stands for exactly this text.
    fn record(&mut self, field: String, variable: &str, secret: &str, is_whole: bool) {
        let fingerprint = ContentHash::of(secret);
        let value = is_whole.then(|| SecretText::new(secret));
        self.found.push(ExtractedSecret { field, variable: variable.to_owned(), fingerprint, value });
    }
}

fn parse_or_literal(text: &str) -> Template {
    Template::parse(text).unwrap_or_else(|_| Template { pieces: vec![Piece::Text(text.to_owned())] })
}

fn is_literal(template: &Template) -> bool {
    template.variables().next().is_none()
}

/// The text of a template without its references.
fn literal_text(template: &Template) -> String {
    let texts = template.pieces.iter().map(|piece| match piece {
        Piece::Text(text) => text.as_str(),
        Piece::Reference { .. } => "",
    });
    texts.collect()
}

/// Splits `--key=value`, `KEY=value` or `Name: value` into prefix, key and value.
fn split_assignment(text: &str) -> Option<(&str, &str, &str)> {
    let key_end = text.find(['=', ':'])?;
    let key = text.get(..key_end)?.trim_start_matches('-');
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let after = text.get(key_end + 1..)?;
    let value = after.trim_start_matches(' ');
    let is_url = after.starts_with("//");
    let prefix = text.get(..text.len() - value.len())?;
    let is_key = !key.is_empty() && key.bytes().all(is_name) && !has_long_token(key);
    (is_key && !is_url).then_some((prefix, key, value))
}

/// Splits an authorization scheme such as `Bearer ` from the rest.
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

/// Whether the redaction rules replace a part of this text. References to stored secrets and files are not secrets.
fn is_redacted(text: &str) -> bool {
    let mut template = parse_or_literal(text);
    let mut is_changed = false;
    for piece in &mut template.pieces {
        if let Piece::Reference { variable, .. } = piece
            && is_private_reference(variable)
        {
            // A form that the redaction rules know as a reference.
            "REFERENCE".clone_into(variable);
            is_changed = true;
        }
    }
    let text = if is_changed { template.to_string() } else { text.to_owned() };
    redact(&text) != text
}

/// Whether the value of a key is a secret.
fn is_secret(key: &str, literal: &str) -> bool {
    let (_, bare) = split_scheme(literal);
    has_alphanumeric(bare)
        && !is_flag_value(bare)
        && (names_secret_value(key, bare)
            || is_redacted_under(key, literal)
            || redact(literal) != literal
            || has_long_token(bare))
}

fn has_alphanumeric(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

/// Whether a value is a flag or a small number.
fn is_flag_value(value: &str) -> bool {
    ["true", "false", "yes", "no", "on", "off", "none", "null"]
        .iter()
        .any(|word| value.eq_ignore_ascii_case(word))
        || value.len() <= 3 && value.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a key names a secret: by the redaction rules, or by its last word unless the value is a path.
fn names_secret_value(key: &str, value: &str) -> bool {
    const SECRET_WORDS: [&str; 10] =
        ["key", "apikey", "pat", "pwd", "pass", "dsn", "auth", "cookie", "credential", "credentials"];
    let is_public = key.to_ascii_lowercase().contains("public");
    let last = key.rsplit(['_', '-', '.']).next().unwrap_or_default();
    let is_named = SECRET_WORDS.iter().any(|word| last.eq_ignore_ascii_case(word));
    is_secret_key(key) || is_named && !is_public && !value.starts_with(['/', '~', '.', '\\'])
}

/// Whether the redaction rules treat any value of this key as a secret.
fn is_secret_key(key: &str) -> bool {
    // An ordinary word as the value, so that only the key counts.
    !key.is_empty() && is_redacted_under(key, "swordfish")
}

/// Whether the redaction rules replace this value of this key.
fn is_redacted_under(key: &str, value: &str) -> bool {
    let (_, is_changed) = redact_json(&RawJson::from_value(&serde_json::json!({ key: value })));
    is_changed
}

fn is_path(text: &str) -> bool {
    text.contains(['/', '\\']) || text.starts_with(['~', '.', '@'])
}

/// Whether the text has a long run of mixed letters and digits.
fn has_long_token(text: &str) -> bool {
    const MIN_TOKEN_CHARS: usize = 16;
    text.split(|character: char| !character.is_ascii_alphanumeric()).any(|run| {
        run.len() >= MIN_TOKEN_CHARS
            && run.bytes().any(|byte| byte.is_ascii_digit())
            && run.bytes().any(|byte| byte.is_ascii_alphabetic())
    })
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
