//! The official registry: `server.json` of schema 2025-12-11, older ones in snake case, and responses of its API.

use super::{ConfigPath, registry_package as package};
use crate::config::{
    DocumentError, ServerSettings, Template, TransportSetting, client_file::document::Node,
    client_file::parsed_servers::ParsedServers, client_file::server_entry::EntryError,
    redacted::safe_preview, value_syntax::variable_name,
};

pub(super) const CONFIG_PATHS: &[ConfigPath] = &[ConfigPath::project("server.json")];

pub(super) fn parse(text: &str) -> Result<ParsedServers, DocumentError> {
    let document = Node::from_json(text)?;
    let servers: Vec<&Node> = match document.get("servers") {
        Some(Node::List(items)) => items.iter().map(|item| item.get("server").unwrap_or(item)).collect(),
        _ => vec![document.get("server").unwrap_or(&document)],
    };
    let is_server = |server: &&Node| server.get_any(&["packages", "remotes"]).is_some();
    if !servers.iter().any(is_server) {
        return Err(DocumentError::NoServers { expected: "`packages` or `remotes`" });
    }
    let mut parsed = ParsedServers::default();
    for server in servers {
        let full = server.get("name").and_then(Node::text).unwrap_or_default();
        // `io.github.user/server`: the part before the slash is the owner.
        let name = full.rsplit('/').next().unwrap_or_default();
        parsed.add(name, read_server(server, name));
    }
    Ok(parsed)
}

/// The first supported package, or else the first remote.
fn read_server(server: &Node, name: &str) -> Result<(ServerSettings, Vec<String>), EntryError> {
    let mut inputs = InputResolver { server: name, notes: Vec::new() };
    let packages = server.get("packages").map(Node::items).unwrap_or_default();
    let remotes = server.get("remotes").map(Node::items).unwrap_or_default();
    let others = packages.len() + remotes.len();
    let mut reason = EntryError::Unsupported("no package and no remote");
    for package in packages {
        match package::parse(package) {
            Ok(start) => {
                let settings = start.settings(package, &mut inputs);
                return Ok((settings, inputs.into_notes(others)));
            }
            Err(problem) => reason = problem,
        }
    }
    match remotes.first() {
        Some(remote) => {
            let settings = read_remote(remote, &mut inputs)?;
            Ok((settings, inputs.into_notes(others)))
        }
        None => Err(reason),
    }
}

fn read_remote(remote: &Node, inputs: &mut InputResolver<'_>) -> Result<ServerSettings, EntryError> {
    let kind =
        remote.get_any(&["type", "transport_type", "transportType"]).and_then(Node::text).unwrap_or_default();
    let url =
        remote.get("url").and_then(Node::text).ok_or(EntryError::Unsupported("the remote has no `url`"))?;
    let headers = remote.get("headers").map(Node::items).unwrap_or_default();
    let headers = headers.iter().filter_map(|header| {
        let name = header.get("name").and_then(Node::text)?;
        Some((name.to_owned(), inputs.input(header, name, true)?))
    });
    let headers = headers.collect();
    Ok(ServerSettings {
        url: Some(inputs.placeholders(url, remote)),
        headers,
        transport: match kind {
            "sse" => Some(TransportSetting::Sse),
            "streamable-http" | "streamable" => Some(TransportSetting::Http),
            _ => None,
        },
        ..ServerSettings::default()
    })
}

/// Resolves the inputs of a server, with references for values that only the user knows.
pub(super) struct InputResolver<'a> {
    pub(super) server: &'a str,
    pub(super) notes: Vec<String>,
}

impl InputResolver<'_> {
    /// The value of an input: its value, its default, or a reference if it is required. A secret is always a reference. With
    /// `is_own`, the variable is prefixed with the server's name.
    pub(super) fn input(&mut self, input: &Node, name: &str, is_own: bool) -> Option<String> {
        let flag = |names: &[&str]| input.get_any(names).is_some_and(Node::is_true);
        let is_secret = flag(&["isSecret", "is_secret"]);
        let given = input
            .get("value")
            .and_then(Node::plain)
            .filter(|_| !is_secret || input.get("variables").is_some());
        if let Some(value) = given {
            return Some(self.placeholders(&value, input));
        }
        let default = input.get("default").and_then(Node::plain).filter(|_| !is_secret);
        if let Some(default) = default {
            return Some(Template::escape(&default));
        }
        let variable = if is_own { variable_name(&[self.server, name]) } else { variable_name(&[name]) };
        let what =
            input.get("description").and_then(Node::text).map(|text| format!(" ({})", safe_preview(text)));
        let what = what.unwrap_or_default();
        if is_secret || flag(&["isRequired", "is_required"]) {
            self.notes.push(format!("set the environment variable `{variable}`{what}"));
            Some(format!("${{{variable}}}"))
        } else {
            self.notes.push(format!("`{}` is optional{what}", safe_preview(name)));
            None
        }
    }

    /// Replaces `{name}` with the described inputs. Inserted values are not expanded again: a default could otherwise
    /// reference a variable of the user.
    pub(super) fn placeholders(&mut self, text: &str, owner: &Node) -> String {
        let variables = owner.get("variables");
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(&Template::escape(before));
            let named = after.split_once('}').filter(|(name, _)| !name.is_empty());
            let found = named.and_then(|(name, left)| Some((name, variables?.get(name)?, left)));
            if let Some((name, input, left)) = found {
                let value = self.input(input, name, true);
                let open = || format!("${{{}}}", variable_name(&[self.server, name]));
                filled.push_str(&value.unwrap_or_else(open));
                rest = left;
            } else {
                filled.push('{');
                rest = after;
            }
        }
        filled.push_str(&Template::escape(rest));
        filled
    }

    fn into_notes(mut self, offers: usize) -> Vec<String> {
        if offers > 1 {
            self.notes
                .push(format!("the registry offers {offers} transports; this is the first supported one"));
        }
        self.notes
    }
}
