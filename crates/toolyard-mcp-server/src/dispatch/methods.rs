//! Maps methods to their handlers.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;
use toolyard_core::RevisionFamily;
use toolyard_mcp::{JsonObject, error_code, versions::MODERN_REVISION};

use crate::{
    content_service::{ContentCapabilities, ContentKind},
    dispatch::{
        incoming_request::IncomingRequest,
        operation,
        outcome::Outcome,
        server_info::{CACHE_SCOPE, LIST_TTL_MS},
        unknown_method::unknown_method,
    },
    interaction::request_task::RequestTask,
    json_fields::text_field,
    server::McpServer,
    session::log_level::LogLevel,
};

#[derive(Debug)]
pub(crate) enum Dispatch {
    Completed(Outcome),
    Pending(RequestTask),
}

impl McpServer {
    pub(crate) fn dispatch(self: &Arc<Self>, mut incoming: IncomingRequest) -> Dispatch {
        let Some(operation) = self.start_operation(incoming.facts()) else {
            return self.dispatch_request(incoming);
        };
        incoming.span = operation.context();
        match self.dispatch_request(incoming) {
            Dispatch::Completed(outcome) => {
                operation::end(Some(operation), &outcome, false);
                Dispatch::Completed(outcome)
            }
            Dispatch::Pending(mut task) => {
                task.operation = Some(Box::new(operation));
                Dispatch::Pending(task)
            }
        }
    }

    fn dispatch_request(self: &Arc<Self>, incoming: IncomingRequest) -> Dispatch {
        if let Some(field) = incoming.params.invalid_field {
            return Dispatch::Completed(Outcome::invalid_params(format!("{field} has the wrong type")));
        }
        let family = incoming.peer.family();
        // The hot path comes first.
        if incoming.method == "tools/call" {
            return self.call_tool(incoming).map_or_else(Dispatch::Completed, Dispatch::Pending);
        }
        let capabilities = incoming.endpoint.content_capabilities();
        match (incoming.method.as_str(), family) {
            ("tools/list", _) => Dispatch::Pending(self.list_tools(incoming)),
            ("tools/describe", _) => Dispatch::Completed(describe(&incoming)),
            ("ping", RevisionFamily::Legacy) => Dispatch::Completed(Outcome::result("{}")),
            ("server/discover", RevisionFamily::Modern) => {
                Dispatch::Completed(self.discover(&incoming.endpoint, &incoming.client_info()))
            }
            ("subscriptions/listen", RevisionFamily::Modern) => Dispatch::Pending(self.listen(incoming)),
            ("logging/setLevel", RevisionFamily::Legacy) => {
                Dispatch::Completed(self.set_log_level(&incoming))
            }
            ("resources/subscribe" | "resources/unsubscribe", RevisionFamily::Legacy)
                if capabilities.subscriptions =>
            {
                self.change_subscription(incoming)
            }
            (method, _) => match content_method(method, capabilities) {
                Some(ContentMethod::List(kind)) => Dispatch::Pending(self.list_content(incoming, kind)),
                Some(ContentMethod::Request) => {
                    self.request_content(incoming).map_or_else(Dispatch::Completed, Dispatch::Pending)
                }
                None => Dispatch::Completed(unknown_method(&incoming.method, family)),
            },
        }
    }

    fn list_tools(self: &Arc<Self>, incoming: IncomingRequest) -> RequestTask {
        let (server, channel) = (Arc::clone(self), Arc::new(self.open_channel(&incoming)));
        let future = Box::pin(async move {
            let mut missing_sources = Vec::new();
            if let Some(readiness) = &incoming.endpoint.services.readiness {
                // Sources that are not ready in time are missing from the list and noted.
                let _ = tokio::time::timeout(server.config.list_timeout, readiness.settled()).await;
                missing_sources = readiness.missing_sources();
            }
            let catalogue = incoming.endpoint.catalogue(&incoming.client_info());
            if incoming.peer.initialized_at.is_some() {
                server
                    .clients
                    .record_catalogue_version(incoming.peer.session_number, catalogue.catalogue.version);
            }
            match catalogue.page(incoming.params.cursor.as_deref(), &server.config.limits) {
                Some(page) => server.list_outcome(
                    incoming.peer.family(),
                    "tools",
                    page.entries,
                    page.next,
                    &missing_sources,
                ),
                None => Outcome::invalid_params("params.cursor was not issued by this server"),
            }
        });
        RequestTask::new(channel, future)
    }

    /// A page of a list. `entries` is the rest of the message: the entries, then `LIST_END`.
    ///
    /// The list is the last field, so that responses share its bytes.
    pub(crate) fn list_outcome(
        &self,
        family: RevisionFamily,
        key: &str,
        entries: Bytes,
        next: Option<String>,
        missing_sources: &[String],
    ) -> Outcome {
        let (mut fields, mut meta) = (JsonObject::new(), JsonObject::new());
        if family == RevisionFamily::Modern {
            fields = fields
                .with_text("resultType", "complete")
                .with_value("ttlMs", &LIST_TTL_MS.into())
                .with_text("cacheScope", CACHE_SCOPE);
            meta = meta.with_value("io.modelcontextprotocol/serverInfo", &self.server_info(MODERN_REVISION));
        }
        if let Some(next) = next {
            fields = fields.with_text("nextCursor", &next);
        }
        if !missing_sources.is_empty() {
            meta = meta.with_value("toolyard/notes", &json!(missing_sources));
        }
        if !meta.is_empty() {
            fields = fields.with_object("_meta", &meta);
        }
        let comma = if fields.is_empty() { "" } else { "," };
        let mut head = fields.to_string();
        // The object continues with the list.
        head.pop();
        head.extend([comma, "\"", key, "\":["]);
        Outcome::SharedTail { head, tail: entries }
    }

    fn set_log_level(&self, incoming: &IncomingRequest) -> Outcome {
        let raw = incoming.params.raw.as_ref();
        let level = raw.and_then(|raw| text_field(raw.get(), "level"));
        match level.as_deref().and_then(LogLevel::from_name) {
            Some(level) => {
                self.clients.set_log_level(incoming.peer.session_number, level);
                Outcome::result("{}")
            }
            None => Outcome::invalid_params(
                "params.level must be one of debug, info, notice, warning, error, critical, alert, emergency",
            ),
        }
    }

    /// Subscribes a legacy client to a resource, or unsubscribes it.
    fn change_subscription(self: &Arc<Self>, incoming: IncomingRequest) -> Dispatch {
        let Some(uri) = incoming.params.uri.clone() else {
            return Dispatch::Completed(Outcome::invalid_params("params.uri is missing"));
        };
        let (server, channel) = (Arc::clone(self), Arc::new(self.open_channel(&incoming)));
        let future = Box::pin(async move {
            let session_number = incoming.peer.session_number;
            if incoming.method == "resources/unsubscribe" {
                if server.clients.unsubscribe(session_number, &uri) {
                    server.release_subscriptions(&incoming.endpoint, [uri].into());
                }
                return Outcome::result("{}");
            }
            if server.clients.is_subscribed(session_number, &uri) {
                return Outcome::result("{}");
            }
            let refusal = match server.subscribe(&incoming.endpoint, &uri).await {
                Some(Ok(_)) => None,
                Some(Err(error)) => Some(Outcome::Error { error, status: StatusCode::OK }.sanitized().await),
                None => {
                    let message = format!("resource `{uri}` does not exist");
                    let error = Outcome::error(error_code::RESOURCE_NOT_FOUND, message);
                    Some(error.with_data(&json!({"uri": uri})))
                }
            };
            if let Some(refusal) = refusal {
                server.release_subscriptions(&incoming.endpoint, [uri].into());
                return refusal;
            }
            if !server.clients.subscribe(session_number, &uri) {
                server.release_subscriptions(&incoming.endpoint, [uri].into());
                return Outcome::internal_error("too many subscriptions");
            }
            Outcome::result("{}")
        });
        Dispatch::Pending(RequestTask::new(channel, future))
    }
}

/// `tools/describe`, an extension: the definition of one tool.
fn describe(incoming: &IncomingRequest) -> Outcome {
    let Some(name) = &incoming.params.name else {
        return Outcome::invalid_params("params.name is missing");
    };
    let Some(definition) = incoming.endpoint.services.tools.describe(name, &incoming.client_info()) else {
        let message = format!("tool `{name}` does not exist; tools/list lists all tools");
        return Outcome::invalid_params(message);
    };
    let result_type =
        if incoming.peer.family() == RevisionFamily::Modern { r#""resultType":"complete","# } else { "" };
    Outcome::result(format!(r#"{{{result_type}"tool":{}}}"#, definition.get()))
}

enum ContentMethod {
    List(ContentKind),
    Request,
}

/// How a method about content is handled; none if the endpoint has no such content.
fn content_method(method: &str, capabilities: ContentCapabilities) -> Option<ContentMethod> {
    let resources = capabilities.resources || capabilities.skills;
    let (content, is_supported) = match method {
        "prompts/list" => (ContentMethod::List(ContentKind::Prompts), capabilities.prompts),
        "prompts/get" => (ContentMethod::Request, capabilities.prompts),
        "resources/list" => (ContentMethod::List(ContentKind::Resources), resources),
        "resources/templates/list" => (ContentMethod::List(ContentKind::ResourceTemplates), resources),
        "resources/read" => (ContentMethod::Request, resources),
        "resources/directory/read" | "skills/get" => (ContentMethod::Request, capabilities.skills),
        "skills/list" => (ContentMethod::List(ContentKind::Skills), capabilities.skills),
        "completion/complete" => (ContentMethod::Request, capabilities.completions),
        _ => return None,
    };
    is_supported.then_some(content)
}
