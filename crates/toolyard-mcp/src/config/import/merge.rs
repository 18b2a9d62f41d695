//! Servers of several clients as one set: equal ones once, different ones of the same name told apart.

use std::collections::{BTreeMap, HashMap, HashSet};

use toolyard_core::ContentHash;

use super::{ImportedServer, Lifted};
use crate::config::{
    ServerSettings,
    draft::texts_mut,
    expand::{Piece, Template},
    free_name,
    name::variable_name,
};

/// A server and everywhere it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The server, under a name no other one of the set has.
    pub server: ImportedServer,
    /// Where it was found, in the words the caller had for it: `Claude Code`.
    pub from: Vec<String>,
}

/// Makes one set of what several files brought. Servers that are reached the same way, with the same secrets, are one;
/// the first one's settings count. Different ones of the same name get a number.
pub fn merge(files: impl IntoIterator<Item = (String, Vec<ImportedServer>)>) -> Vec<Merged> {
    let mut merged: Vec<Merged> = Vec::new();
    let mut by_reach: HashMap<Vec<String>, usize> = HashMap::new();
    let mut taken: HashSet<String> = HashSet::new();
    for (from, servers) in files {
        for mut server in servers {
            let found = by_reach.get(&reach(&server)).and_then(|number| merged.get_mut(*number));
            if let Some(same) = found {
                if !same.from.contains(&from) {
                    same.from.push(from.clone());
                }
                continue;
            }
            by_reach.insert(reach(&server), merged.len());
            server.name = free_name(&server.name, |name| taken.contains(name));
            taken.insert(server.name.clone());
            merged.push(Merged { server, from: vec![from.clone()] });
        }
    }
    tell_secrets_apart(merged.iter_mut().map(|merged| &mut merged.server));
    merged
}

/// What makes two servers the same one: how they are reached, with secrets compared by what they are and not by the
/// variables that stand for them.
fn reach(server: &ImportedServer) -> Vec<String> {
    let mut settings = server.settings.clone();
    for secret in &server.secrets {
        rename(&mut settings, &secret.variable, &format!("_{}", secret.mark));
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

/// One variable cannot stand for two secrets: the later one gets a variable with its server's name in it. So does one
/// whose variable another server refers to already.
pub(super) fn tell_secrets_apart<'a>(servers: impl Iterator<Item = &'a mut ImportedServer>) {
    let servers: Vec<&mut ImportedServer> = servers.collect();
    let referred: HashSet<String> = servers.iter().flat_map(|server| referred(server)).collect();
    let mut known: HashMap<String, ContentHash> = HashMap::new();
    for server in servers {
        let ImportedServer { name, settings, notes, secrets } = server;
        for number in 0..secrets.len() {
            let Some(Lifted { variable, mark, .. }) = secrets.get(number).cloned() else { continue };
            let is_other =
                |name: &str| referred.contains(name) || known.get(name).is_some_and(|known| *known != mark);
            if !is_other(&variable) {
                known.insert(variable, mark);
                continue;
            }
            let own = variable_name(&[name, &variable]);
            let numbered = (2_u32..).map(|number| format!("{own}_{number}"));
            let free = std::iter::once(own.clone()).chain(numbered).find(|name| !is_other(name));
            let free = free.unwrap_or(own);
            rename(settings, &variable, &free);
            let (old, new) = (format!("`{variable}`"), format!("`{free}`"));
            notes.iter_mut().for_each(|note| *note = note.replace(&old, &new));
            known.insert(free.clone(), mark);
            for secret in secrets.iter_mut().filter(|secret| secret.variable == variable) {
                secret.variable.clone_from(&free);
            }
        }
    }
}

/// The variables a server refers to in its own right.
fn referred(server: &ImportedServer) -> impl Iterator<Item = String> {
    let is_lifted = |name: &String| server.secrets.iter().any(|secret| secret.variable == *name);
    server.settings.variables().into_iter().filter(move |name| !is_lifted(name))
}

fn rename(settings: &mut ServerSettings, old: &str, new: &str) {
    for text in texts_mut(settings) {
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
