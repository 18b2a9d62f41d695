//! Maps methods to their handlers.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use toolyard_core::RevisionFamily;
use toolyard_mcp::{JsonObject, error_code};

use crate::{
    content_service::{ContentKind, ContentKinds},
    dispatch::{incoming_request::IncomingRequest, outcome::Outcome, unknown_method::unknown_method},
    interaction::request_task::RequestTask,
    json_fields::text_field,
    server::McpServer,
    session::log_level::LogLevel,
};

/// A dispatched request.
#[derive(Debug)]
pub(crate) enum Dispatch {
    Completed(Outcome),
    Pending(RequestTask),
}

impl McpServer {
    /// Starts to handle a request.
    pub(crate) fn dispatch(self: &Arc<Self>, incoming: IncomingRequest) -> Dispatch {
        if let Some(what) = incoming.params.invalid_field {
            return Dispatch::Completed(Outcome::error(
                error_code::INVALID_PARAMS,
                format!("{what} has the wrong type"),
            ));
        }
        let family = incoming.peer.family();
        // The hot path comes first.
        if incoming.method == "tools/call" {
            return self.call_tool(incoming).map_or_else(Dispatch::Completed, Dispatch::Pending);
        }
        let kinds = incoming.endpoint.content_kinds();
        match (incoming.method.as_str(), family) {
            ("tools/list", _) => Dispatch::Pending(self.list_tools(incoming)),
            ("tools/describe", _) => Dispatch::Completed(describe(&incoming)),
            ("ping", RevisionFamily::Legacy) => Dispatch::Completed(Outcome::result("{}")),
            ("server/discover", RevisionFamily::Modern) => {
                Dispatch::Completed(self.discover(&incoming.endpoint))
            }
            ("subscriptions/listen", RevisionFamily::Modern) => Dispatch::Pending(self.listen(incoming)),
            ("logging/setLevel", RevisionFamily::Legacy) => {
                Dispatch::Completed(self.set_log_level(&incoming))
            }
            ("resources/subscribe" | "resources/unsubscribe", RevisionFamily::Legacy)
                if kinds.subscriptions =>
            {
                self.change_subscription(incoming)
            }
            (method, _) => match content_method(method, kinds) {
                Some(Content::List(kind)) => Dispatch::Pending(self.list_content(incoming, kind)),
                Some(Content::Request) => {
                    self.request_content(incoming).map_or_else(Dispatch::Completed, Dispatch::Pending)
                }
                None => Dispatch::Completed(unknown_method(&incoming.method, family)),
            },
        }
    }

    fn list_tools(self: &Arc<Self>, incoming: IncomingRequest) -> RequestTask {
        let (server, channel) = (Arc::clone(self), Arc::new(self.open_channel(&incoming)));
        let future = Box::pin(async move {
            let mut notes = Vec::new();
            if let Some(readiness) = &incoming.endpoint.services.readiness {
                // Sources that are not ready in time are missing from the list and noted.
                let _ = tokio::time::timeout(server.config.list_timeout, readiness.settled()).await;
                notes = readiness.notes();
            }
            let catalogue = incoming.endpoint.catalogue(&incoming.peer.client);
            if incoming.peer.initialized_at.is_some() {
                let (session_key, limit) = (incoming.peer.session_key, server.config.limits.tracked_clients);
                server.clients.record_catalogue(session_key, catalogue.catalogue.version, limit);
            }
            match catalogue.page(incoming.params.cursor.as_deref(), &server.config.limits) {
                Some(page) => {
                    server.list_outcome(incoming.peer.family(), "tools", page.entries, page.next, &notes)
                }
                None => {
                    Outcome::error(error_code::INVALID_PARAMS, "params.cursor was not issued by this server")
                }
            }
        });
        RequestTask::new(channel, future)
    }

    /// A page of a list. `entries` continue to the end of the message, which is [`LIST_END`].
    ///
    /// The list is the last field, so that responses share its bytes.
    pub(crate) fn list_outcome(
        &self,
        family: RevisionFamily,
        key: &str,
        entries: Bytes,
        next: Option<String>,
        notes: &[String],
    ) -> Outcome {
        let (mut fields, mut meta) = (JsonObject::new(), JsonObject::new());
        if family == RevisionFamily::Modern {
            fields = fields.with_text("resultType", "complete");
            fields = fields
                .with_value("ttlMs", &self.list_ttl_ms().into())
                .with_text("cacheScope", self.cache_scope_name());
            meta = meta.with_value("io.modelcontextprotocol/serverInfo", &self.info(true));
        }
        if let Some(next) = next {
            fields = fields.with_text("nextCursor", &next);
        }
        if !notes.is_empty() {
            meta = meta.with_value("toolyard/notes", &json!(notes));
        }
        if !meta.is_empty() {
            fields = fields.with_object("_meta", &meta);
        }
        let comma = if fields.is_empty() { "" } else { "," };
        let mut before = fields.to_string();
        // The object continues with the list.
        before.pop();
        before.extend([comma, "\"", key, "\":["]);
        Outcome::SharedTail { head: before, tail: entries }
    }

    fn set_log_level(&self, incoming: &IncomingRequest) -> Outcome {
        let raw = incoming.params.raw.as_ref();
        let level = raw.and_then(|raw| text_field(raw.get(), "level"));
        match level.as_deref().and_then(LogLevel::named) {
            Some(level) => {
                let (session_key, limit) = (incoming.peer.session_key, self.config.limits.tracked_clients);
                self.clients.set_log_level(session_key, level, limit);
                Outcome::result("{}")
            }
            None => Outcome::error(
                error_code::INVALID_PARAMS,
                "params.level must be one of debug, info, notice, warning, error, critical, alert, emergency",
            ),
        }
    }

    /// Subscribes a legacy client to a resource, or unsubscribes it.
    fn change_subscription(self: &Arc<Self>, incoming: IncomingRequest) -> Dispatch {
        let Some(uri) = incoming.params.uri.clone() else {
            return Dispatch::Completed(Outcome::error(error_code::INVALID_PARAMS, "params.uri is missing"));
        };
        let (server, channel) = (Arc::clone(self), Arc::new(self.open_channel(&incoming)));
        let future = Box::pin(async move {
            let (session_key, limit) = (incoming.peer.session_key, server.config.limits.tracked_clients);
            if incoming.method == "resources/unsubscribe" {
                if server.clients.unsubscribe(session_key, &uri) {
                    server.release_subscriptions(&incoming.endpoint, [uri].into());
                }
                return Outcome::result("{}");
            }
            if server.clients.is_subscribed(session_key, &uri) {
                return Outcome::result("{}");
            }
            if !server.subscribe(&incoming.endpoint, &uri).await {
                server.release_subscriptions(&incoming.endpoint, [uri.clone()].into());
                return Outcome::error(
                    error_code::RESOURCE_NOT_FOUND,
                    format!("resource `{uri}` does not exist"),
                )
                .with_data(&json!({"uri": uri}));
            }
            if !server.clients.subscribe(session_key, &uri, limit) {
                server.release_subscriptions(&incoming.endpoint, [uri].into());
                return Outcome::error(error_code::INTERNAL_ERROR, "too many subscriptions");
            }
            Outcome::result("{}")
        });
        Dispatch::Pending(RequestTask::new(channel, future))
    }
}

/// `tools/describe`, an extension: the definition of one tool.
fn describe(incoming: &IncomingRequest) -> Outcome {
    let Some(name) = &incoming.params.name else {
        return Outcome::error(error_code::INVALID_PARAMS, "params.name is missing");
    };
    let Some(definition) = incoming.endpoint.services.tools.describe(name) else {
        return Outcome::error(
            error_code::INVALID_PARAMS,
            format!("tool `{name}` does not exist; tools/list lists all tools"),
        );
    };
    let kind =
        if incoming.peer.family() == RevisionFamily::Modern { r#""resultType":"complete","# } else { "" };
    Outcome::result(format!(r#"{{{kind}"tool":{}}}"#, definition.get()))
}

enum Content {
    List(ContentKind),
    Request,
}

/// How a method about content is handled; none if the endpoint has no such content.
fn content_method(method: &str, kinds: ContentKinds) -> Option<Content> {
    let resources = kinds.resources || kinds.skills;
    let (content, is_there) = match method {
        "prompts/list" => (Content::List(ContentKind::Prompts), kinds.prompts),
        "prompts/get" => (Content::Request, kinds.prompts),
        "resources/list" => (Content::List(ContentKind::Resources), resources),
        "resources/templates/list" => (Content::List(ContentKind::ResourceTemplates), resources),
        "resources/read" => (Content::Request, resources),
        "resources/directory/read" | "skills/get" => (Content::Request, kinds.skills),
        "skills/list" => (Content::List(ContentKind::Skills), kinds.skills),
        "completion/complete" => (Content::Request, kinds.completions),
        _ => return None,
    };
    is_there.then_some(content)
}
