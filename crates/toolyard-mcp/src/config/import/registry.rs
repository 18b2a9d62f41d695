//! The official registry: `server.json` of schema 2025-12-11, the older ones in snake case, and answers of its API.

use super::{Candidate, registry_package as package};
use crate::config::{
    DocumentError, ServerSettings, Template, TransportSetting, document::Node, draft::Drafts,
    entry::EntryProblem, hidden::shown, name::variable_name,
};

pub(super) const CANDIDATES: &[Candidate] = &[Candidate::project("server.json")];

pub(super) fn read(text: &str) -> Result<Drafts, DocumentError> {
    let document = Node::from_json(text)?;
    let servers: Vec<&Node> = match document.get("servers") {
        Some(Node::List(items)) => items.iter().map(|item| item.get("server").unwrap_or(item)).collect(),
        _ => vec![document.get("server").unwrap_or(&document)],
    };
    let is_server = |server: &&Node| server.either(&["packages", "remotes"]).is_some();
    if !servers.iter().any(is_server) {
        return Err(DocumentError::NoServers { expected: "`packages` or `remotes`" });
    }
    let mut drafts = Drafts::default();
    for server in servers {
        let full = server.get("name").and_then(Node::text).unwrap_or_default();
        // `io.github.user/server`: the part before the slash says whose it is.
        let name = full.rsplit('/').next().unwrap_or_default();
        drafts.add(name, read_server(server, name));
    }
    Ok(drafts)
}

/// The first package that can be started, or else the first address.
fn read_server(server: &Node, name: &str) -> Result<(ServerSettings, Vec<String>), EntryProblem> {
    let mut filler = Filler { server: name, notes: Vec::new() };
    let packages = server.get("packages").map(Node::items).unwrap_or_default();
    let remotes = server.get("remotes").map(Node::items).unwrap_or_default();
    let others = packages.len() + remotes.len();
    let mut reason = EntryProblem::Unsupported("it has neither a package nor an address");
    for package in packages {
        match package::read(package) {
            Ok(start) => {
                let settings = start.settings(package, &mut filler);
                return Ok((settings, filler.finish(others)));
            }
            Err(problem) => reason = problem,
        }
    }
    match remotes.first() {
        Some(remote) => {
            let settings = read_remote(remote, &mut filler)?;
            Ok((settings, filler.finish(others)))
        }
        None => Err(reason),
    }
}

fn read_remote(remote: &Node, filler: &mut Filler<'_>) -> Result<ServerSettings, EntryProblem> {
    let kind =
        remote.either(&["type", "transport_type", "transportType"]).and_then(Node::text).unwrap_or_default();
    let url =
        remote.get("url").and_then(Node::text).ok_or(EntryProblem::Unsupported("its remote has no `url`"))?;
    let headers = remote.get("headers").map(Node::items).unwrap_or_default();
    let headers = headers.iter().filter_map(|header| {
        let name = header.get("name").and_then(Node::text)?;
        Some((name.to_owned(), filler.input(header, name, true)?))
    });
    let headers = headers.collect();
    Ok(ServerSettings {
        url: Some(filler.placeholders(url, remote)),
        headers,
        transport: match kind {
            "sse" => Some(TransportSetting::Sse),
            "streamable-http" | "streamable" => Some(TransportSetting::Http),
            _ => None,
        },
        ..ServerSettings::default()
    })
}

/// Fills in what the registry leaves open, with references where only the person can know.
pub(super) struct Filler<'a> {
    pub(super) server: &'a str,
    pub(super) notes: Vec<String>,
}

impl Filler<'_> {
    /// The value of an input: what is given, else a default, else a reference when it is needed. A secret is always a
    /// reference. An input that is the server's own gets a variable with the server's name in it.
    pub(super) fn input(&mut self, input: &Node, name: &str, is_own: bool) -> Option<String> {
        let flag = |names: &[&str]| input.either(names).is_some_and(Node::is_true);
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
        let what = input.get("description").and_then(Node::text).map(|text| format!(" ({})", shown(text)));
        let what = what.unwrap_or_default();
        if is_secret || flag(&["isRequired", "is_required"]) {
            self.notes.push(format!("set the environment variable `{variable}`{what}"));
            Some(format!("${{{variable}}}"))
        } else {
            self.notes.push(format!("`{}` may be set as well{what}", shown(name)));
            None
        }
    }

    /// A text whose `{name}` stand for inputs described beside it. What is filled in is not read again: a default could
    /// make itself a reference to a variable of the person's.
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

    fn finish(mut self, offers: usize) -> Vec<String> {
        if offers > 1 {
            self.notes
                .push(format!("the registry offers {offers} ways to reach it; this is the first that fits"));
        }
        self.notes
    }
}
