//! An import as a plan: what would be added, what is there already, what differs, and the text that would be written.

use std::collections::{BTreeMap, HashMap};

use super::{
    EditError, ServerSettings,
    edit::{parse, put_server, server_table, servers},
    import::Merged,
    secret,
};

/// What to do with a server whose name is there already for something else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnDifference {
    /// What is there stays.
    #[default]
    Keep,
    /// What is imported replaces it; trust and the other decisions of the operator stay.
    Replace,
}

/// What an import would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportPlan {
    /// Servers that are new.
    pub added: Vec<Planned>,
    /// Servers that are there already, reached the same way; by the name they have there.
    pub same: Vec<Planned>,
    /// Servers whose name is there for something else.
    pub different: Vec<Difference>,
    /// Servers that are not taken over, and why.
    pub skipped: Vec<Skipped>,
    /// The new text of `toolyard.toml`; the old one when nothing changes.
    pub text: String,
}

/// A server of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Its name in `toolyard.toml`.
    pub name: String,
    /// Where it was found.
    pub from: Vec<String>,
    /// What there is to say about it.
    pub notes: Vec<String>,
}

/// A server whose name is there for something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The server.
    pub server: Planned,
    /// Lines with `-` before what is there and `+` before what is imported; no secret stands in them.
    pub diff: Vec<String>,
}

/// A server that is not taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: &'static str,
}

/// Plans an import into the text of a `toolyard.toml`, which may be empty. Nothing is written.
pub fn plan_import(
    text: &str,
    imported: &[Merged],
    on_difference: OnDifference,
) -> Result<ImportPlan, EditError> {
    let mut document = parse(text)?;
    let old = existing(&document);
    let by_reach: HashMap<ContentKey, &str> = old
        .iter()
        .filter_map(|(name, settings)| Some((content_key(settings.as_ref()?), name.as_str())))
        .collect();
    let mut plan = ImportPlan {
        added: Vec::new(),
        same: Vec::new(),
        different: Vec::new(),
        skipped: Vec::new(),
        text: text.to_owned(),
    };
    let mut is_changed = false;
    for Merged { server, from } in imported {
        let planned =
            |name: &str| Planned { name: name.to_owned(), from: from.clone(), notes: server.notes.clone() };
        if is_toolyard(&server.name, &server.settings) {
            let reason = "it is Toolyard itself, which would ask itself for ever";
            plan.skipped.push(Skipped { name: server.name.clone(), reason });
        } else if let Some(name) = by_reach.get(&content_key(&server.settings)) {
            plan.same.push(planned(name));
        } else if let Some(old) = old.get(&server.name) {
            let diff = difference(old.as_ref(), &server.settings);
            plan.different.push(Difference { server: planned(&server.name), diff });
            if on_difference == OnDifference::Replace {
                put_server(&mut document, &server.name, &with_decisions(old.as_ref(), &server.settings))?;
                is_changed = true;
            }
        } else {
            put_server(&mut document, &server.name, &server.settings)?;
            plan.added.push(planned(&server.name));
            is_changed = true;
        }
    }
    if is_changed {
        plan.text = document.to_string();
    }
    Ok(plan)
}

/// The servers of a document; none for one that cannot be understood.
fn existing(document: &toml_edit::DocumentMut) -> BTreeMap<String, Option<ServerSettings>> {
    let Some(servers) = servers(document) else { return BTreeMap::new() };
    let read = |item: &toml_edit::Item| {
        let table = item.clone().into_table().ok()?;
        toml::from_str(&toml_edit::DocumentMut::from(table).to_string()).ok()
    };
    servers.iter().map(|(name, item)| (name.to_owned(), read(item))).collect()
}

type ContentKey = (Option<String>, Vec<String>, Option<String>, Option<String>, Vec<(String, String)>);

/// What makes it the same server: how it is reached.
fn content_key(settings: &ServerSettings) -> ContentKey {
    let ServerSettings { command, args, cwd, url, env, headers, .. } = settings.clone();
    let url = url.map(|url| url.trim_end_matches('/').to_owned());
    (command, args, cwd, url, env.into_iter().chain(headers).collect())
}

/// What is imported, with what only the operator decides taken from what is there.
fn with_decisions(old: Option<&ServerSettings>, new: &ServerSettings) -> ServerSettings {
    let Some(old) = old else { return new.clone() };
    ServerSettings {
        enabled: old.enabled,
        // Trust was given to what was there, not to what comes in its place.
        trusted: false,
        exclusive: old.exclusive,
        strict: old.strict,
        era: None,
        idle_stop: old.idle_stop,
        startup_timeout: new.startup_timeout.or(old.startup_timeout),
        call_timeout: new.call_timeout.or(old.call_timeout),
        tools: old.tools.clone().or_else(|| new.tools.clone()),
        without_tools: old.without_tools.iter().chain(&new.without_tools).cloned().collect(),
        ..new.clone()
    }
}

/// Clients that were connected to Toolyard have it among their servers.
fn is_toolyard(name: &str, settings: &ServerSettings) -> bool {
    let program = settings.command.as_deref().unwrap_or_default();
    let program = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let starts_us = program.strip_suffix(".exe").unwrap_or(program) == "toolyard";
    // An address with our name, or with our token: what `toolyard connect --http` writes.
    let has_our_token = settings.headers.values().any(|value| value.contains("${TOOLYARD_TOKEN}"));
    starts_us || (settings.url.is_some() && (name == "toolyard" || has_our_token))
}

/// A line for each field that differs.
fn difference(old: Option<&ServerSettings>, new: &ServerSettings) -> Vec<String> {
    let Some(old) = old else { return vec!["what is there cannot be understood".to_owned()] };
    let (old, new) = (lines(old), lines(new));
    let fields: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let mut diff = Vec::new();
    for field in fields {
        let (old, new) = (old.get(field), new.get(field));
        if old != new {
            diff.extend(old.map(|value| format!("- {field} = {value}")));
            diff.extend(new.map(|value| format!("+ {field} = {value}")));
        }
    }
    diff
}

/// Fields and their values as they would be written, with references in place of secrets.
fn lines(settings: &ServerSettings) -> BTreeMap<String, String> {
    let mut settings = settings.clone();
    let lifted = secret::lift(&mut settings, "secret");
    let mut lines = BTreeMap::new();
    for (field, item) in &server_table(&settings) {
        match item.as_table() {
            Some(table) => lines.extend(
                table
                    .iter()
                    .map(|(name, item)| (format!("{field}.{name}"), item.to_string().trim().to_owned())),
            ),
            None => {
                lines.insert(field.to_owned(), item.to_string().trim().to_owned());
            }
        }
    }
    for secret in lifted {
        let reference = format!("${{{}}}", secret.variable);
        let field = secret.place.split('[').next().unwrap_or_default();
        if let Some(line) = lines.get_mut(field) {
            *line = line.replace(&reference, "[a secret in this file]");
        }
    }
    lines
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
