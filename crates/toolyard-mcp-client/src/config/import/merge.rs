//! Merges the servers of several files: equal ones once, different ones under different names.

use std::collections::{BTreeMap, HashMap, HashSet};

use toolyard_core::ContentHash;

use super::{ExtractedSecret, ImportedServer};
use crate::config::{
    ServerSettings, ToolFilter, redacted::safe_preview, server_name::unique_name,
    value_syntax::to_variable_name,
};

/// A server and the files it was found in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedServer {
    /// The server, under a unique name. It is enabled if it is in any file, and offers every tool that any file allows:
    /// what a single client may use is in `found_in`.
    pub server: ImportedServer,
    /// Where it was found.
    pub found_in: Vec<ServerOrigin>,
}

/// An entry of a client's file that became a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerOrigin {
    /// The caller's name of the file: `Claude Code`.
    pub file: String,
    /// The name of the entry, without unsafe characters.
    pub name: String,
    /// Whether the client uses it.
    pub enabled: bool,
    /// The tools that the client may use.
    pub tools: ToolFilter,
}

impl ServerOrigin {
    fn new(file: &str, server: &ImportedServer) -> Self {
        Self {
            file: file.to_owned(),
            name: safe_preview(&server.original_name),
            enabled: server.settings.enabled,
            tools: server.settings.tool_filter(),
        }
    }
}

/// Merges servers. Servers with the same transport and the same secrets are equal; the first one's settings are used.
/// Different servers with the same name get a number.
pub fn merge_servers(files: impl IntoIterator<Item = (String, Vec<ImportedServer>)>) -> Vec<MergedServer> {
    let mut merged: Vec<MergedServer> = Vec::new();
    let mut by_identity: HashMap<Vec<String>, usize> = HashMap::new();
    let mut taken: HashSet<String> = HashSet::new();
    for (file_name, servers) in files {
        for mut server in servers {
            let found = by_identity.get(&identity_key(&server)).and_then(|index| merged.get_mut(*index));
            let origin = ServerOrigin::new(&file_name, &server);
            if let Some(same) = found {
                same.found_in.push(origin);
                let notes = server.notes.into_iter().filter(|note| !same.server.notes.contains(note));
                let notes: Vec<String> = notes.collect();
                same.server.notes.extend(notes);
                continue;
            }
            by_identity.insert(identity_key(&server), merged.len());
            server.name = unique_name(&server.name, |name| taken.contains(name));
            taken.insert(server.name.clone());
            merged.push(MergedServer { server, found_in: vec![origin] });
        }
    }
    merged.iter_mut().for_each(MergedServer::widen);
    rename_conflicting_variables(merged.iter_mut().map(|merged| &mut merged.server));
    merged
}

impl MergedServer {
    /// Enables the server if any client uses it, and allows the tools that any of those clients may use.
    fn widen(&mut self) {
        let settings = &mut self.server.settings;
        settings.enabled = self.found_in.iter().any(|origin| origin.enabled);
        let counts = |origin: &&ServerOrigin| origin.enabled || !settings.enabled;
        let ToolFilter { only, without } =
            ToolFilter::union(self.found_in.iter().filter(counts).map(|origin| &origin.tools));
        (settings.tools, settings.without_tools) = (only, without);
    }
}

/// The transport of a server, with fingerprints in place of secrets.
fn identity_key(server: &ImportedServer) -> Vec<String> {
    let mut settings = server.settings.clone();
    for secret in &server.secrets {
        settings.rename_variable(&secret.variable, &format!("_{}", secret.fingerprint));
    }
    let ServerSettings { command, args, cwd, env, url, headers, .. } = settings;
    let map = |map: BTreeMap<String, String>| map.into_iter().map(|(name, value)| format!("{name}={value}"));
    let url = url.map(|url| url.trim_end_matches('/').to_owned());
    let lengths = format!("{} {} {}", args.len(), env.len(), headers.len());
    [command, cwd, url]
        .into_iter()
        .map(|text| format!("{text:?}"))
        .chain([lengths])
        .chain(args)
        .chain(map(env))
        .chain(map(headers))
        .collect()
}

/// Renames variables that would stand for two different secrets, or that some server references already: the later one gets
/// the name of its server as a prefix.
pub(super) fn rename_conflicting_variables<'a>(servers: impl Iterator<Item = &'a mut ImportedServer>) {
    let servers: Vec<&mut ImportedServer> = servers.collect();
    let referenced: HashSet<String> =
        servers.iter().flat_map(|server| referenced_variables(server)).collect();
    let mut secret_by_variable: HashMap<String, ContentHash> = HashMap::new();
    for server in servers {
        let ImportedServer { name, settings, notes, secrets, .. } = server;
        for index in 0..secrets.len() {
            let Some(ExtractedSecret { variable, fingerprint, .. }) = secrets.get(index).cloned() else {
                continue;
            };
            let is_taken = |name: &str| {
                referenced.contains(name)
                    || secret_by_variable.get(name).is_some_and(|known| *known != fingerprint)
            };
            if !is_taken(&variable) {
                secret_by_variable.insert(variable, fingerprint);
                continue;
            }
            let new_variable = unused_name(&to_variable_name(&[name, &variable]), is_taken);
            settings.rename_variable(&variable, &new_variable);
            let (old, new) = (format!("`{variable}`"), format!("`{new_variable}`"));
            notes.iter_mut().for_each(|note| *note = note.replace(&old, &new));
            secret_by_variable.insert(new_variable.clone(), fingerprint);
            for secret in secrets.iter_mut().filter(|secret| secret.variable == variable) {
                secret.variable.clone_from(&new_variable);
            }
        }
    }
}

/// The variables that a server references itself.
fn referenced_variables(server: &ImportedServer) -> impl Iterator<Item = String> {
    let is_extracted = |name: &String| server.secrets.iter().any(|secret| secret.variable == *name);
    server.settings.variables().into_iter().filter(move |name| !is_extracted(name))
}

/// The name, with a number appended if it is taken.
pub(super) fn unused_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2_u32..).map(|number| format!("{name}_{number}"));
    std::iter::once(name.to_owned()).chain(numbered).find(|name| !is_taken(name)).unwrap_or_default()
}
