//! The official registry: `server.json` of schema 2025-12-11, older ones in snake case, and responses of its API.

use super::{
    ConfigPath,
    registry_input::{InputResolver, VariablePrefix},
    registry_package as package,
};
use crate::config::{
    DocumentError, ServerSettings, TransportSetting, client_file::document::Node,
    client_file::parsed_servers::ParsedServers, client_file::server_entry::EntryError,
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
        let full_name = server.get("name").and_then(Node::text).unwrap_or_default();
        // `io.github.user/server`: the part before the slash is the owner.
        let name = full_name.rsplit('/').next().unwrap_or_default();
        parsed.add(name, read_server(server, name));
    }
    Ok(parsed)
}

/// The first supported package, or else the first remote.
fn read_server(server: &Node, name: &str) -> Result<(ServerSettings, Vec<String>), EntryError> {
    let mut resolver = InputResolver { server: name, notes: Vec::new() };
    let packages = server.get("packages").map(Node::items).unwrap_or_default();
    let remotes = server.get("remotes").map(Node::items).unwrap_or_default();
    let offered = packages.len() + remotes.len();
    let mut reason = EntryError::Unsupported("no package and no remote");
    for package in packages {
        match package::parse(package) {
            Ok(command) => {
                let settings = command.into_settings(package, &mut resolver);
                return Ok((settings, resolver.into_notes(offered)));
            }
            Err(problem) => reason = problem,
        }
    }
    match remotes.first() {
        Some(remote) => {
            let settings = read_remote(remote, &mut resolver)?;
            Ok((settings, resolver.into_notes(offered)))
        }
        None => Err(reason),
    }
}

fn read_remote(remote: &Node, resolver: &mut InputResolver<'_>) -> Result<ServerSettings, EntryError> {
    let kind =
        remote.get_any(&["type", "transport_type", "transportType"]).and_then(Node::text).unwrap_or_default();
    let url =
        remote.get("url").and_then(Node::text).ok_or(EntryError::Unsupported("the remote has no `url`"))?;
    let headers = remote.get("headers").map(Node::items).unwrap_or_default();
    let headers = headers.iter().filter_map(|header| {
        let name = header.get("name").and_then(Node::text)?;
        Some((name.to_owned(), resolver.input(header, name, VariablePrefix::ServerName)?))
    });
    let headers = headers.collect();
    Ok(ServerSettings {
        url: Some(resolver.fill_placeholders(url, remote)),
        headers,
        transport: match kind {
            "sse" => Some(TransportSetting::Sse),
            "streamable-http" | "streamable" => Some(TransportSetting::Http),
            _ => None,
        },
        ..ServerSettings::default()
    })
}
