//! Plans an import into `toolyard.toml` without writing it.

use std::collections::{BTreeMap, HashMap};

use super::{
    EditError, ServerSettings,
    import::{MergedServer, ServerOrigin},
    secrets,
    settings_file::{parse, put_server, server_table, servers},
};

/// What to do when a name is used by a different server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ConflictPolicy {
    /// Keep the existing server.
    #[default]
    Keep,
    /// Replace its transport and withdraw trust; keep the operator's other settings.
    Replace,
}

/// The effects of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportPlan {
    /// New servers.
    pub added: Vec<PlannedServer>,
    /// Servers that exist with the same transport, under their existing names.
    pub existing: Vec<PlannedServer>,
    /// Servers whose name is used by a different server.
    pub conflicting: Vec<ConflictingServer>,
    /// Servers that are not imported.
    pub skipped: Vec<SkippedServer>,
    /// The new text of `toolyard.toml`.
    pub text: String,
}

/// A server of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedServer {
    /// Its name in `toolyard.toml`.
    pub name: String,
    /// Where it was found.
    pub found_in: Vec<ServerOrigin>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// A server whose name is used by a different server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictingServer {
    /// The server.
    pub server: PlannedServer,
    /// Changed lines, with `-` for existing and `+` for imported values, without secrets.
    pub diff: Vec<String>,
}

/// A server that is not imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedServer {
    /// Its name.
    pub name: String,
    /// Why it is skipped.
    pub reason: &'static str,
}

/// Plans an import into the text of a `toolyard.toml`, which may be empty.
pub fn plan_import(
    text: &str,
    imported: &[MergedServer],
    conflict_policy: ConflictPolicy,
) -> Result<ImportPlan, EditError> {
    let mut document = parse(text)?;
    let existing_servers = configured_servers(&document);
    let by_transport: HashMap<TransportKey, &str> = existing_servers
        .iter()
        .filter_map(|(name, settings)| Some((transport_key(settings.as_ref()?), name.as_str())))
        .collect();
    let mut plan = ImportPlan {
        added: Vec::new(),
        existing: Vec::new(),
        conflicting: Vec::new(),
        skipped: Vec::new(),
        text: text.to_owned(),
    };
    let mut is_changed = false;
    for MergedServer { server, found_in } in imported {
        let planned = |name: &str| PlannedServer {
            name: name.to_owned(),
            found_in: found_in.clone(),
            notes: server.notes.clone(),
        };
        if is_toolyard(&server.name, &server.settings) {
            let reason = "is Toolyard itself";
            plan.skipped.push(SkippedServer { name: server.name.clone(), reason });
        } else if let Some(name) = by_transport.get(&transport_key(&server.settings)) {
            plan.existing.push(planned(name));
        } else if let Some(old) = existing_servers.get(&server.name) {
            let diff = difference(old.as_ref(), &server.settings);
            plan.conflicting.push(ConflictingServer { server: planned(&server.name), diff });
            if conflict_policy == ConflictPolicy::Replace {
                put_server(
                    &mut document,
                    &server.name,
                    &with_operator_settings(old.as_ref(), &server.settings),
                )?;
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

/// The servers of a document; `None` for an invalid one.
fn configured_servers(document: &toml_edit::DocumentMut) -> BTreeMap<String, Option<ServerSettings>> {
    let Some(servers) = servers(document) else { return BTreeMap::new() };
    let read = |item: &toml_edit::Item| {
        let table = item.clone().into_table().ok()?;
        toml::from_str(&toml_edit::DocumentMut::from(table).to_string()).ok()
    };
    servers.iter().map(|(name, item)| (name.to_owned(), read(item))).collect()
}

type TransportKey = (Option<String>, Vec<String>, Option<String>, Option<String>, Vec<(String, String)>);

/// The transport, which identifies a server.
fn transport_key(settings: &ServerSettings) -> TransportKey {
    let ServerSettings { command, args, cwd, url, env, headers, .. } = settings.clone();
    let url = url.map(|url| url.trim_end_matches('/').to_owned());
    (command, args, cwd, url, env.into_iter().chain(headers).collect())
}

/// The imported settings with the operator's settings of the existing server.
fn with_operator_settings(old: Option<&ServerSettings>, new: &ServerSettings) -> ServerSettings {
    let Some(old) = old else { return new.clone() };
    ServerSettings {
        enabled: old.enabled,
        // Trust was given to the replaced server.
        trusted: false,
        exclusive: old.exclusive,
        stateless: old.stateless,
        hold_new_tools: old.hold_new_tools,
        revision: None,
        idle_stop: old.idle_stop,
        startup_timeout: new.startup_timeout.or(old.startup_timeout),
        call_timeout: new.call_timeout.or(old.call_timeout),
        tools: old.tools.clone().or_else(|| new.tools.clone()),
        without_tools: old.without_tools.iter().chain(&new.without_tools).cloned().collect(),
        ..new.clone()
    }
}

/// Clients that are connected to Toolyard list it among their servers.
fn is_toolyard(name: &str, settings: &ServerSettings) -> bool {
    let program = settings.command.as_deref().unwrap_or_default();
    let program = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let starts_us = program.strip_suffix(".exe").unwrap_or(program) == "toolyard";
    // What `toolyard connect --http` writes: a URL with our name or our token.
    let has_our_token = settings.headers.values().any(|value| value.contains("${TOOLYARD_TOKEN}"));
    starts_us || (settings.url.is_some() && (name == "toolyard" || has_our_token))
}

fn difference(old: Option<&ServerSettings>, new: &ServerSettings) -> Vec<String> {
    let Some(old) = old else { return vec!["the existing entry is invalid".to_owned()] };
    let (old, new) = (redacted_fields(old), redacted_fields(new));
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

/// The values as TOML by field, without secrets.
fn redacted_fields(settings: &ServerSettings) -> BTreeMap<String, String> {
    let mut settings = settings.clone();
    let secrets = secrets::extract_secrets(&mut settings, "secret");
    let mut fields = BTreeMap::new();
    for (field, item) in &server_table(&settings) {
        match item.as_table() {
            Some(table) => fields.extend(
                table
                    .iter()
                    .map(|(name, item)| (format!("{field}.{name}"), item.to_string().trim().to_owned())),
            ),
            None => {
                fields.insert(field.to_owned(), item.to_string().trim().to_owned());
            }
        }
    }
    for secret in secrets {
        let reference = format!("${{{}}}", secret.variable);
        let field = secret.field.split('[').next().unwrap_or_default();
        if let Some(value) = fields.get_mut(field) {
            *value = value.replace(&reference, "[secret]");
        }
    }
    fields
}

#[cfg(test)]
#[path = "import_plan_tests.rs"]
mod tests;
