//! The servers of a client's file, converted to our settings.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use super::{
    document::{DocumentError, Node},
    env_file::add_env_file,
    server_entry::{EntryError, InvalidServer, ServerEntry},
    variable_dialect::{FileContext, VariableDialect, translate},
};
use crate::config::{
    OauthSettings, ServerSettings, TransportSetting,
    redacted::safe_preview,
    server_name::{check_server_name, suggest_server_name, unique_name},
    template::Template,
};

pub(in crate::config) struct ParsedServer {
    /// A valid name, unique in the file.
    pub(in crate::config) name: String,
    pub(in crate::config) original_name: String,
    pub(in crate::config) settings: ServerSettings,
    pub(in crate::config) notes: Vec<String>,
}

#[derive(Default)]
pub(in crate::config) struct ParsedServers {
    pub(in crate::config) servers: Vec<ParsedServer>,
    pub(in crate::config) invalid: Vec<InvalidServer>,
    taken: HashSet<String>,
    /// Valid names of the file; renamed servers must not take them.
    reserved: HashSet<String>,
}

pub(in crate::config) type EntryParser = fn(&mut ServerEntry<'_>) -> Result<ServerSettings, EntryError>;

impl ParsedServers {
    /// Parses the table of servers of a document; `expected` names the table for the error if there is none.
    pub(in crate::config) fn parse_table(
        servers: Option<&Node>,
        expected: &'static str,
        parser: EntryParser,
        dialect: VariableDialect,
        context: FileContext<'_>,
    ) -> Result<Self, DocumentError> {
        let mut parsed = Self::default();
        let servers = servers.ok_or(DocumentError::NoServers { expected })?;
        parsed.parse_all(servers, parser, dialect, context);
        Ok(parsed)
    }

    /// Parses a table of servers by name, or a list of servers with names.
    pub(in crate::config) fn parse_all(
        &mut self,
        servers: &Node,
        parser: EntryParser,
        dialect: VariableDialect,
        context: FileContext<'_>,
    ) {
        let named_nodes: Vec<(&str, &Node)> = match servers {
            Node::List(items) => items.iter().map(|item| (name_in_entry(item), item)).collect(),
            other => other.entries().iter().map(|(name, node)| (name.as_str(), node)).collect(),
        };
        let valid_names =
            named_nodes.iter().map(|(name, _)| *name).filter(|name| check_server_name(name).is_ok());
        self.reserved.extend(valid_names.map(str::to_owned));
        let last_index: HashMap<&str, usize> =
            named_nodes.iter().enumerate().map(|(index, (name, _))| (*name, index)).collect();
        for (index, &(name, node)) in named_nodes.iter().enumerate() {
            let is_last = name.is_empty() || last_index.get(name) == Some(&index);
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
        let is_taken = |valid_name: &str| {
            self.taken.contains(valid_name) || valid_name != name && self.reserved.contains(valid_name)
        };
        let valid_name = unique_name(&suggest_server_name(name), is_taken);
        let checked = server.and_then(|(settings, notes)| {
            settings.clone().into_config(&valid_name, Path::new("/"))?;
            Ok((settings, notes))
        });
        match checked {
            Ok((settings, notes)) => {
                self.taken.insert(valid_name.clone());
                self.servers.push(ParsedServer {
                    name: valid_name,
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
    let env_file = entry.text(&["envFile"])?;
    let mut settings = parser(&mut entry)?;
    let mut notes = entry.into_notes();
    remove_conflicting_fields(&mut settings, &mut notes);
    for text in templates_mut(&mut settings) {
        *text = translate(text, dialect, context, &mut notes);
    }
    if let Some(path) = env_file {
        let path = translate(&path, dialect, context, &mut notes);
        add_env_file(&mut settings, &path, context, &mut notes);
    }
    make_paths_absolute(&mut settings, context, &mut notes);
    notes.dedup();
    Ok((settings, notes))
}

/// Relative paths are relative to the project folder, which our file need not be in.
fn make_paths_absolute(settings: &mut ServerSettings, context: FileContext<'_>, notes: &mut Vec<String>) {
    let is_absolute = |path: &str| path.starts_with(['/', '\\', '~', '$']) || path.get(1..2) == Some(":");
    let paths = [("cwd", &mut settings.cwd), ("command", &mut settings.command)];
    for (field, path) in paths.into_iter().filter_map(|(field, path)| Some((field, path.as_mut()?))) {
        if is_absolute(path) || field == "command" && !path.starts_with('.') {
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
    let mut note_ignored = |is_present: bool, field: &str, why: &str| {
        if is_present {
            notes.push(format!("`{field}` was ignored: {why}"));
        }
        is_present
    };
    if settings.command.is_some() && settings.url.is_some() {
        match settings.transport {
            Some(TransportSetting::Stdio) => {
                note_ignored(true, "url", "the transport is stdio");
                settings.url = None;
            }
            Some(TransportSetting::Http | TransportSetting::Sse) => {
                note_ignored(true, "command", "the transport is HTTP");
                settings.command = None;
            }
            Some(TransportSetting::Auto) | None => return,
        }
    }
    if settings.url.is_some() {
        let why = "not applicable to a URL";
        if note_ignored(!settings.args.is_empty(), "args", why) {
            settings.args.clear();
        }
        if note_ignored(!settings.env.is_empty(), "env", why) {
            settings.env.clear();
        }
        if note_ignored(settings.cwd.is_some(), "cwd", why) {
            settings.cwd = None;
        }
        settings.inherit.clear();
        settings.transport = settings.transport.filter(|kind| *kind != TransportSetting::Stdio);
    } else {
        let why = "not applicable to a program";
        if note_ignored(!settings.headers.is_empty(), "headers", why) {
            settings.headers.clear();
        }
        if note_ignored(settings.oauth.is_some(), "oauth", why) {
            settings.oauth = None;
        }
        settings.transport = None;
    }
}

/// Every value that may contain references.
pub(in crate::config) fn templates_mut(settings: &mut ServerSettings) -> impl Iterator<Item = &mut String> {
    let oauth = settings.oauth.iter_mut().flat_map(OauthSettings::template_texts_mut);
    let single = [&mut settings.command, &mut settings.cwd, &mut settings.url].into_iter().flatten();
    single
        .chain(oauth)
        .chain(&mut settings.args)
        .chain(settings.env.values_mut())
        .chain(settings.headers.values_mut())
}
