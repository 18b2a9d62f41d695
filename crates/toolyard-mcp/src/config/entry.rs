//! One server of another program's file, read field by field: what does not fit is told, never with its value.

use std::collections::BTreeMap;

use super::{ConfigError, OauthSettings, ServerSettings, TransportSetting, document::Node, hidden::shown};

/// Why one server of a file is left out. The others are used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntryProblem {
    /// A field holds the wrong kind of thing.
    #[error("`{field}` must be {expected}, not {found}")]
    WrongType {
        /// The field.
        field: String,
        /// What it should be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// It is no table.
    #[error("it must be a table, not {0}")]
    NotATable(&'static str),
    /// Something there is no way to do.
    #[error("{0}")]
    Unsupported(&'static str),
    /// What it says makes no sense as a whole.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// Its name stands there again further down.
    #[error("it is given again further down, and that one counts")]
    GivenTwice,
}

/// One server of a file that is left out, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{server}` is left out: {reason}")]
pub struct Problem {
    /// Its name in the file, fit to be shown.
    pub server: String,
    /// Why.
    pub reason: EntryProblem,
}

/// A server that is being read.
pub(super) struct Entry<'a> {
    node: &'a Node,
    known: Vec<&'static str>,
    pub(super) notes: Vec<String>,
}

type Names = &'static [&'static str];

impl<'a> Entry<'a> {
    pub(super) fn new(node: &'a Node) -> Result<Self, EntryProblem> {
        match node {
            Node::Map(_) => Ok(Self { node, known: Vec::new(), notes: Vec::new() }),
            other => Err(EntryProblem::NotATable(other.kind())),
        }
    }

    /// What stands under the first of these names that is there.
    pub(super) fn node(&mut self, names: Names) -> Option<&'a Node> {
        self.known.extend(names);
        self.node.either(names)
    }

    pub(super) fn text(&mut self, names: Names) -> Result<Option<String>, EntryProblem> {
        let text = |node: &Node| match node {
            Node::Text(text) => Ok(text.clone()),
            other => Err(wrong(first(names), "a text", other)),
        };
        self.node(names).map(text).transpose()
    }

    /// A list of texts; numbers and flags are taken as they are written, and one text as a list of one.
    pub(super) fn texts(&mut self, names: Names) -> Result<Option<Vec<String>>, EntryProblem> {
        self.node(names).map(|node| texts(first(names), node)).transpose()
    }

    /// Texts by name.
    pub(super) fn map(&mut self, names: Names) -> Result<BTreeMap<String, String>, EntryProblem> {
        let field = first(names);
        let Some(node) = self.node(names) else { return Ok(BTreeMap::new()) };
        let Node::Map(entries) = node else { return Err(wrong(field, "a table of texts", node)) };
        let entries = entries.iter().filter(|(_, value)| *value != Node::Null);
        let text = |(name, value): &(String, Node)| match value.plain() {
            Some(text) => Ok((name.clone(), text)),
            None => Err(wrong(&format!("{field}.{}", shown(name)), "a text", value)),
        };
        entries.map(text).collect()
    }

    pub(super) fn flag(&mut self, names: Names) -> Result<Option<bool>, EntryProblem> {
        let flag = |node: &Node| match node {
            Node::Flag(flag) => Ok(*flag),
            other => Err(wrong(first(names), "true or false", other)),
        };
        self.node(names).map(flag).transpose()
    }

    /// A length of time in some unit of so many milliseconds.
    pub(super) fn span(&mut self, names: Names, unit: f64) -> Option<super::Span> {
        let Node::Number(number) = self.node(names)? else {
            self.notes.push(format!("`{}` is no number and was left out", first(names)));
            return None;
        };
        let time = std::time::Duration::try_from_secs_f64((number * unit / 1_000.0).min(1e9)).ok();
        time.filter(|time| time.as_millis() > 0).map(super::Span)
    }

    /// Fields that are known and have no meaning here; each that is there is told with this reason, if there is one.
    pub(super) fn without(&mut self, names: Names, reason: Option<&str>) {
        for name in names {
            self.known.push(name);
            if let Some(reason) = reason.filter(|_| self.node.get(name).is_some()) {
                self.notes.push(format!("`{name}` was left out: {reason}"));
            }
        }
    }

    /// What there is to say about it, unknown fields included.
    pub(super) fn finish(mut self) -> Vec<String> {
        let is_unknown = |name: &&String| !self.known.contains(&name.as_str());
        let names = self.node.entries().iter().map(|(name, _)| name);
        let unknown: Vec<String> =
            names.filter(is_unknown).take(8).map(|name| format!("`{}`", shown(name))).collect();
        if !unknown.is_empty() {
            self.notes.push(format!("not understood and left out: {}", unknown.join(", ")));
        }
        self.notes
    }
}

fn first(names: Names) -> &'static str {
    names.first().copied().unwrap_or_default()
}

fn wrong(field: &str, expected: &'static str, found: &Node) -> EntryProblem {
    EntryProblem::WrongType { field: field.to_owned(), expected, found: found.kind() }
}

fn texts(field: &str, node: &Node) -> Result<Vec<String>, EntryProblem> {
    match node {
        Node::Text(text) => Ok(vec![text.clone()]),
        Node::List(items) => {
            let text = |item: &Node| item.plain().ok_or_else(|| wrong(field, "a list of texts", item));
            items.iter().map(text).collect()
        }
        other => Err(wrong(field, "a list of texts", other)),
    }
}

/// The fields that most clients share.
pub(super) fn shared_fields(entry: &mut Entry<'_>) -> Result<ServerSettings, EntryProblem> {
    if let Some(node @ Node::Map(_)) = entry.node(&["command"]) {
        return Err(wrong("command", "a text", node));
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
        transport: kind.as_deref().map(|kind| transport(kind, entry)).transpose()?.flatten(),
        enabled: entry.flag(&["enabled", "active", "is_active", "isActive"])?.unwrap_or(true) && !is_disabled,
        oauth: oauth(entry)?,
        ..ServerSettings::default()
    };
    entry.without(&["envFile"], Some("files with variables are not read; set the variables themselves"));
    entry.without(
        &["headersHelper"],
        Some("programs that make headers are not run; use `${VAR}` in `headers`"),
    );
    entry.without(&["alwaysAllow", "autoApprove", "trust"], Some("trust is decided here: `trusted = true`"));
    entry.without(&["name", "id", "description", "gallery", "version", "dev", "icon"], None);
    Ok(settings)
}

/// A transport by the names that clients have for it.
pub(super) fn transport(kind: &str, entry: &mut Entry<'_>) -> Result<Option<TransportSetting>, EntryProblem> {
    let plain: String = kind.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    Ok(match plain.to_ascii_lowercase().as_str() {
        "stdio" | "local" => Some(TransportSetting::Stdio),
        "http" | "streamablehttp" | "streamable" => Some(TransportSetting::Http),
        "sse" | "httpsse" => Some(TransportSetting::Sse),
        "remote" | "auto" => None,
        "ws" | "websocket" => {
            return Err(EntryProblem::Unsupported(
                "WebSocket is no transport of the protocol; ask for an `http` address",
            ));
        }
        _ => {
            entry.notes.push("its `type` is not known; how it talks will be found out".to_owned());
            None
        }
    })
}

fn oauth(entry: &mut Entry<'_>) -> Result<Option<OauthSettings>, EntryProblem> {
    let Some(node) = entry.node(&["oauth", "auth"]) else { return Ok(None) };
    if !matches!(node, Node::Map(_)) {
        return Ok(None);
    }
    let text = |names: &[&str]| node.either(names).and_then(Node::text).map(str::to_owned);
    let scopes = match node.get("scopes") {
        Some(Node::Text(text)) => text.split_whitespace().map(str::to_owned).collect(),
        Some(other) => texts("oauth.scopes", other)?,
        None => Vec::new(),
    };
    let port = node
        .either(&["callbackPort", "callback_port"])
        .and_then(Node::plain)
        .and_then(|text| text.parse().ok());
    let settings = OauthSettings {
        client_id: text(&["clientId", "client_id", "CLIENT_ID"]),
        client_secret: text(&["clientSecret", "client_secret", "CLIENT_SECRET"]),
        scopes,
        callback_port: port,
    };
    Ok(Some(settings).filter(|settings| *settings != OauthSettings::default()))
}
