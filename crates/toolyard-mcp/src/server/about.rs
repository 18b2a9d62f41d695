//! What the server says about itself, in both eras, and what clients say when they introduce themselves.

use std::time::SystemTime;

use serde_json::{Map, Value, json};
use toolyard_core::{RawJson, Viewer};

use super::{
    McpServer, ServedEras,
    answer::Outcome,
    params::Params,
    room::Room,
    session::seconds,
    speaker::{ClientOffers, Era, LEGACY, MODERN, Speaker, client_name, fields, negotiated, text_field},
};
use crate::wire::CacheScope;

/// The extension by which one tool's definition can be asked for: `tools/describe`.
pub(super) const DESCRIBE: &str = "toolyard/describe";
pub(super) const SKILLS: &str = "io.modelcontextprotocol/skills";

impl McpServer {
    /// The revisions that are spoken here, newest first.
    pub(super) fn versions(&self) -> Vec<&'static str> {
        let modern = (self.config.eras != ServedEras::Legacy).then_some(MODERN);
        let legacy = if self.config.eras == ServedEras::Modern { [].as_slice() } else { &LEGACY };
        modern.into_iter().chain(legacy.iter().copied()).collect()
    }

    /// The result of `initialize`, and who it is that introduced itself.
    pub(super) fn introduce(&self, room: &Room, params: &Params) -> (Outcome, Speaker) {
        let raw = params.raw.clone().unwrap_or_else(RawJson::empty_object);
        let (mut capabilities, mut client) = (RawJson::empty_object(), None);
        // What was read before a fault counts.
        let _ = fields(raw.get(), |key, value| {
            match key {
                "capabilities" => capabilities = raw.part(value),
                "clientInfo" => client = text_field(value.get(), "name").and_then(|name| client_name(&name)),
                _ => {}
            }
            Ok(())
        });
        let version = text_field(raw.get(), "protocolVersion");
        let speaker = Speaker {
            version: negotiated(version.as_deref().unwrap_or_default()),
            who: client.as_deref().unwrap_or("an MCP client").into(),
            viewer: Viewer { client },
            offers: ClientOffers::read(&capabilities),
            capabilities: None,
            conversation: fastrand::u64(..),
            since: Some(seconds(SystemTime::now())),
        };
        let mut result = json!({
            "protocolVersion": speaker.version,
            "capabilities": self.capabilities(room, Era::Legacy),
            "serverInfo": self.info(speaker.speaks("2025-06-18")),
        });
        if let (Some(instructions), Some(result)) = (&self.config.instructions, result.as_object_mut()) {
            result.insert("instructions".to_owned(), instructions.as_str().into());
        }
        (Outcome::result(result.to_string()), speaker)
    }

    /// The result of `server/discover`.
    pub(super) fn discovered(&self, room: &Room) -> Outcome {
        let mut result = json!({
            "resultType": "complete",
            "supportedVersions": self.versions(),
            "capabilities": self.capabilities(room, Era::Modern),
            "ttlMs": self.ttl(),
            "cacheScope": self.scope(),
            "_meta": {"io.modelcontextprotocol/serverInfo": self.info(true)},
        });
        if let (Some(instructions), Some(result)) = (&self.config.instructions, result.as_object_mut()) {
            result.insert("instructions".to_owned(), instructions.as_str().into());
        }
        Outcome::result(result.to_string())
    }

    pub(super) fn ttl(&self) -> u64 {
        u64::try_from(self.config.ttl.as_millis()).unwrap_or(u64::MAX)
    }

    pub(super) fn scope(&self) -> &'static str {
        match self.config.cache_scope {
            CacheScope::Public => "public",
            CacheScope::Private => "private",
        }
    }

    /// Who we are. Titles came with a later revision.
    pub(super) fn info(&self, with_title: bool) -> Value {
        let config = &self.config;
        match config.title.as_ref().filter(|_| with_title) {
            Some(title) => json!({"name": config.name, "title": title, "version": config.version}),
            None => json!({"name": config.name, "version": config.version}),
        }
    }

    /// What there is behind a door. Nothing is announced that is not there.
    fn capabilities(&self, room: &Room, era: Era) -> Value {
        let kinds = room.kinds();
        let changes = room.content_changes();
        let mut all = Map::new();
        all.insert("tools".to_owned(), json!({"listChanged": true}));
        // Tools of either era may say things while they work.
        all.insert("logging".to_owned(), json!({}));
        if kinds.prompts {
            all.insert("prompts".to_owned(), if changes { json!({"listChanged": true}) } else { json!({}) });
        }
        if kinds.resources || kinds.skills {
            let mut resources = Map::new();
            if kinds.subscriptions {
                resources.insert("subscribe".to_owned(), true.into());
            }
            if changes {
                resources.insert("listChanged".to_owned(), true.into());
            }
            all.insert("resources".to_owned(), resources.into());
        }
        if kinds.completions {
            all.insert("completions".to_owned(), json!({}));
        }
        let mut extensions = Map::new();
        extensions.insert(DESCRIBE.to_owned(), json!({}));
        if kinds.skills {
            extensions.insert(SKILLS.to_owned(), json!({"directoryRead": true}));
        }
        if era == Era::Legacy {
            // Where the revisions before extensions look for what they do not know.
            all.insert("experimental".to_owned(), json!({DESCRIBE: {}}));
        }
        all.insert("extensions".to_owned(), extensions.into());
        all.into()
    }
}
