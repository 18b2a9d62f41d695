//! [`ContentIndex`]: the prompts, resources and skills of all servers as one list of each kind, and which server owns what.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use serde_json::Value;
use toolyard_core::{RawJson, SourceId, escape_unsafe};
use toolyard_mcp::{FieldEdit, edit_fields, raw_field, text_field};
use toolyard_mcp_client::ServerContent;

use super::{MAX_URI_BYTES, is_within, uri_template::UriTemplate};
use crate::naming::{
    prompt_names::assign_prompt_names,
    skill_uris::{assign_skill_uris, skill_folder},
};

/// Further skills of a server are not listed.
const MAX_SKILLS_PER_SERVER: usize = 1_000;
/// `_meta` key of a skill: the server it comes from.
const SERVER_META_KEY: &str = "toolyard/server";
/// `_meta` key of a skill: why its URI differs from the server's.
const NOTE_META_KEY: &str = "toolyard/note";

#[derive(Debug, Default)]
pub(super) struct ContentIndex {
    servers: Vec<(SourceId, Arc<ServerContent>)>,
    local_folders: Vec<String>,
    pub(super) prompts: Vec<RawJson>,
    pub(super) resources: Vec<RawJson>,
    pub(super) templates: Vec<RawJson>,
    pub(super) skills: Vec<RawJson>,
    /// Content that is not listed, or listed under another URI.
    pub(super) warnings: Vec<String>,
    /// Prompts by exposed name: index of the server, and the name there.
    prompt_owners: HashMap<String, (usize, String)>,
    /// Servers of listed resources, by URI.
    resource_owners: HashMap<String, usize>,
    template_owners: Vec<(UriTemplate, usize)>,
    /// Folders of skills, longest URI first.
    skill_folders: Vec<SkillFolder>,
}

#[derive(Debug)]
struct SkillFolder {
    /// The URI that clients see.
    exposed: String,
    /// Index of the server.
    server: usize,
    /// The URI on the server.
    own: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContentRoute {
    pub(super) server: SourceId,
    /// The URI on the server.
    pub(super) uri: String,
    /// Set if the URI belongs to a skill that is exposed under another URI.
    pub(super) relocation: Option<Relocation>,
}

/// A skill folder that is exposed under another URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Relocation {
    /// The folder URI that clients see.
    pub(super) exposed: String,
    /// The folder URI on the server.
    pub(super) own: String,
}

impl ContentIndex {
    pub(super) fn new(servers: Vec<(SourceId, Arc<ServerContent>)>, local_folders: Vec<String>) -> Self {
        let mut index = Self { servers, local_folders, ..Self::default() };
        let servers = index.servers.clone();
        index.add_prompts(&servers);
        index.add_skills(&servers);
        index.add_resources(&servers);
        index.add_templates(&servers);
        index
    }

    pub(super) fn is_built_from(
        &self,
        servers: &[(SourceId, Arc<ServerContent>)],
        local_folders: &[String],
    ) -> bool {
        self.local_folders == local_folders
            && self.servers.len() == servers.len()
            && self
                .servers
                .iter()
                .zip(servers)
                .all(|((id, content), (other, current))| id == other && Arc::ptr_eq(content, current))
    }

    /// The server of a prompt, and the prompt's name there.
    pub(super) fn prompt(&self, name: &str) -> Option<(&SourceId, &str)> {
        let (server, own) = self.prompt_owners.get(name)?;
        Some((self.server(*server)?, own))
    }

    /// The server that owns a URI: the one whose skill it belongs to, that lists it, whose template matches best, or the only
    /// one with resources. None for URIs of local skills.
    pub(super) fn route(&self, uri: &str) -> Option<ContentRoute> {
        if self.is_local(uri) {
            return None;
        }
        if let Some(SkillFolder { exposed, server, own }) = self.skill_folder_of(uri) {
            let inside = uri.get(exposed.len()..).unwrap_or_default();
            let own_uri = if inside.is_empty() && !uri.ends_with('/') {
                own.trim_end_matches('/').to_owned()
            } else {
                format!("{own}{inside}")
            };
            let relocation =
                (exposed != own).then(|| Relocation { exposed: exposed.clone(), own: own.clone() });
            return Some(ContentRoute { server: self.server(*server)?.clone(), uri: own_uri, relocation });
        }
        let listing_server = self.resource_owners.get(uri).copied();
        let server =
            listing_server.or_else(|| self.best_template(uri)).or_else(|| self.only_resource_server())?;
        Some(ContentRoute { server: self.server(server)?.clone(), uri: uri.to_owned(), relocation: None })
    }

    /// The server that lists this resource template.
    pub(super) fn template_server(&self, template: &str) -> Option<&SourceId> {
        let has_template = |content: &ServerContent| {
            content
                .templates
                .iter()
                .any(|entry| text_field(entry, "uriTemplate", MAX_URI_BYTES).as_deref() == Some(template))
        };
        self.servers.iter().find(|(_, content)| has_template(content)).map(|(id, _)| id)
    }

    /// The server with the most specific matching template; the first one of equals.
    fn best_template(&self, uri: &str) -> Option<usize> {
        let matching = self.template_owners.iter().filter(|(template, _)| template.matches(uri));
        matching
            .max_by_key(|(template, server)| (template.literal_bytes(), Reverse(*server)))
            .map(|(_, server)| *server)
    }

    fn only_resource_server(&self) -> Option<usize> {
        let mut servers = self.servers.iter().enumerate().filter(|(_, (_, content))| content.has_resources);
        let (server, _) = servers.next()?;
        servers.next().is_none().then_some(server)
    }

    fn server(&self, index: usize) -> Option<&SourceId> {
        self.servers.get(index).map(|(id, _)| id)
    }

    fn is_local(&self, uri: &str) -> bool {
        self.local_folders.iter().any(|folder| is_within(uri, folder))
    }

    /// The innermost exposed skill folder that contains a URI.
    fn skill_folder_of(&self, uri: &str) -> Option<&SkillFolder> {
        self.skill_folders.iter().find(|folder| is_within(uri, &folder.exposed))
    }

    fn add_prompts(&mut self, servers: &[(SourceId, Arc<ServerContent>)]) {
        let mut prompts: Vec<(usize, String, &RawJson)> = Vec::new();
        for (server, (_, content)) in servers.iter().enumerate() {
            let mut seen = HashSet::new();
            for prompt in &content.prompts {
                let name = text_field(prompt, "name", MAX_URI_BYTES).unwrap_or_default();
                if seen.insert(name.clone()) {
                    prompts.push((server, name, prompt));
                }
            }
        }
        let ids: Vec<&str> = servers.iter().map(|(id, _)| id.as_str()).collect();
        let pairs: BTreeSet<(&str, &str)> = prompts
            .iter()
            .filter_map(|(server, name, _)| Some((*ids.get(*server)?, name.as_str())))
            .collect();
        let names = assign_prompt_names(&pairs, &ids.iter().copied().collect());
        for (server, own, prompt) in &prompts {
            let Some(name) = ids.get(*server).and_then(|id| names.get(&(*id, own.as_str()))) else {
                continue;
            };
            self.prompts.push(renamed_prompt(prompt, own, name));
            self.prompt_owners.insert(name.clone(), (*server, own.clone()));
        }
    }

    fn add_skills(&mut self, servers: &[(SourceId, Arc<ServerContent>)]) {
        let mut skills: Vec<(usize, String, &RawJson)> = Vec::new();
        for (server, (_, content)) in servers.iter().enumerate() {
            for skill in content.skills.iter().take(MAX_SKILLS_PER_SERVER) {
                let uri = text_field(skill, "uri", MAX_URI_BYTES).unwrap_or_default();
                skills.extend(skill_folder(&uri).map(|folder| (server, folder.to_owned(), skill)));
            }
        }
        let ids: Vec<&str> = servers.iter().map(|(id, _)| id.as_str()).collect();
        let pairs: Vec<(&str, &str)> = skills
            .iter()
            .map(|(server, folder, _)| (ids.get(*server).copied().unwrap_or_default(), folder.as_str()))
            .collect();
        let uris = assign_skill_uris(&pairs, &ids.iter().copied().collect(), &self.local_folders);
        for ((server, _, skill), uri) in skills.into_iter().zip(uris) {
            let id = ids.get(server).copied().unwrap_or_default();
            let own = escape_unsafe(&uri.own).into_owned();
            let Some(exposed) = uri.exposed else {
                self.warn(format!("skill {own} of server `{id}` is not listed: another skill has this URI"));
                continue;
            };
            let note = (exposed != uri.own)
                .then(|| format!("{own} is another skill here; this one is of the server {id}"));
            if note.is_some() {
                self.warn(format!(
                    "skill {own} of server `{id}` is listed as {exposed}: another skill has this URI"
                ));
            }
            self.skills.push(exposed_skill(skill, id, &uri.own, &exposed, note.as_deref()));
            self.skill_folders.push(SkillFolder { exposed, server, own: uri.own });
        }
        self.skill_folders.sort_by_key(|folder| Reverse(folder.exposed.len()));
    }

    fn add_resources(&mut self, servers: &[(SourceId, Arc<ServerContent>)]) {
        for (server, (id, content)) in servers.iter().enumerate() {
            for resource in &content.resources {
                let Some(uri) = text_field(resource, "uri", MAX_URI_BYTES) else { continue };
                // Files of a relocated skill are found through the skill.
                if self.is_relocated(server, &uri) || self.resource_owners.get(&uri) == Some(&server) {
                    continue;
                }
                match self.owner(&uri).filter(|owner| owner != id.as_str()) {
                    None => {
                        self.resource_owners.insert(uri, server);
                        self.resources.push(resource.clone());
                    }
                    Some(owner) => {
                        let uri = escape_unsafe(&uri);
                        self.warn(format!(
                            "resource {uri} of server `{id}` is not listed: `{owner}` has this URI"
                        ));
                    }
                }
            }
        }
    }

    fn add_templates(&mut self, servers: &[(SourceId, Arc<ServerContent>)]) {
        let mut owners: BTreeMap<String, &SourceId> = BTreeMap::new();
        for (server, (id, content)) in servers.iter().enumerate() {
            for entry in &content.templates {
                let Some(text) = text_field(entry, "uriTemplate", MAX_URI_BYTES) else { continue };
                let shown = escape_unsafe(&text);
                let Some(template) = UriTemplate::parse(&text) else {
                    self.warn(format!("resource template {shown} of server `{id}` is invalid"));
                    continue;
                };
                match owners.get(&text) {
                    Some(owner) if *owner != id => {
                        self.warn(format!(
                            "resource template {shown} of server `{id}` is not listed: `{owner}` has the same"
                        ));
                    }
                    Some(_) => {}
                    None => {
                        owners.insert(text, id);
                        self.template_owners.push((template, server));
                        self.templates.push(entry.clone());
                    }
                }
            }
        }
    }

    /// The owner of a URI so far: local skills, the server of a skill, or the server that listed it first.
    fn owner(&self, uri: &str) -> Option<String> {
        if self.is_local(uri) {
            return Some("local skills".to_owned());
        }
        let skill_server = self.skill_folder_of(uri).map(|folder| folder.server);
        let server = skill_server.or_else(|| self.resource_owners.get(uri).copied());
        server.and_then(|server| self.server(server)).map(ToString::to_string)
    }

    /// Whether a URI of this server belongs to a skill that is exposed under another URI.
    fn is_relocated(&self, server: usize, uri: &str) -> bool {
        self.skill_folders.iter().any(|folder| {
            folder.server == server
                && folder.exposed != folder.own
                && is_within(uri, &folder.own)
                && !is_within(uri, &folder.exposed)
        })
    }

    fn warn(&mut self, warning: String) {
        tracing::warn!("{warning}");
        self.warnings.push(warning);
    }
}

fn renamed_prompt(prompt: &RawJson, own: &str, name: &str) -> RawJson {
    if own == name {
        return prompt.clone();
    }
    let rename = |key: &str, _: &RawJson| {
        if key == "name" { FieldEdit::Text(name.to_owned()) } else { FieldEdit::Keep }
    };
    edit_fields(prompt, rename).to_raw()
}

/// A skill under its exposed URI, with its server in `_meta`.
fn exposed_skill(skill: &RawJson, server: &str, own: &str, exposed: &str, note: Option<&str>) -> RawJson {
    let meta = raw_field(skill, "_meta").unwrap_or_else(RawJson::empty_object);
    let mut meta = edit_fields(&meta, |key, _| {
        if key == SERVER_META_KEY || key == NOTE_META_KEY { FieldEdit::Remove } else { FieldEdit::Keep }
    })
    .with_text(SERVER_META_KEY, server);
    if let Some(note) = note {
        meta = meta.with_text(NOTE_META_KEY, note);
    }
    let entry = edit_fields(skill, |key, value| match key {
        "_meta" => FieldEdit::Remove,
        "uri" | "resources" if own != exposed => FieldEdit::Raw(relocate_uris(value, own, exposed)),
        _ => FieldEdit::Keep,
    });
    entry.with_object("_meta", &meta).to_raw()
}

/// Moves every URI below one folder to another: the JSON itself if it is a string, and strings in fields named `uri`.
pub(super) fn relocate_uris(json: &RawJson, from: &str, to: &str) -> RawJson {
    let mut value = json.to_value();
    let is_uri = true;
    relocate_value(&mut value, from, to, is_uri);
    RawJson::from_value(&value)
}

fn relocate_value(value: &mut Value, from: &str, to: &str, is_uri: bool) {
    match value {
        Value::String(uri) if is_uri && is_within(uri, from) => {
            let inside = uri.get(from.len()..).unwrap_or_default();
            let folder = if uri.len() < from.len() { to.trim_end_matches('/') } else { to };
            *uri = format!("{folder}{inside}");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| relocate_value(item, from, to, false)),
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(key, value)| relocate_value(value, from, to, key == "uri"));
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "content_index_tests.rs"]
mod tests;
