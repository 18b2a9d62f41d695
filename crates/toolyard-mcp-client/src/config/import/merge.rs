//! Merges the servers of several files: equal ones once, different ones under different names.

use std::collections::{BTreeMap, HashMap, HashSet};

use toolyard_core::ContentHash;

use super::{ExtractedSecret, ImportedServer};
use crate::config::{
    ServerSettings,
    client_file::parsed_servers::templates_mut,
    server_name::unique_name,
    template::{Piece, Template},
    value_syntax::to_variable_name,
};

/// A server and the files it was found in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedServer {
    /// The server, under a unique name.
    pub server: ImportedServer,
    /// The caller's names of the files: `Claude Code`.
    pub found_in: Vec<String>,
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
            if let Some(same) = found {
                if !same.found_in.contains(&file_name) {
                    same.found_in.push(file_name.clone());
                }
                continue;
            }
            by_identity.insert(identity_key(&server), merged.len());
            server.name = unique_name(&server.name, |name| taken.contains(name));
            taken.insert(server.name.clone());
            merged.push(MergedServer { server, found_in: vec![file_name.clone()] });
        }
    }
    rename_conflicting_variables(merged.iter_mut().map(|merged| &mut merged.server));
    merged
}

/// The transport of a server, with fingerprints in place of secrets.
fn identity_key(server: &ImportedServer) -> Vec<String> {
    let mut settings = server.settings.clone();
    for secret in &server.secrets {
        rename_variable(&mut settings, &secret.variable, &format!("_{}", secret.fingerprint));
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
        let ImportedServer { name, settings, notes, secrets } = server;
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
            let prefixed = to_variable_name(&[name, &variable]);
            let numbered = (2_u32..).map(|number| format!("{prefixed}_{number}"));
            let new_variable = std::iter::once(prefixed.clone()).chain(numbered).find(|name| !is_taken(name));
            let new_variable = new_variable.unwrap_or(prefixed);
            rename_variable(settings, &variable, &new_variable);
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

fn rename_variable(settings: &mut ServerSettings, old: &str, new: &str) {
    for text in templates_mut(settings) {
        let Ok(mut template) = Template::parse(text) else { continue };
        for piece in &mut template.pieces {
            if let Piece::Reference { variable, .. } = piece
                && variable == old
            {
                new.clone_into(variable);
            }
        }
        *text = template.to_string();
    }
}
