//! Prompts, resources, completions and skills: merges lists and forwards requests to the service that owns the content.

use std::sync::Arc;

use toolyard_core::{CallInputResponses, RawJson, RevisionFamily, text::sanitize_json};
use toolyard_mcp::error_code;

use crate::{
    content_service::{ContentKind, ContentRequest},
    dispatch::{
        incoming_request::IncomingRequest,
        outcome::{LIST_END, Outcome, RequiredFields, missing_capability_error},
        tool_list::{decode_cursor, encode_cursor, page_length},
    },
    interaction::{request_channel::RequestChannel, request_task::RequestTask},
    server::McpServer,
    session::request_state::RequestState,
};

/// The beginning of a decoded cursor; the index of the first entry follows.
const CURSOR_PREFIX: &str = "from:";

impl McpServer {
    pub(crate) fn list_content(
        self: &Arc<Self>,
        incoming: IncomingRequest,
        kind: ContentKind,
    ) -> RequestTask {
        let (server, channel) = (Arc::clone(self), Arc::new(self.open_channel(&incoming)));
        let future = Box::pin(async move {
            let lists = incoming.endpoint.services.content.iter().map(|content| content.list(kind));
            let entries: Vec<RawJson> =
                futures_util::future::join_all(lists).await.into_iter().flatten().collect();
            server.content_page(&incoming, kind, &entries)
        });
        RequestTask::new(channel, future)
    }

    fn content_page(&self, incoming: &IncomingRequest, kind: ContentKind, entries: &[RawJson]) -> Outcome {
        let page_start = |cursor: &str| decode_cursor(CURSOR_PREFIX, cursor)?.parse::<usize>().ok();
        let Some(start) = incoming.params.cursor.as_deref().map_or(Some(0), page_start) else {
            return Outcome::invalid_params("params.cursor was not issued by this server");
        };
        let rest = entries.get(start..).unwrap_or_default();
        let count = page_length(rest.iter().map(|entry| entry.get().len()), &self.config.limits);
        let page: Vec<RawJson> = rest.iter().take(count).map(|entry| sanitize_json(entry).0).collect();
        let page: Vec<&str> = page.iter().map(RawJson::get).collect();
        let next = (rest.len() > count).then(|| encode_cursor(CURSOR_PREFIX, start + count));
        let entries = page.join(",") + LIST_END;
        self.list_outcome(incoming.peer.family(), list_key(kind), entries.into(), next, &[])
    }

    /// Forwards a request to the service that owns the content.
    pub(crate) fn request_content(
        self: &Arc<Self>,
        mut incoming: IncomingRequest,
    ) -> Result<RequestTask, Outcome> {
        let family = incoming.peer.family();
        if let Some(sealed) =
            incoming.params.request_state.as_deref().filter(|_| family == RevisionFamily::Modern)
            && let Some(RequestState::Suspended { process_instance, call_id }) =
                self.open_state(&incoming, sealed)
        {
            return self.resume(&incoming, sealed, process_instance, call_id);
        }
        let mut channel = self.open_channel(&incoming);
        // A server may request no input and only want its state back.
        let state = incoming.params.request_state.take().filter(|_| family == RevisionFamily::Modern);
        let responses = incoming.params.input_responses.take();
        if responses.is_some() || state.is_some() {
            let responses = responses.unwrap_or_else(RawJson::empty_object);
            channel.provide_responses(&responses);
            channel.input_responses = Some(CallInputResponses { responses, state });
        }
        let channel = Arc::new(channel);
        let call_channel = Arc::clone(&channel);
        let future =
            Box::pin(async move { content_outcome(&incoming, &call_channel).await.sanitized().await });
        Ok(RequestTask::new(channel, future))
    }
}

/// The outcome of a request of the first service that owns the content.
async fn content_outcome(incoming: &IncomingRequest, channel: &Arc<RequestChannel>) -> Outcome {
    let family = incoming.peer.family();
    let params = incoming.params.raw.clone().unwrap_or_else(RawJson::empty_object);
    for content in &incoming.endpoint.services.content {
        let caller = Some(Arc::clone(channel) as _);
        let request = ContentRequest { method: &incoming.method, params: &params, caller };
        match content.request(request).await {
            None => {}
            Some(Ok(raw)) => return Outcome::RawResult { raw, required: required_fields(incoming) },
            Some(Err(_)) if family == RevisionFamily::Modern && channel.missing_capability().is_some() => {
                return missing_capability_error(channel.missing_capability().unwrap_or("{}"));
            }
            Some(Err(mut error)) => {
                // Modern revisions report missing resources as invalid parameters.
                if family == RevisionFamily::Modern && error.code == error_code::RESOURCE_NOT_FOUND {
                    error.code = error_code::INVALID_PARAMS;
                }
                return Outcome::Error { error, status: http::StatusCode::OK };
            }
        }
    }
    content_not_found(incoming)
}

/// The field of the result that holds a list.
fn list_key(kind: ContentKind) -> &'static str {
    match kind {
        ContentKind::Prompts => "prompts",
        ContentKind::Resources => "resources",
        ContentKind::ResourceTemplates => "resourceTemplates",
        ContentKind::Skills => "skills",
    }
}

fn required_fields(incoming: &IncomingRequest) -> RequiredFields {
    match (incoming.peer.family(), incoming.method.as_str()) {
        (RevisionFamily::Legacy, _) => RequiredFields::None,
        (RevisionFamily::Modern, "prompts/get" | "completion/complete") => RequiredFields::ResultType,
        (RevisionFamily::Modern, _) => RequiredFields::ResultTypeAndCaching,
    }
}

fn content_not_found(incoming: &IncomingRequest) -> Outcome {
    let params = &incoming.params;
    match (&params.uri, &params.name) {
        (Some(uri), _) if incoming.method.starts_with("resources/") => {
            let code = if incoming.peer.family() == RevisionFamily::Legacy {
                error_code::RESOURCE_NOT_FOUND
            } else {
                error_code::INVALID_PARAMS
            };
            Outcome::error(code, format!("resource `{uri}` does not exist"))
                .with_data(&serde_json::json!({"uri": uri}))
        }
        (Some(uri), _) => Outcome::invalid_params(format!("`{uri}` does not exist")),
        (None, Some(name)) => Outcome::invalid_params(format!("prompt `{name}` does not exist")),
        (None, None) => {
            Outcome::invalid_params(format!("{} needs params.name or params.uri", incoming.method))
        }
    }
}
