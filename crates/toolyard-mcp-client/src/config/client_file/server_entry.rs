//! The fields of one server entry. Problems are reported without values.

use std::collections::BTreeMap;

use super::document::Node;
use crate::config::{
    ConfigError, DurationSetting, IsolationSetting, OauthSettings, ServerSettings, TransportSetting,
    redacted::safe_preview,
};

/// Why a server entry is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what the variants mean")]
pub enum EntryError {
    /// A field of a server in the file of a client has the wrong type.
    ///
    /// Remedy: correct the field in the file, or add the server yourself: `toolyard servers add NAME --
    /// COMMAND`, or `--url URL`.
    #[error("`{field}` must be {expected}, not {found}")]
    WrongType { field: String, expected: &'static str, found: &'static str },
    /// A server in the file of a client is not a table.
    ///
    /// Remedy: write it as an object with `command` or `url`.
    #[error("the entry must be a table, not {0}")]
    NotATable(&'static str),
    /// The server cannot be used as the file of the client describes it; the text says why.
    ///
    /// Remedy: add the server yourself: `toolyard servers add NAME -- COMMAND`, or `--url URL`.
    #[error("{0}")]
    Unsupported(&'static str),
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// Two servers in one file have the same name; the last one counts.
    ///
    /// Remedy: rename one of them in the file.
    #[error("a later entry has the same name")]
    Duplicate,
}

/// A server in a file is invalid; the other servers are used.
///
/// Remedy: correct the entry as the text says; `toolyard doctor` shows all problems.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{server}` is skipped: {reason}")]
pub struct InvalidServer {
    /// A safe preview of its name.
    pub server: String,
    /// Why it is invalid.
    pub reason: EntryError,
}

pub(in crate::config) struct ServerEntry<'a> {
    node: &'a Node,
    /// Fields that were read or ignored; all others are noted.
    known_fields: Vec<&'static str>,
    pub(in crate::config) notes: Vec<String>,
}

/// The names that clients use for one field, the usual one first.
type FieldNames = &'static [&'static str];

/// Units of durations, in milliseconds.
pub(in crate::config) const MILLISECONDS: f64 = 1.0;
pub(in crate::config) const SECONDS: f64 = 1_000.0;
/// Longer durations are shortened to this one.
const MAX_DURATION_SECS: f64 = 1e9;
/// Unknown fields that a note names.
const MAX_NOTED_FIELDS: usize = 8;

impl<'a> ServerEntry<'a> {
    pub(in crate::config) fn new(node: &'a Node) -> Result<Self, EntryError> {
        match node {
            Node::Map(_) => Ok(Self { node, known_fields: Vec::new(), notes: Vec::new() }),
            other => Err(EntryError::NotATable(other.kind())),
        }
    }

    /// The value of the first of these fields that exists.
    pub(in crate::config) fn node(&mut self, names: FieldNames) -> Option<&'a Node> {
        self.known_fields.extend(names);
        self.node.get_any(names)
    }

    pub(in crate::config) fn text(&mut self, names: FieldNames) -> Result<Option<String>, EntryError> {
        let text = |node: &Node| match node {
            Node::Text(text) => Ok(text.clone()),
            other => Err(wrong_type(primary_name(names), "a text", other)),
        };
        self.node(names).map(text).transpose()
    }

    /// A list of texts; accepts numbers, booleans and a single text.
    pub(in crate::config) fn texts(&mut self, names: FieldNames) -> Result<Option<Vec<String>>, EntryError> {
        self.node(names).map(|node| texts(primary_name(names), node)).transpose()
    }

    pub(in crate::config) fn map(
        &mut self,
        names: FieldNames,
    ) -> Result<BTreeMap<String, String>, EntryError> {
        let field = primary_name(names);
        let Some(node) = self.node(names) else { return Ok(BTreeMap::new()) };
        let Node::Map(entries) = node else { return Err(wrong_type(field, "a table of texts", node)) };
        let entries = entries.iter().filter(|(_, value)| *value != Node::Null);
        let text = |(name, value): &(String, Node)| match value.scalar_text() {
            Some(text) => Ok((name.clone(), text)),
            None => Err(wrong_type(&format!("{field}.{}", safe_preview(name)), "a text", value)),
        };
        entries.map(text).collect()
    }

    pub(in crate::config) fn flag(&mut self, names: FieldNames) -> Result<Option<bool>, EntryError> {
        let flag = |node: &Node| match node {
            Node::Flag(flag) => Ok(*flag),
            other => Err(wrong_type(primary_name(names), "true or false", other)),
        };
        self.node(names).map(flag).transpose()
    }

    /// A duration whose unit is [`MILLISECONDS`] or [`SECONDS`].
    pub(in crate::config) fn duration(
        &mut self,
        names: FieldNames,
        unit_millis: f64,
    ) -> Option<DurationSetting> {
        let Node::Number(number) = self.node(names)? else {
            self.notes.push(format!("`{}` is not a number and was ignored", primary_name(names)));
            return None;
        };
        let time =
            std::time::Duration::try_from_secs_f64((number * unit_millis / 1_000.0).min(MAX_DURATION_SECS))
                .ok();
        time.filter(|time| time.as_millis() > 0).map(DurationSetting)
    }

    /// Ignores fields; each that exists is noted with the reason, if given.
    pub(in crate::config) fn ignore_fields(&mut self, names: FieldNames, reason: Option<&str>) {
        for name in names {
            self.known_fields.push(name);
            if let Some(reason) = reason.filter(|_| self.node.get(name).is_some()) {
                self.notes.push(format!("`{name}` was ignored: {reason}"));
            }
        }
    }

    /// The notes, including unknown fields.
    pub(in crate::config) fn into_notes(mut self) -> Vec<String> {
        let is_unknown = |name: &&String| !self.known_fields.contains(&name.as_str());
        let names = self.node.entries().iter().map(|(name, _)| name);
        let unknown: Vec<String> = names
            .filter(is_unknown)
            .take(MAX_NOTED_FIELDS)
            .map(|name| format!("`{}`", safe_preview(name)))
            .collect();
        if !unknown.is_empty() {
            self.notes.push(format!("ignored unknown fields: {}", unknown.join(", ")));
        }
        self.notes
    }
}

/// The name for messages about a field that has several.
fn primary_name(names: FieldNames) -> &'static str {
    names.first().copied().unwrap_or_default()
}

fn wrong_type(field: &str, expected: &'static str, found: &Node) -> EntryError {
    EntryError::WrongType { field: field.to_owned(), expected, found: found.kind() }
}

fn texts(field: &str, node: &Node) -> Result<Vec<String>, EntryError> {
    match node {
        Node::Text(text) => Ok(vec![text.clone()]),
        Node::List(items) => {
            let text =
                |item: &Node| item.scalar_text().ok_or_else(|| wrong_type(field, "a list of texts", item));
            items.iter().map(text).collect()
        }
        other => Err(wrong_type(field, "a list of texts", other)),
    }
}

/// The fields that most clients share.
pub(in crate::config) fn parse_common_fields(
    entry: &mut ServerEntry<'_>,
) -> Result<ServerSettings, EntryError> {
    if let Some(node @ Node::Map(_)) = entry.node(&["command"]) {
        return Err(wrong_type("command", "a text", node));
    }
    let mut words = entry.texts(&["command"])?.unwrap_or_default().into_iter();
    let command = words.next();
    let args = words.chain(entry.texts(&["args", "arguments"])?.unwrap_or_default()).collect();
    let kind = entry.text(&["type", "transport", "transportType", "transport_type"])?;
    let is_disabled = entry.flag(&["disabled"])?.unwrap_or(false);
    let settings = ServerSettings {
        command,
        args,
        cwd: entry.text(&["cwd"])?,
        env: entry.map(&["env", "environment"])?,
        url: entry.text(&["url", "serverUrl"])?,
        headers: entry.map(&["headers"])?,
        transport: kind.as_deref().map(|kind| parse_transport(kind, entry)).transpose()?.flatten(),
        enabled: entry.flag(&["enabled", "active", "is_active", "isActive"])?.unwrap_or(true) && !is_disabled,
        oauth: parse_oauth(entry)?,
        isolation: parse_isolation(entry)?,
        ..parse_tool_lists(entry)?
    };
    entry.ignore_fields(
        &["headersHelper"],
        Some("header programs are not supported; use `${VAR}` in `headers`"),
    );
    entry.ignore_fields(
        &["alwaysAllow", "autoApprove", "autoAllow", "trust"],
        Some("set `trusted = true` instead"),
    );
    entry.ignore_fields(&["name", "id", "description", "gallery", "version", "dev", "icon"], None);
    Ok(settings)
}

/// The tools that a client may use and may not use, as settings with only these fields. `*` stands for all tools; Gemini
/// allows a list of arguments after a name.
fn parse_tool_lists(entry: &mut ServerEntry<'_>) -> Result<ServerSettings, EntryError> {
    const ONLY: FieldNames =
        &["enabled_tools", "enabledTools", "includeTools", "allowedTools", "allowed_tools"];
    const WITHOUT: FieldNames = &["disabled_tools", "disabledTools", "excludeTools", "excludedTools"];
    let without_arguments = |names: Vec<String>| {
        names.into_iter().map(|name| name.split('(').next().unwrap_or_default().trim().to_owned())
    };
    let is_any = |names: &[String]| names.iter().any(|name| name == "*");
    let only: Option<Vec<String>> = match entry.texts(ONLY)? {
        Some(names) => Some(without_arguments(names).collect()),
        // GitHub Copilot; in Codex's file, `tools` is a table of approval modes.
        None => entry
            .node(&["tools"])
            .filter(|node| matches!(node, Node::List(_)))
            .map(|node| texts("tools", node))
            .transpose()?,
    };
    let without: Vec<String> =
        entry.texts(WITHOUT)?.map(|names| without_arguments(names).collect()).unwrap_or_default();
    let is_nothing_allowed = is_any(&without);
    Ok(ServerSettings {
        tools: if is_nothing_allowed { Some(Vec::new()) } else { only.filter(|names| !is_any(names)) },
        without_tools: if is_nothing_allowed { Vec::new() } else { without },
        ..ServerSettings::default()
    })
}

pub(in crate::config) fn parse_transport(
    kind: &str,
    entry: &mut ServerEntry<'_>,
) -> Result<Option<TransportSetting>, EntryError> {
    let normalized: String = kind.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    Ok(match normalized.to_ascii_lowercase().as_str() {
        "stdio" | "local" => Some(TransportSetting::Stdio),
        "http" | "streamablehttp" | "streamable" => Some(TransportSetting::Http),
        "sse" | "httpsse" => Some(TransportSetting::Sse),
        "remote" | "auto" => None,
        "ws" | "websocket" => {
            return Err(EntryError::Unsupported("WebSocket is not an MCP transport; use an `http` URL"));
        }
        _ => {
            entry.notes.push("unknown `type`; the transport is detected".to_owned());
            None
        }
    })
}

fn parse_isolation(entry: &mut ServerEntry<'_>) -> Result<Option<IsolationSetting>, EntryError> {
    let unknown = EntryError::Unsupported("`isolation` must be \"shared\", \"caller\" or \"session\"");
    let name = entry.text(&["isolation"])?;
    name.map(|name| IsolationSetting::from_name(&name).ok_or(unknown)).transpose()
}

fn parse_oauth(entry: &mut ServerEntry<'_>) -> Result<Option<OauthSettings>, EntryError> {
    let Some(node) = entry.node(&["oauth", "auth"]) else { return Ok(None) };
    if !matches!(node, Node::Map(_)) {
        return Ok(None);
    }
    let text = |names: &[&str]| node.get_any(names).and_then(Node::text).map(str::to_owned);
    let scopes = match node.get("scopes") {
        Some(Node::Text(text)) => text.split_whitespace().map(str::to_owned).collect(),
        Some(other) => texts("oauth.scopes", other)?,
        None => Vec::new(),
    };
    let port = node
        .get_any(&["callbackPort", "callback_port"])
        .and_then(Node::scalar_text)
        .and_then(|text| text.parse().ok());
    let settings = OauthSettings {
        client_id: text(&["clientId", "client_id", "CLIENT_ID"]),
        client_secret: text(&["clientSecret", "client_secret", "CLIENT_SECRET"]),
        scopes,
        callback_port: port,
        ..OauthSettings::default()
    };
    Ok(Some(settings).filter(|settings| *settings != OauthSettings::default()))
}
