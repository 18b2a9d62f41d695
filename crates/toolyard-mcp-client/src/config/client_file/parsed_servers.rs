//! The servers of a client's file, converted to our settings.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use super::{
    document::Node,
    server_entry::{EntryError, InvalidServer, ServerEntry},
    variable_dialect::{FileContext, VariableDialect, translate},
};
use crate::config::{
    ServerSettings, TransportSetting,
    redacted::safe_preview,
    server_name::{check_server_name, suggest_server_name, unique_name},
    template::Template,
};

/// A server of a file, with our settings.
pub(in crate::config) struct ParsedServer {
    /// A valid name, unique in the file.
    pub(in crate::config) name: String,
    /// The name in the file.
    pub(in crate::config) original_name: String,
    pub(in crate::config) settings: ServerSettings,
    pub(in crate::config) notes: Vec<String>,
}

/// The servers of a file.
#[derive(Default)]
pub(in crate::config) struct ParsedServers {
    pub(in crate::config) servers: Vec<ParsedServer>,
    pub(in crate::config) invalid: Vec<InvalidServer>,
    taken: HashSet<String>,
    /// Valid names of the file; renamed servers must not take them.
    reserved: HashSet<String>,
}

/// Parses the fields of one server.
pub(in crate::config) type EntryParser = fn(&mut ServerEntry<'_>) -> Result<ServerSettings, EntryError>;

impl ParsedServers {
    /// Parses a table of servers by name, or a list of servers with names.
    pub(in crate::config) fn parse_all(
        &mut self,
        servers: &Node,
        parser: EntryParser,
        dialect: VariableDialect,
        context: FileContext<'_>,
    ) {
        let named: Vec<(&str, &Node)> = match servers {
            Node::List(items) => items.iter().map(|item| (name_in_entry(item), item)).collect(),
            other => other.entries().iter().map(|(name, node)| (name.as_str(), node)).collect(),
        };
        let valid = named.iter().map(|(name, _)| *name).filter(|name| check_server_name(name).is_ok());
        self.reserved.extend(valid.map(str::to_owned));
        let last: HashMap<&str, usize> =
            named.iter().enumerate().map(|(number, (name, _))| (*name, number)).collect();
        for (number, &(name, node)) in named.iter().enumerate() {
            let is_last = name.is_empty() || last.get(name) == Some(&number);
            let server = if is_last {
                parse_entry(node, parser, dialect, context)
            } else {
                Err(EntryError::Duplicate)
            };
            self.add(name, server);
        }
    }

    /// Adds one server under a valid, unique name.
    pub(in crate::config) fn add(
        &mut self,
        name: &str,
        server: Result<(ServerSettings, Vec<String>), EntryError>,
    ) {
        let is_taken =
            |valid: &str| self.taken.contains(valid) || valid != name && self.reserved.contains(valid);
        let valid = unique_name(&suggest_server_name(name), is_taken);
        let checked = server.and_then(|(settings, notes)| {
            settings.clone().into_config(&valid, Path::new("/"))?;
            Ok((settings, notes))
        });
        match checked {
            Ok((settings, mut notes)) => {
                if valid != name {
                    notes.insert(0, format!("renamed from `{}`", safe_preview(name)));
                }
                self.taken.insert(valid.clone());
                self.servers.push(ParsedServer {
                    name: valid,
                    original_name: name.to_owned(),
                    settings,
                    notes,
                });
            }
            Err(reason) => self.invalid.push(InvalidServer { server: safe_preview(name), reason }),
        }
    }
}

pub(in crate::config) fn name_in_entry(item: &Node) -> &str {
    item.get_any(&["id", "name"]).and_then(Node::text).unwrap_or_default()
}

fn parse_entry(
    node: &Node,
    parser: EntryParser,
    dialect: VariableDialect,
    context: FileContext<'_>,
) -> Result<(ServerSettings, Vec<String>), EntryError> {
    let mut entry = ServerEntry::new(node)?;
    let mut settings = parser(&mut entry)?;
    let mut notes = entry.into_notes();
    remove_conflicting_fields(&mut settings, &mut notes);
    for text in templates_mut(&mut settings) {
        *text = translate(text, dialect, context, &mut notes);
    }
    make_paths_absolute(&mut settings, context, &mut notes);
    notes.dedup();
    Ok((settings, notes))
}

/// Relative paths are relative to the project folder, which our file need not be in.
fn make_paths_absolute(settings: &mut ServerSettings, context: FileContext<'_>, notes: &mut Vec<String>) {
    let is_whole = |path: &str| path.starts_with(['/', '\\', '~', '$']) || path.get(1..2) == Some(":");
    let paths = [("cwd", &mut settings.cwd), ("command", &mut settings.command)];
    for (field, path) in paths.into_iter().filter_map(|(field, path)| Some((field, path.as_mut()?))) {
        if is_whole(path) || field == "command" && !path.starts_with('.') {
            continue;
        }
        match context.workspace {
            Some(folder) => {
                let rest = path.trim_start_matches("./");
                *path = format!("{}/{rest}", Template::escape(folder.trim_end_matches('/')));
            }
            None => notes.push(format!("`{field}` is a relative path: make it absolute")),
        }
    }
}

/// Removes fields that clients ignore for this transport, with a note.
pub(in crate::config) fn remove_conflicting_fields(settings: &mut ServerSettings, notes: &mut Vec<String>) {
    let mut drop = |is_there: bool, what: &str, why: &str| {
        if is_there {
            notes.push(format!("`{what}` was ignored: {why}"));
        }
        is_there
    };
    if settings.command.is_some() && settings.url.is_some() {
        match settings.transport {
            Some(TransportSetting::Stdio) => {
                drop(true, "url", "the transport is stdio");
                settings.url = None;
            }
            Some(TransportSetting::Http | TransportSetting::Sse) => {
                drop(true, "command", "the transport is HTTP");
                settings.command = None;
            }
            Some(TransportSetting::Auto) | None => return,
        }
    }
    if settings.url.is_some() {
        let why = "not applicable to a URL";
        if drop(!settings.args.is_empty(), "args", why) {
            settings.args.clear();
        }
        if drop(!settings.env.is_empty(), "env", why) {
            settings.env.clear();
        }
        if drop(settings.cwd.is_some(), "cwd", why) {
            settings.cwd = None;
        }
        settings.inherit.clear();
        settings.transport = settings.transport.filter(|kind| *kind != TransportSetting::Stdio);
    } else {
        let why = "not applicable to a program";
        if drop(!settings.headers.is_empty(), "headers", why) {
            settings.headers.clear();
        }
        if drop(settings.oauth.is_some(), "oauth", why) {
            settings.oauth = None;
        }
        settings.transport = None;
    }
}

/// Every value that may contain references.
pub(in crate::config) fn templates_mut(settings: &mut ServerSettings) -> impl Iterator<Item = &mut String> {
    let oauth = settings.oauth.iter_mut().flat_map(|oauth| [&mut oauth.client_id, &mut oauth.client_secret]);
    let single =
        [&mut settings.command, &mut settings.cwd, &mut settings.url].into_iter().chain(oauth).flatten();
    single.chain(&mut settings.args).chain(settings.env.values_mut()).chain(settings.headers.values_mut())
}
