//! What all servers offer besides tools as one list of each kind, and who answers for what.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use toolyard_core::{RawJson, SourceId, shown};

use super::{
    names::offered_names,
    pattern::Pattern,
    skill_folders::{folder, place},
};
use crate::{
    client::Offer,
    wire::{Edit, edited, field_of, text_of},
};

/// A longer name or address is none.
const LONGEST: usize = 8 << 10;
/// More skills of one server are not offered.
const MOST_SKILLS: usize = 1_000;
/// Where an entry says which server it comes from.
const ORIGIN: &str = "toolyard/server";
/// Where an entry says what one should know about it.
const NOTE: &str = "toolyard/note";

/// What all servers offer besides tools.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// What it was made from.
    pub(super) offers: Vec<(SourceId, Arc<Offer>)>,
    /// The folders of skills of this machine.
    pub(super) local: Vec<String>,
    pub(super) prompts: Vec<RawJson>,
    pub(super) resources: Vec<RawJson>,
    pub(super) templates: Vec<RawJson>,
    pub(super) skills: Vec<RawJson>,
    /// What is not offered as one might expect.
    pub(super) warnings: Vec<String>,
    names: HashMap<String, (usize, String)>,
    addresses: HashMap<String, usize>,
    patterns: Vec<(Pattern, usize)>,
    /// Folders of skills as they are offered, longest first, and as they are on their servers.
    folders: Vec<(String, usize, String)>,
}

/// Who answers for an address, and under which address there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) server: SourceId,
    pub(super) address: String,
    /// The folder as it is offered and as it is on the server, where the two differ.
    pub(super) moved: Option<(String, String)>,
}

impl Index {
    pub(super) fn new(offers: Vec<(SourceId, Arc<Offer>)>, local: Vec<String>) -> Self {
        let mut index = Self { offers, local, ..Self::default() };
        let offers = index.offers.clone();
        index.add_prompts(&offers);
        index.add_skills(&offers);
        index.add_resources(&offers);
        index.add_templates(&offers);
        index
    }

    /// Whether it was made from these very things.
    pub(super) fn is_of(&self, offers: &[(SourceId, Arc<Offer>)], local: &[String]) -> bool {
        self.local == local
            && self.offers.len() == offers.len()
            && self
                .offers
                .iter()
                .zip(offers)
                .all(|((id, offer), (other, now))| id == other && Arc::ptr_eq(offer, now))
    }

    /// The server of a prompt and what it is called there.
    pub(super) fn prompt(&self, name: &str) -> Option<(&SourceId, &str)> {
        let (server, own) = self.names.get(name)?;
        Some((self.server(*server)?, own))
    }

    /// Who answers for an address: whose skill it belongs to, who lists it, whose template it fits best, or whoever is the
    /// only one to have resources at all.
    pub(super) fn route(&self, address: &str) -> Option<Route> {
        if self.local.iter().any(|folder| is_within(address, folder)) {
            return None;
        }
        if let Some((offered, server, own)) =
            self.folders.iter().find(|(folder, ..)| is_within(address, folder))
        {
            let inside = address.get(offered.len()..).unwrap_or_default();
            // The folder itself is written without the slash at its end.
            let own_address = if inside.is_empty() && !address.ends_with('/') {
                own.trim_end_matches('/').to_owned()
            } else {
                format!("{own}{inside}")
            };
            let moved = (offered != own).then(|| (offered.clone(), own.clone()));
            return Some(Route { server: self.server(*server)?.clone(), address: own_address, moved });
        }
        let listed = self.addresses.get(address).copied();
        let server = listed.or_else(|| self.fitting(address)).or_else(|| self.only_one())?;
        Some(Route { server: self.server(server)?.clone(), address: address.to_owned(), moved: None })
    }

    /// The server with a template written exactly like this.
    pub(super) fn template(&self, template: &str) -> Option<&SourceId> {
        let has = |offer: &Offer| {
            offer
                .templates
                .iter()
                .any(|entry| text_of(entry, "uriTemplate", LONGEST).as_deref() == Some(template))
        };
        self.offers.iter().find(|(_, offer)| has(offer)).map(|(id, _)| id)
    }

    fn fitting(&self, address: &str) -> Option<usize> {
        let fitting = self.patterns.iter().filter(|(pattern, _)| pattern.fits(address));
        // Of equals the first server counts.
        fitting
            .max_by_key(|(pattern, server)| (pattern.literal(), usize::MAX - server))
            .map(|(_, server)| *server)
    }

    fn only_one(&self) -> Option<usize> {
        let mut all = self.offers.iter().enumerate().filter(|(_, (_, offer))| offer.has_resources);
        let (server, _) = all.next()?;
        all.next().is_none().then_some(server)
    }

    fn server(&self, number: usize) -> Option<&SourceId> {
        self.offers.get(number).map(|(id, _)| id)
    }

    fn add_prompts(&mut self, offers: &[(SourceId, Arc<Offer>)]) {
        let mut all: Vec<(usize, String, &RawJson)> = Vec::new();
        for (server, (_, offer)) in offers.iter().enumerate() {
            let mut seen = HashSet::new();
            for prompt in &offer.prompts {
                let name = text_of(prompt, "name", LONGEST).unwrap_or_default();
                if seen.insert(name.clone()) {
                    all.push((server, name, prompt));
                }
            }
        }
        let ids: Vec<&str> = offers.iter().map(|(id, _)| id.as_str()).collect();
        let pairs: BTreeSet<(&str, &str)> =
            all.iter().filter_map(|(server, name, _)| Some((*ids.get(*server)?, name.as_str()))).collect();
        let names = offered_names(&pairs, &ids.iter().copied().collect());
        for (server, own, prompt) in &all {
            let Some(name) = ids.get(*server).and_then(|id| names.get(&(*id, own.as_str()))) else {
                continue;
            };
            self.prompts.push(renamed(prompt, own, name));
            self.names.insert(name.clone(), (*server, own.clone()));
        }
    }

    fn add_skills(&mut self, offers: &[(SourceId, Arc<Offer>)]) {
        let mut all: Vec<(usize, String, &RawJson)> = Vec::new();
        for (server, (_, offer)) in offers.iter().enumerate() {
            for skill in offer.skills.iter().take(MOST_SKILLS) {
                let address = text_of(skill, "uri", LONGEST).unwrap_or_default();
                all.extend(folder(&address).map(|folder| (server, folder.to_owned(), skill)));
            }
        }
        let ids: Vec<&str> = offers.iter().map(|(id, _)| id.as_str()).collect();
        let pairs: Vec<(&str, &str)> = all
            .iter()
            .map(|(server, folder, _)| (ids.get(*server).copied().unwrap_or_default(), folder.as_str()))
            .collect();
        let placed = place(&pairs, &ids.iter().copied().collect(), &self.local);
        for ((server, _, skill), placed) in all.into_iter().zip(placed) {
            let id = ids.get(server).copied().unwrap_or_default();
            let Some(offered) = placed.offered else {
                self.warn(format!(
                    "a skill of {id} is not offered, its address is taken: {}",
                    shown(&placed.own)
                ));
                continue;
            };
            let note = (offered != placed.own).then(|| {
                format!("{} is another skill here; this one is of the server {id}", shown(&placed.own))
            });
            if let Some(note) = &note {
                self.warn(format!("a skill of {id} is offered at {offered}: {note}"));
            }
            self.skills.push(moved_skill(skill, id, &placed.own, &offered, note.as_deref()));
            self.folders.push((offered, server, placed.own));
        }
        // The innermost folder knows best.
        self.folders.sort_by_key(|(folder, ..)| std::cmp::Reverse(folder.len()));
    }

    fn add_resources(&mut self, offers: &[(SourceId, Arc<Offer>)]) {
        for (server, (id, offer)) in offers.iter().enumerate() {
            for resource in &offer.resources {
                let Some(address) = text_of(resource, "uri", LONGEST) else { continue };
                // A file of a skill that is offered elsewhere is found with that skill.
                if self.is_moved(server, &address) || self.addresses.get(&address) == Some(&server) {
                    continue;
                }
                match self.owner(&address).filter(|owner| owner != id.as_str()) {
                    None => {
                        self.addresses.insert(address, server);
                        self.resources.push(resource.clone());
                    }
                    Some(owner) => {
                        self.warn(format!(
                            "{} of {id} is not offered: {owner} has that address",
                            shown(&address)
                        ));
                    }
                }
            }
        }
    }

    fn add_templates(&mut self, offers: &[(SourceId, Arc<Offer>)]) {
        let mut owners: BTreeMap<String, &SourceId> = BTreeMap::new();
        for (server, (id, offer)) in offers.iter().enumerate() {
            for entry in &offer.templates {
                let Some(template) = text_of(entry, "uriTemplate", LONGEST) else { continue };
                let Some(pattern) = Pattern::read(&template) else {
                    self.warn(format!("the template {} of {id} cannot be read", shown(&template)));
                    continue;
                };
                match owners.get(&template) {
                    Some(owner) if *owner != id => {
                        self.warn(format!(
                            "{} of {id} is not offered: {owner} has that template",
                            shown(&template)
                        ));
                    }
                    Some(_) => {}
                    None => {
                        owners.insert(template, id);
                        self.patterns.push((pattern, server));
                        self.templates.push(entry.clone());
                    }
                }
            }
        }
    }

    /// Who has an address already: this machine, the server of a skill, or whoever listed it first.
    fn owner(&self, address: &str) -> Option<String> {
        if self.local.iter().any(|folder| is_within(address, folder)) {
            return Some("this machine".to_owned());
        }
        let folder = self.folders.iter().find(|(folder, ..)| is_within(address, folder));
        let server = folder.map(|(_, server, _)| *server).or_else(|| self.addresses.get(address).copied());
        server.and_then(|server| self.server(server)).map(ToString::to_string)
    }

    /// Whether an address is that of a skill of this server on the server, and the skill is offered elsewhere.
    fn is_moved(&self, server: usize, address: &str) -> bool {
        self.folders.iter().any(|(offered, owner, own)| {
            *owner == server && offered != own && is_within(address, own) && !is_within(address, offered)
        })
    }

    fn warn(&mut self, warning: String) {
        tracing::warn!("{warning}");
        self.warnings.push(warning);
    }
}

/// Whether an address is a folder or something in it.
fn is_within(address: &str, folder: &str) -> bool {
    address.starts_with(folder) || folder.strip_suffix('/') == Some(address)
}

/// A prompt under another name.
fn renamed(prompt: &RawJson, own: &str, name: &str) -> RawJson {
    if own == name {
        return prompt.clone();
    }
    let rename =
        |key: &str, _: &RawJson| if key == "name" { Edit::Text(name.to_owned()) } else { Edit::Keep };
    edited(prompt, rename).to_raw()
}

/// A skill's entry with the addresses it is offered under, and with where it comes from.
fn moved_skill(skill: &RawJson, server: &str, own: &str, offered: &str, note: Option<&str>) -> RawJson {
    let meta = field_of(skill, "_meta").unwrap_or_else(RawJson::empty_object);
    let mut meta =
        edited(&meta, |key, _| if key == ORIGIN || key == NOTE { Edit::Leave } else { Edit::Keep })
            .with_text(ORIGIN, server);
    if let Some(note) = note {
        meta = meta.with_text(NOTE, note);
    }
    let entry = edited(skill, |key, value| match key {
        "_meta" => Edit::Leave,
        "uri" | "resources" if own != offered => Edit::Raw(moved(value, own, offered)),
        _ => Edit::Keep,
    });
    entry.with_object("_meta", &meta).to_raw()
}

/// The same JSON with every address below one folder moved to another: texts that stand under `uri`, or alone.
pub(super) fn moved(json: &RawJson, from: &str, to: &str) -> RawJson {
    let mut value = json.to_value();
    move_addresses(&mut value, from, to, true);
    RawJson::from_value(&value)
}

fn move_addresses(value: &mut serde_json::Value, from: &str, to: &str, is_address: bool) {
    use serde_json::Value;
    match value {
        Value::String(text) if is_address && is_within(text, from) => {
            let inside = text.get(from.len()..).unwrap_or_default();
            let folder = if text.len() < from.len() { to.trim_end_matches('/') } else { to };
            *text = format!("{folder}{inside}");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| move_addresses(item, from, to, false)),
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(key, value)| move_addresses(value, from, to, key == "uri"));
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
