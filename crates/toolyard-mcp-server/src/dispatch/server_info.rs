//! The results of `initialize` and `server/discover`.

use std::{sync::Arc, time::SystemTime};

use serde_json::{Map, Value, json};
use toolyard_core::{CallerIdentity, ClientInfo, RawJson, RevisionFamily};
use toolyard_mcp::{raw_field, versions::MODERN_REVISION};

use crate::{
    dispatch::{
        operation::{self, RequestFacts},
        outcome::Outcome,
        params::Params,
        served_endpoint::ServedEndpoint,
    },
    json_fields::text_field,
    server::McpServer,
    session::{
        client_capabilities::ClientCapabilities,
        peer::{Peer, negotiate_revision, truncate_client_name},
        session_id::unix_seconds,
    },
};

/// How long clients may treat a list as fresh (`ttlMs`).
pub(crate) const LIST_TTL_MS: u64 = 60_000;
/// Who may cache a list (`cacheScope`): each client for itself, because profiles and approvals differ.
pub(crate) const CACHE_SCOPE: &str = "private";
/// The extension that adds `tools/describe`.
pub(crate) const DESCRIBE_EXTENSION: &str = "toolyard/describe";
pub(crate) const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";

impl McpServer {
    /// The result of `initialize`, and the client that sent it.
    pub(crate) fn initialize_peer(
        &self,
        endpoint: &ServedEndpoint,
        facts: RequestFacts<'_>,
    ) -> (Outcome, Peer) {
        let operation = self.start_operation(facts);
        let (outcome, peer) = self.initialized_peer(endpoint, facts.identity, facts.params);
        if let Some(mut operation) = operation {
            operation::set_peer(&mut operation, &peer);
            operation::end(Some(operation), &outcome, false);
        }
        (outcome, peer)
    }

    fn initialized_peer(
        &self,
        endpoint: &ServedEndpoint,
        identity: &Arc<CallerIdentity>,
        params: &Params,
    ) -> (Outcome, Peer) {
        let raw = params.raw.clone().unwrap_or_else(RawJson::empty_object);
        let capabilities = raw_field(&raw, "capabilities").unwrap_or_else(RawJson::empty_object);
        let client = raw_field(&raw, "clientInfo")
            .and_then(|info| truncate_client_name(&text_field(info.get(), "name")?));
        let version = text_field(raw.get(), "protocolVersion");
        let revision = negotiate_revision(version.as_deref().unwrap_or_default());
        let capabilities = ClientCapabilities::read(&capabilities);
        let peer = Peer {
            initialized_at: Some(unix_seconds(SystemTime::now())),
            ..Peer::new(revision, client, capabilities, fastrand::u64(..))
        };
        let mut result = json!({
            "protocolVersion": peer.revision,
            "capabilities": self.capabilities(endpoint, RevisionFamily::Legacy),
            "serverInfo": self.server_info(peer.revision),
        });
        let client = ClientInfo { identity: Some(Arc::clone(identity)), ..peer.client.clone() };
        let instructions = self.instructions(endpoint, &client);
        if let (Some(instructions), Some(result)) = (instructions, result.as_object_mut()) {
            result.insert("instructions".to_owned(), instructions.into());
        }
        (Outcome::result(result.to_string()), peer)
    }

    pub(crate) fn discover(&self, endpoint: &ServedEndpoint, client: &ClientInfo) -> Outcome {
        let mut result = json!({
            "resultType": "complete",
            "supportedVersions": self.config.revisions.supported(),
            "capabilities": self.capabilities(endpoint, RevisionFamily::Modern),
            "ttlMs": LIST_TTL_MS,
            "cacheScope": CACHE_SCOPE,
            "_meta": {"io.modelcontextprotocol/serverInfo": self.server_info(MODERN_REVISION)},
        });
        let instructions = self.instructions(endpoint, client);
        if let (Some(instructions), Some(result)) = (instructions, result.as_object_mut()) {
            result.insert("instructions".to_owned(), instructions.into());
        }
        Outcome::result(result.to_string())
    }

    /// The instructions of this server, then those of the tools that the client sees.
    fn instructions(&self, endpoint: &ServedEndpoint, client: &ClientInfo) -> Option<String> {
        let of_tools = endpoint.services.tools.instructions(client);
        match (&self.config.instructions, of_tools) {
            (Some(own), Some(of_tools)) => Some(format!("{own}\n\n{of_tools}")),
            (own, of_tools) => of_tools.or_else(|| own.clone()),
        }
    }

    /// `serverInfo` in this revision. Titles exist since 2025-06-18; revisions are dates and compare as text.
    pub(crate) fn server_info(&self, revision: &str) -> Value {
        let config = &self.config;
        match config.title.as_ref().filter(|_| revision >= "2025-06-18") {
            Some(title) => json!({"name": config.name, "title": title, "version": config.version}),
            None => json!({"name": config.name, "version": config.version}),
        }
    }

    fn capabilities(&self, endpoint: &ServedEndpoint, family: RevisionFamily) -> Value {
        let capabilities = endpoint.content_capabilities();
        let changes = endpoint.has_content_changes();
        let mut all = Map::new();
        all.insert("tools".to_owned(), json!({"listChanged": true}));
        // Tools may send log messages in any revision.
        all.insert("logging".to_owned(), json!({}));
        if capabilities.prompts {
            all.insert("prompts".to_owned(), if changes { json!({"listChanged": true}) } else { json!({}) });
        }
        if capabilities.resources || capabilities.skills {
            let mut resources = Map::new();
            if capabilities.subscriptions {
                resources.insert("subscribe".to_owned(), true.into());
            }
            if changes {
                resources.insert("listChanged".to_owned(), true.into());
            }
            all.insert("resources".to_owned(), resources.into());
        }
        if capabilities.completions {
            all.insert("completions".to_owned(), json!({}));
        }
        let mut extensions = Map::new();
        extensions.insert(DESCRIBE_EXTENSION.to_owned(), json!({}));
        if capabilities.skills {
            extensions.insert(SKILLS_EXTENSION.to_owned(), json!({"directoryRead": true}));
        }
        if family == RevisionFamily::Legacy {
            // Revisions without `extensions` look for them here.
            all.insert("experimental".to_owned(), json!({DESCRIBE_EXTENSION: {}}));
        }
        all.insert("extensions".to_owned(), extensions.into());
        all.into()
    }
}
