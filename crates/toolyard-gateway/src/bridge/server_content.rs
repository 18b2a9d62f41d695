//! [`ServerContentBridge`]: the prompts, resources and skills of all servers of an endpoint. Listing starts no server;
//! requests are forwarded to the server that owns the content.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::{broadcast, watch};
use toolyard_core::{BoxFuture, RawJson, SourceId, escape_unsafe, redact};
use toolyard_mcp::{FieldEdit, JsonObject, RpcError, edit_fields, error_code, raw_field, text_field};
use toolyard_mcp_client::{
    ContentRequest as UpstreamRequest, ManagedServer, McpManager, RequestError, ServerContent, ServerEvent,
    ServerRequestError, ServerState,
};
use toolyard_mcp_server::{
    ContentCapabilities, ContentEvent, ContentKind, ContentRequest, ContentService, Readiness,
};

use super::{
    LocalSkills, MAX_URI_BYTES,
    content_index::{ContentIndex, ContentRoute, relocate_uris},
    rpc_error,
};

/// Events buffered for a slow receiver.
const MAX_BUFFERED_EVENTS: usize = 1_024;
/// Sessions whose log level is stored; when there are more, all stored levels are dropped.
const MAX_SESSION_LOG_LEVELS: usize = 4_096;
/// MCP's log levels, lowest first.
const LOG_LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
const MAX_REASON_CHARS: usize = 200;

type ServerFilter = Box<dyn Fn(&SourceId) -> bool + Send + Sync>;

/// The content of the servers of an endpoint.
pub struct ServerContentBridge {
    servers: Arc<EndpointServers>,
    index: ArcSwap<ContentIndex>,
    local_skills: Option<Arc<LocalSkills>>,
    events: broadcast::Sender<ContentEvent>,
    /// Log levels that clients set, by session, as indices of [`LOG_LEVELS`].
    log_levels: Mutex<HashMap<u64, usize>>,
    /// Whether every server was reached once, or failed.
    is_discovered: watch::Receiver<bool>,
    tasks: Vec<tokio::task::AbortHandle>,
}

struct EndpointServers {
    manager: Arc<McpManager>,
    filter: ServerFilter,
    /// Identifies the endpoint as a subscriber of resources.
    subscriber: u64,
}

impl EndpointServers {
    /// The enabled servers of the endpoint, sorted by id.
    fn enabled(&self) -> Vec<Arc<ManagedServer>> {
        let mut servers = self.manager.servers();
        servers.retain(|server| server.config().enabled && (self.filter)(&server.config().id));
        servers
    }
}

impl fmt::Debug for ServerContentBridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerContentBridge").field("manager", &self.servers.manager).finish_non_exhaustive()
    }
}

impl Drop for ServerContentBridge {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::AbortHandle::abort);
    }
}

impl ServerContentBridge {
    /// Bridges the servers of a manager that match `filter`. Local skills keep their URIs, whatever URIs servers list. From now
    /// on servers that were never reached are started once, and failed ones are restarted as long as the manager lives.
    pub fn new(
        manager: Arc<McpManager>,
        filter: impl Fn(&SourceId) -> bool + Send + Sync + 'static,
        local_skills: Option<Arc<LocalSkills>>,
    ) -> Self {
        static NEXT_SUBSCRIBER: AtomicU64 = AtomicU64::new(1);
        manager.keep_reconnecting();
        let subscriber = NEXT_SUBSCRIBER.fetch_add(1, Ordering::Relaxed);
        let servers = Arc::new(EndpointServers { manager, filter: Box::new(filter), subscriber });
        let events = broadcast::Sender::new(MAX_BUFFERED_EVENTS);
        let (discovered, is_discovered) = watch::channel(false);
        let discovery = tokio::spawn({
            let servers = Arc::clone(&servers);
            async move {
                servers.manager.discover_matching(|id| (servers.filter)(id)).await;
                discovered.send_replace(true);
            }
        });
        let server_events = servers.manager.events();
        let forwarding = tokio::spawn(forward_events(Arc::clone(&servers), server_events, events.clone()));
        Self {
            servers,
            index: ArcSwap::default(),
            local_skills,
            events,
            log_levels: Mutex::default(),
            is_discovered,
            tasks: vec![discovery.abort_handle(), forwarding.abort_handle()],
        }
    }

    /// Content that is not listed, or listed under another URI, such as resources of two servers with the same URI.
    pub fn warnings(&self) -> Vec<String> {
        self.index().warnings.clone()
    }

    fn index(&self) -> Arc<ContentIndex> {
        let mut servers = self.servers.enabled();
        // A trusted server keeps its URIs, whatever the ids of the others are.
        servers.sort_by_key(|server| !server.config().trusted);
        let content: Vec<(SourceId, Arc<ServerContent>)> =
            servers.iter().map(|server| (server.config().id.clone(), server.content())).collect();
        let local_folders = self.local_skills.as_ref().map(|skills| skills.folder_uris()).unwrap_or_default();
        let current = self.index.load_full();
        if current.is_built_from(&content, &local_folders) {
            return current;
        }
        let index = Arc::new(ContentIndex::new(content, local_folders));
        self.index.store(Arc::clone(&index));
        index
    }

    async fn handle(&self, request: &ContentRequest<'_>) -> Option<Result<RawJson, RpcError>> {
        match request.method {
            "prompts/get" => self.get_prompt(request).await,
            "completion/complete" => self.complete(request).await,
            "resources/read" => self.forward_by_uri(request, "resources/read").await,
            "resources/directory/read" => self.forward_by_uri(request, "resources/directory/read").await,
            "skills/get" => self.forward_by_uri(request, "skills/get").await,
            "resources/subscribe" => self.set_subscribed(request, true).await,
            "resources/unsubscribe" => self.set_subscribed(request, false).await,
            "logging/setLevel" => Some(self.set_log_level(request).await),
            _ => None,
        }
    }

    async fn get_prompt(&self, request: &ContentRequest<'_>) -> Option<Result<RawJson, RpcError>> {
        let index = self.index();
        let name = text_field(request.params, "name", MAX_URI_BYTES)?;
        let (server, own_name) = index.prompt(&name)?;
        let params = forwarded_params(request.params, |key, _| match key {
            "name" => FieldEdit::Text(own_name.to_owned()),
            _ => FieldEdit::Keep,
        });
        Some(self.forward(server, request, "prompts/get", Some(own_name), &params).await)
    }

    async fn complete(&self, request: &ContentRequest<'_>) -> Option<Result<RawJson, RpcError>> {
        let index = self.index();
        let reference = raw_field(request.params, "ref")?;
        let field = |key| text_field(&reference, key, MAX_URI_BYTES);
        let (server, key, own) = match (field("name"), field("uri")) {
            (Some(name), _) => {
                let (server, own) = index.prompt(&name)?;
                (server.clone(), "name", own.to_owned())
            }
            (None, Some(uri)) => match index.template_server(&uri) {
                Some(server) => (server.clone(), "uri", uri),
                None => {
                    let ContentRoute { server, uri, .. } = index.route(&uri)?;
                    (server, "uri", uri)
                }
            },
            (None, None) => return None,
        };
        let reference = edit_fields(&reference, |field, _| match field {
            field if field == key => FieldEdit::Text(own.clone()),
            _ => FieldEdit::Keep,
        });
        let params = forwarded_params(request.params, |field, _| match field {
            "ref" => FieldEdit::Raw(reference.to_raw()),
            _ => FieldEdit::Keep,
        });
        Some(self.forward(&server, request, "completion/complete", None, &params).await)
    }

    async fn forward_by_uri(
        &self,
        request: &ContentRequest<'_>,
        method: &'static str,
    ) -> Option<Result<RawJson, RpcError>> {
        let uri = text_field(request.params, "uri", MAX_URI_BYTES)?;
        let ContentRoute { server, uri: own_uri, relocation } = self.index().route(&uri)?;
        let content = self.servers.manager.server(server.as_str())?.content();
        let is_supported = match method {
            "resources/directory/read" => content.reads_skill_directories,
            "skills/get" => !content.skills.is_empty(),
            _ => true,
        };
        if !is_supported {
            return Some(Err(invalid_params(format!("the server of {uri} does not support {method}"))));
        }
        let params = forwarded_params(request.params, |key, _| match key {
            "uri" => FieldEdit::Text(own_uri.clone()),
            _ => FieldEdit::Keep,
        });
        let result = self.forward(&server, request, method, Some(&own_uri), &params).await;
        Some(match relocation {
            Some(relocation) => {
                result.map(|result| relocate_uris(&result, &relocation.own, &relocation.exposed))
            }
            None => result,
        })
    }

    async fn set_subscribed(
        &self,
        request: &ContentRequest<'_>,
        is_subscribed: bool,
    ) -> Option<Result<RawJson, RpcError>> {
        let uri = text_field(request.params, "uri", MAX_URI_BYTES)?;
        let ContentRoute { server, uri: own_uri, .. } = self.index().route(&uri)?;
        let server = self.servers.manager.server(server.as_str())?;
        let subscriber = self.servers.subscriber;
        let result = match is_subscribed {
            true if !server.content().subscriptions => {
                let message = format!("the server of {uri} does not support subscriptions");
                return Some(Err(rpc_error(error_code::METHOD_NOT_FOUND, message)));
            }
            true => server.subscribe(subscriber, &own_uri).await,
            false => server.unsubscribe(subscriber, &own_uri).await,
        };
        Some(
            result
                .map(|()| RawJson::empty_object())
                .map_err(|error| server_error(&server.config().id, error)),
        )
    }

    /// Legacy servers have one log level for all clients, so they get the lowest one that any client set.
    async fn set_log_level(&self, request: &ContentRequest<'_>) -> Result<RawJson, RpcError> {
        let level = text_field(request.params, "level", MAX_URI_BYTES);
        let level = level.and_then(|level| LOG_LEVELS.iter().position(|known| *known == level));
        let Some(level) = level else {
            return Err(invalid_params(format!("params.level must be one of {}", LOG_LEVELS.join(", "))));
        };
        let session = request.caller.as_ref().map_or(0, |caller| caller.session_id());
        let lowest = {
            let mut levels = self.log_levels.lock();
            if levels.len() >= MAX_SESSION_LOG_LEVELS {
                levels.clear();
            }
            levels.insert(session, level);
            levels.values().copied().min().and_then(|lowest| LOG_LEVELS.get(lowest))
        };
        if let Some(lowest) = lowest {
            self.servers.manager.set_log_level(lowest).await;
        }
        Ok(RawJson::empty_object())
    }

    async fn forward(
        &self,
        server: &SourceId,
        request: &ContentRequest<'_>,
        method: &'static str,
        subject: Option<&str>,
        fields: &JsonObject,
    ) -> Result<RawJson, RpcError> {
        let removed = || rpc_error(error_code::INTERNAL_ERROR, format!("server `{server}` was removed"));
        let server = self.servers.manager.server(server.as_str()).ok_or_else(removed)?;
        let request = UpstreamRequest { method, subject, fields, caller: request.caller.as_ref() };
        server.request_content(request).await.map_err(|error| server_error(&server.config().id, error))
    }
}

impl ContentService for ServerContentBridge {
    /// A server that was never reached may have any content; its skills are announced only once they are known.
    fn capabilities(&self) -> ContentCapabilities {
        let servers = self.servers.enabled();
        let has_unknown_server = servers.iter().any(|server| !server.has_known_tools());
        let any = |has: fn(&ServerContent) -> bool| {
            has_unknown_server || servers.iter().any(|server| has(&server.content()))
        };
        ContentCapabilities {
            prompts: any(|content| !content.prompts.is_empty()),
            resources: any(|content| content.has_resources),
            subscriptions: any(|content| content.subscriptions),
            completions: any(|content| content.completions),
            skills: servers.iter().any(|server| !server.content().skills.is_empty()),
            logging: any(|content| content.logging),
        }
    }

    fn list(&self, kind: ContentKind) -> BoxFuture<'_, Vec<RawJson>> {
        let index = self.index();
        let list = match kind {
            ContentKind::Prompts => index.prompts.clone(),
            ContentKind::Resources => index.resources.clone(),
            ContentKind::ResourceTemplates => index.templates.clone(),
            ContentKind::Skills => index.skills.clone(),
        };
        Box::pin(std::future::ready(list))
    }

    fn request<'a>(
        &'a self,
        request: ContentRequest<'a>,
    ) -> BoxFuture<'a, Option<Result<RawJson, RpcError>>> {
        Box::pin(async move { self.handle(&request).await })
    }

    fn events(&self) -> Option<broadcast::Receiver<ContentEvent>> {
        Some(self.events.subscribe())
    }
}

impl Readiness for ServerContentBridge {
    /// Completes once every server that was never reached was started, or failed.
    fn settled(&self) -> BoxFuture<'_, ()> {
        let mut is_discovered = self.is_discovered.clone();
        // Fails only if the discovery was aborted.
        Box::pin(async move { drop(is_discovered.wait_for(|is_discovered| *is_discovered).await) })
    }

    fn missing_sources(&self) -> Vec<String> {
        self.servers.enabled().iter().filter_map(|server| availability_note(server)).collect()
    }
}

/// The parameters to forward: without `_meta`, which is about the client, and without its responses to input requests, which
/// the server gets through the caller.
fn forwarded_params(params: &RawJson, mut edit: impl FnMut(&str, &RawJson) -> FieldEdit) -> JsonObject {
    edit_fields(params, |key, value| match key {
        "_meta" | "inputResponses" | "requestState" => FieldEdit::Remove,
        _ => edit(key, value),
    })
}

/// An error of the server unchanged; any other failure with the name of the server.
fn server_error(server: &SourceId, error: ServerRequestError) -> RpcError {
    match error {
        ServerRequestError::Request(RequestError::Rpc(error)) => error,
        other => {
            let message = format!("server `{server}`: {other}");
            rpc_error(error_code::INTERNAL_ERROR, redact(&message).into_owned())
        }
    }
}

fn invalid_params(message: String) -> RpcError {
    rpc_error(error_code::INVALID_PARAMS, message)
}

async fn forward_events(
    servers: Arc<EndpointServers>,
    mut server_events: broadcast::Receiver<ServerEvent>,
    events: broadcast::Sender<ContentEvent>,
) {
    loop {
        let changes: &[ContentEvent] = match server_events.recv().await {
            Ok(ServerEvent::PromptsChanged(id)) if (servers.filter)(&id) => &[ContentEvent::PromptsChanged],
            Ok(ServerEvent::ResourcesChanged(id)) if (servers.filter)(&id) => {
                &[ContentEvent::ResourcesChanged]
            }
            Ok(ServerEvent::ResourceUpdated(id, uri)) if (servers.filter)(&id) => {
                // Fails only if there are no receivers.
                let _ = events.send(ContentEvent::ResourceUpdated(uri));
                continue;
            }
            Ok(_) => continue,
            // The missed events may have been of any kind.
            Err(broadcast::error::RecvError::Lagged(_)) => {
                &[ContentEvent::PromptsChanged, ContentEvent::ResourcesChanged]
            }
            Err(broadcast::error::RecvError::Closed) => return,
        };
        for event in changes {
            let _ = events.send(event.clone());
        }
    }
}

/// Why the tools of a server are missing; none if they are known.
fn availability_note(server: &ManagedServer) -> Option<String> {
    let id = &server.config().id;
    let reason = match server.state() {
        ServerState::Down { reason, failures, .. } => {
            let reason = one_line(&reason);
            let times = if failures > 1 { format!(", {failures} times in a row") } else { String::new() };
            format!("is down ({reason}{times}); reconnecting automatically")
        }
        ServerState::Configured => "was never started; its tools are not known".to_owned(),
        ServerState::Starting { .. } if !server.has_known_tools() => {
            "is starting for the first time; its tools are not known yet".to_owned()
        }
        _ => return None,
    };
    Some(format!("{id} {reason}"))
}

/// A reason as one short line without secrets.
fn one_line(reason: &str) -> String {
    let words: Vec<&str> = reason.split_whitespace().collect();
    let line = words.join(" ");
    let mut short: String = redact(&line).chars().take(MAX_REASON_CHARS).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    escape_unsafe(&short).into_owned()
}
