//! A server of another program's file on its way to becoming one of ours.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use super::{
    ServerSettings, TransportSetting, check_name,
    dialect::{Dialect, Place, translate},
    document::Node,
    entry::{Entry, EntryProblem, Problem},
    expand::Template,
    free_name,
    hidden::shown,
    valid_name,
};

/// A server as a file has it, in our words.
pub(super) struct Draft {
    /// A valid name that no other server of the file has.
    pub(super) name: String,
    /// Its name in the file.
    pub(super) source: String,
    pub(super) settings: ServerSettings,
    pub(super) notes: Vec<String>,
}

/// The servers of a file, with those that cannot be used.
#[derive(Default)]
pub(super) struct Drafts {
    pub(super) drafts: Vec<Draft>,
    pub(super) problems: Vec<Problem>,
    taken: HashSet<String>,
    /// Names that need no change: nobody whose name needs one takes them away.
    reserved: HashSet<String>,
}

/// Reads the fields of one server.
pub(super) type Fields = fn(&mut Entry<'_>) -> Result<ServerSettings, EntryProblem>;

impl Drafts {
    /// Reads servers that stand in a table by name, or in a list with their names inside.
    pub(super) fn read(&mut self, servers: &Node, fields: Fields, dialect: Dialect, place: Place<'_>) {
        let named: Vec<(&str, &Node)> = match servers {
            Node::List(items) => items.iter().map(|item| (inner_name(item), item)).collect(),
            other => other.entries().iter().map(|(name, node)| (name.as_str(), node)).collect(),
        };
        let valid = named.iter().map(|(name, _)| *name).filter(|name| check_name(name).is_ok());
        self.reserved.extend(valid.map(str::to_owned));
        let last: HashMap<&str, usize> =
            named.iter().enumerate().map(|(number, (name, _))| (*name, number)).collect();
        for (number, &(name, node)) in named.iter().enumerate() {
            let is_last = name.is_empty() || last.get(name) == Some(&number);
            let draft =
                if is_last { read_one(node, fields, dialect, place) } else { Err(EntryProblem::GivenTwice) };
            self.add(name, draft);
        }
    }

    /// Adds one server under a valid name of its own.
    pub(super) fn add(&mut self, name: &str, draft: Result<(ServerSettings, Vec<String>), EntryProblem>) {
        let is_taken =
            |valid: &str| self.taken.contains(valid) || valid != name && self.reserved.contains(valid);
        let valid = free_name(&valid_name(name), is_taken);
        let checked = draft.and_then(|(settings, notes)| {
            settings.clone().into_config(&valid, Path::new("/"))?;
            Ok((settings, notes))
        });
        match checked {
            Ok((settings, mut notes)) => {
                if valid != name {
                    notes.insert(0, format!("it was called `{}`", shown(name)));
                }
                self.taken.insert(valid.clone());
                self.drafts.push(Draft { name: valid, source: name.to_owned(), settings, notes });
            }
            Err(reason) => self.problems.push(Problem { server: shown(name), reason }),
        }
    }
}

pub(super) fn inner_name(item: &Node) -> &str {
    item.either(&["id", "name"]).and_then(Node::text).unwrap_or_default()
}

fn read_one(
    node: &Node,
    fields: Fields,
    dialect: Dialect,
    place: Place<'_>,
) -> Result<(ServerSettings, Vec<String>), EntryProblem> {
    let mut entry = Entry::new(node)?;
    let mut settings = fields(&mut entry)?;
    let mut notes = entry.finish();
    make_consistent(&mut settings, &mut notes);
    for text in texts_mut(&mut settings) {
        *text = translate(text, dialect, place, &mut notes);
    }
    anchor(&mut settings, place, &mut notes);
    notes.dedup();
    Ok((settings, notes))
}

/// Relative paths were relative to the project, which our own file need not be in.
fn anchor(settings: &mut ServerSettings, place: Place<'_>, notes: &mut Vec<String>) {
    let is_whole = |path: &str| path.starts_with(['/', '\\', '~', '$']) || path.get(1..2) == Some(":");
    let paths = [("cwd", &mut settings.cwd), ("command", &mut settings.command)];
    for (field, path) in paths.into_iter().filter_map(|(field, path)| Some((field, path.as_mut()?))) {
        if is_whole(path) || field == "command" && !path.starts_with('.') {
            continue;
        }
        match place.workspace {
            Some(folder) => {
                let rest = path.trim_start_matches("./");
                *path = format!("{}/{rest}", Template::escape(folder.trim_end_matches('/')));
            }
            None => notes.push(format!("`{field}` is a relative path: make it a whole one")),
        }
    }
}

/// Clients ignore what has no meaning beside the rest; so does this, but it says so.
pub(super) fn make_consistent(settings: &mut ServerSettings, notes: &mut Vec<String>) {
    let mut drop = |is_there: bool, what: &str, why: &str| {
        if is_there {
            notes.push(format!("`{what}` was left out: {why}"));
        }
        is_there
    };
    if settings.command.is_some() && settings.url.is_some() {
        match settings.transport {
            Some(TransportSetting::Stdio) => {
                drop(true, "url", "it is a program");
                settings.url = None;
            }
            Some(TransportSetting::Http | TransportSetting::Sse) => {
                drop(true, "command", "it is an address");
                settings.command = None;
            }
            Some(TransportSetting::Auto) | None => return,
        }
    }
    if settings.url.is_some() {
        let why = "it has no meaning for an address";
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
        let why = "it has no meaning for a program";
        if drop(!settings.headers.is_empty(), "headers", why) {
            settings.headers.clear();
        }
        if drop(settings.oauth.is_some(), "oauth", why) {
            settings.oauth = None;
        }
        settings.transport = None;
    }
}

/// Every value that may hold references.
pub(super) fn texts_mut(settings: &mut ServerSettings) -> impl Iterator<Item = &mut String> {
    let oauth = settings.oauth.iter_mut().flat_map(|oauth| [&mut oauth.client_id, &mut oauth.client_secret]);
    let single =
        [&mut settings.command, &mut settings.cwd, &mut settings.url].into_iter().chain(oauth).flatten();
    single.chain(&mut settings.args).chain(settings.env.values_mut()).chain(settings.headers.values_mut())
}
