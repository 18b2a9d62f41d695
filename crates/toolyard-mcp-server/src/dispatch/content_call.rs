//! Prompts, resources, completions and skills: merges lists and forwards requests to the service that owns the content.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use toolyard_core::{CallInputResponses, RawJson, RevisionFamily};
use toolyard_mcp::error_code;

use crate::{
    content_service::{ContentKind, ContentRequest},
    dispatch::{
        incoming_request::IncomingRequest,
        outcome::{LIST_END, Outcome, RequiredFields, missing_capability},
    },
    interaction::request_task::RequestTask,
    server::McpServer,
    session::request_state::RequestState,
};

/// The beginning of a decoded cursor.
const CURSOR_PREFIX: &str = "from:";

impl McpServer {
    /// Lists all content of a kind.
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
        let Some(start) = incoming.params.cursor.as_deref().map_or(Some(0), page_start) else {
            return Outcome::error(error_code::INVALID_PARAMS, "params.cursor was not issued by this server");
        };
        let limits = &self.config.limits;
        let rest = entries.get(start..).unwrap_or_default();
        let mut bytes = 0;
        let fits = |entry: &&RawJson| {
            bytes += entry.get().len() + 1;
            bytes <= limits.page_bytes
        };
        let count = rest.iter().take(limits.page_entries).take_while(fits).count().max(1).min(rest.len());
        let page: Vec<&str> = rest.iter().take(count).map(RawJson::get).collect();
        let next =
            (rest.len() > count).then(|| URL_SAFE_NO_PAD.encode(format!("{CURSOR_PREFIX}{}", start + count)));
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
            && let Some(RequestState::Suspended { instance, number }) = self.open_state(&incoming, sealed)
        {
            return self.resume(&incoming, instance, number);
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
        let calling = Arc::clone(&channel);
        let future = Box::pin(async move {
            let params = incoming.params.raw.clone().unwrap_or_else(RawJson::empty_object);
            for content in &incoming.endpoint.services.content {
                let caller = Some(Arc::clone(&calling) as _);
                let request = ContentRequest { method: &incoming.method, params: &params, caller };
                match content.request(request).await {
                    None => {}
                    Some(Ok(raw)) => return Outcome::RawResult { raw, required: required_fields(&incoming) },
                    Some(Err(_))
                        if family == RevisionFamily::Modern && calling.missing_capability().is_some() =>
                    {
                        return missing_capability(calling.missing_capability().unwrap_or("{}"));
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
            content_not_found(&incoming)
        });
        Ok(RequestTask::new(channel, future))
    }
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

fn page_start(cursor: &str) -> Option<usize> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    text.strip_prefix(CURSOR_PREFIX)?.parse().ok()
}

/// The error for content that no service has.
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
        (Some(uri), _) => Outcome::error(error_code::INVALID_PARAMS, format!("`{uri}` does not exist")),
        (None, Some(name)) => {
            Outcome::error(error_code::INVALID_PARAMS, format!("prompt `{name}` does not exist"))
        }
        (None, None) => Outcome::error(
            error_code::INVALID_PARAMS,
            format!("{} needs params.name or params.uri", incoming.method),
        ),
    }
}
