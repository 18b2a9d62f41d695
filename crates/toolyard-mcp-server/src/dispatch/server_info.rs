//! The results of `initialize` and `server/discover`.

use std::time::SystemTime;

use serde_json::{Map, Value, json};
use toolyard_core::{ClientInfo, RawJson, RevisionFamily};
use toolyard_mcp::CacheScope;

use crate::{
    dispatch::{outcome::Outcome, params::Params, served_endpoint::ServedEndpoint},
    json_fields::{each_field, text_field},
    server::McpServer,
    session::{
        client_capabilities::ClientCapabilities,
        peer::{Peer, negotiate_revision, truncate_client_name},
        session_id::unix_seconds,
    },
};

/// The extension that adds `tools/describe`.
pub(crate) const DESCRIBE: &str = "toolyard/describe";
pub(crate) const SKILLS: &str = "io.modelcontextprotocol/skills";

impl McpServer {
    /// The result of `initialize`, and the client that sent it.
    pub(crate) fn initialize_peer(&self, endpoint: &ServedEndpoint, params: &Params) -> (Outcome, Peer) {
        let raw = params.raw.clone().unwrap_or_else(RawJson::empty_object);
        let (mut capabilities, mut client) = (RawJson::empty_object(), None);
        // Fields before a syntax error count.
        let _ = each_field(raw.get(), |key, value| {
            match key {
                "capabilities" => capabilities = raw.part(value),
                "clientInfo" => {
                    client = text_field(value.get(), "name").and_then(|name| truncate_client_name(&name));
                }
                _ => {}
            }
            Ok(())
        });
        let version = text_field(raw.get(), "protocolVersion");
        let peer = Peer {
            revision: negotiate_revision(version.as_deref().unwrap_or_default()),
            caller_name: client.as_deref().unwrap_or("an MCP client").into(),
            client: ClientInfo { name: client },
            capabilities: ClientCapabilities::read(&capabilities),
            raw_capabilities: None,
            session_key: fastrand::u64(..),
            initialized_at: Some(unix_seconds(SystemTime::now())),
        };
        let mut result = json!({
            "protocolVersion": peer.revision,
            "capabilities": self.capabilities(endpoint, RevisionFamily::Legacy),
            "serverInfo": self.info(peer.supports("2025-06-18")),
        });
        if let (Some(instructions), Some(result)) = (&self.config.instructions, result.as_object_mut()) {
            result.insert("instructions".to_owned(), instructions.as_str().into());
        }
        (Outcome::result(result.to_string()), peer)
    }

    /// The result of `server/discover`.
    pub(crate) fn discover(&self, endpoint: &ServedEndpoint) -> Outcome {
        let mut result = json!({
            "resultType": "complete",
            "supportedVersions": self.config.revisions.supported(),
            "capabilities": self.capabilities(endpoint, RevisionFamily::Modern),
            "ttlMs": self.list_ttl_ms(),
            "cacheScope": self.cache_scope_name(),
            "_meta": {"io.modelcontextprotocol/serverInfo": self.info(true)},
        });
        if let (Some(instructions), Some(result)) = (&self.config.instructions, result.as_object_mut()) {
            result.insert("instructions".to_owned(), instructions.as_str().into());
        }
        Outcome::result(result.to_string())
    }

    pub(crate) fn list_ttl_ms(&self) -> u64 {
        u64::try_from(self.config.list_ttl.as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn cache_scope_name(&self) -> &'static str {
        match self.config.cache_scope {
            CacheScope::Public => "public",
            CacheScope::Private => "private",
        }
    }

    /// `serverInfo`. Titles exist since 2025-06-18.
    pub(crate) fn info(&self, with_title: bool) -> Value {
        let config = &self.config;
        match config.title.as_ref().filter(|_| with_title) {
            Some(title) => json!({"name": config.name, "title": title, "version": config.version}),
            None => json!({"name": config.name, "version": config.version}),
        }
    }

    /// The capabilities of an endpoint.
    fn capabilities(&self, endpoint: &ServedEndpoint, family: RevisionFamily) -> Value {
        let kinds = endpoint.content_kinds();
        let changes = endpoint.has_content_changes();
        let mut all = Map::new();
        all.insert("tools".to_owned(), json!({"listChanged": true}));
        // Tools may send log messages in any revision.
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
        if family == RevisionFamily::Legacy {
            // Revisions before extensions look for them here.
            all.insert("experimental".to_owned(), json!({DESCRIBE: {}}));
        }
        all.insert("extensions".to_owned(), extensions.into());
        all.into()
    }
}
