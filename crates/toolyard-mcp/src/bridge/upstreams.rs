//! What all servers behind a door offer besides tools, as one: listed without starting any, asked when somebody asks.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use tokio::sync::{broadcast, watch};
use toolyard_core::{BoxFuture, RawJson, SourceId, redact};

use super::{
    LocalSkills,
    index::{Index, Route, moved},
};
use crate::{
    client::{AskError, ContentCall, McpManager, Offer, RequestError, Server, ServerEvent, ServerState},
    server::{ContentEvent, ContentKind, ContentKinds, ContentRequest, ContentService},
    wire::{Edit, JsonObject, RpcError, edited, field_of, text_of},
};

/// JSON-RPC's codes for parameters that cannot be, and for trouble behind us.
const INVALID_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;
/// A longer name or address is none.
const LONGEST: usize = 8 << 10;
/// How many events may wait for a door.
const EVENTS: usize = 1_024;
/// More conversations are not remembered for the level of their log.
const MOST_LEVELS: usize = 4_096;
/// From what a developer wants to know to what nobody can miss.
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Which servers belong to a door.
type Filter = Box<dyn Fn(&SourceId) -> bool + Send + Sync>;

/// What the servers behind a door offer besides tools.
pub struct Upstreams {
    pub(super) shared: Arc<Shared>,
    index: ArcSwap<Index>,
    local: Option<Arc<LocalSkills>>,
    events: broadcast::Sender<ContentEvent>,
    levels: Mutex<HashMap<u64, usize>>,
    pub(super) settled: watch::Receiver<bool>,
    tasks: Vec<tokio::task::AbortHandle>,
}

/// What the tasks of a door need as well.
pub(super) struct Shared {
    pub(super) manager: Arc<McpManager>,
    pub(super) filter: Filter,
    /// Who follows resources.
    number: u64,
}

impl Shared {
    /// The servers of this door that are switched on, by id.
    pub(super) fn servers(&self) -> Vec<Arc<Server>> {
        let mut servers = self.manager.servers();
        servers.retain(|server| server.config().enabled && (self.filter)(&server.config().id));
        servers
    }
}

impl fmt::Debug for Upstreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstreams").field("manager", &self.shared.manager).finish_non_exhaustive()
    }
}

impl Drop for Upstreams {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::AbortHandle::abort);
    }
}

impl Upstreams {
    /// The servers of a manager that `filter` lets through. From now on they are looked after as those of a door are: servers
    /// never seen are started once, and whoever is down is tried again for as long as the manager lives.
    pub fn new(manager: Arc<McpManager>, filter: impl Fn(&SourceId) -> bool + Send + Sync + 'static) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        manager.keep_reviving();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let shared = Arc::new(Shared { manager, filter: Box::new(filter), number });
        let events = broadcast::Sender::new(EVENTS);
        let (tell, settled) = watch::channel(false);
        let discovering = tokio::spawn({
            let shared = Arc::clone(&shared);
            async move {
                shared.manager.get_to_know(|id| (shared.filter)(id)).await;
                tell.send_replace(true);
            }
        });
        let passing_on = tokio::spawn(pass_on(Arc::clone(&shared), shared.manager.events(), events.clone()));
        Self {
            shared,
            index: ArcSwap::default(),
            local: None,
            events,
            levels: Mutex::default(),
            settled,
            tasks: vec![discovering.abort_handle(), passing_on.abort_handle()],
        }
    }

    /// The same beside skills of this machine, which keep their addresses whatever servers call theirs.
    #[must_use]
    pub fn beside(mut self, local: Arc<LocalSkills>) -> Self {
        self.local = Some(local);
        self
    }

    /// What is not offered as one might expect, such as resources of two servers at one address; one line each.
    pub fn warnings(&self) -> Vec<String> {
        self.index().warnings.clone()
    }

    fn index(&self) -> Arc<Index> {
        let mut servers = self.shared.servers();
        // Where two have the same address, none gets it from one that is trusted by being called something else.
        servers.sort_by_key(|server| !server.config().trusted);
        let offers: Vec<(SourceId, Arc<Offer>)> =
            servers.iter().map(|server| (server.config().id.clone(), server.offer())).collect();
        let local = self.local.as_ref().map(|local| local.folders()).unwrap_or_default();
        let current = self.index.load_full();
        if current.is_of(&offers, &local) {
            return current;
        }
        let index = Arc::new(Index::new(offers, local));
        self.index.store(Arc::clone(&index));
        index
    }

    async fn answer(&self, request: &ContentRequest<'_>) -> Option<Result<RawJson, RpcError>> {
        match request.method {
            "prompts/get" => self.get_prompt(request).await,
            "completion/complete" => self.complete(request).await,
            "resources/read" => self.at_address(request, "resources/read").await,
            "resources/directory/read" => self.at_address(request, "resources/directory/read").await,
            "skills/get" => self.at_address(request, "skills/get").await,
            "resources/subscribe" => self.watch(request, true).await,
            "resources/unsubscribe" => self.watch(request, false).await,
            "logging/setLevel" => Some(self.set_level(request).await),
            _ => None,
        }
    }

    async fn get_prompt(&self, request: &ContentRequest<'_>) -> Option<Result<RawJson, RpcError>> {
        let index = self.index();
        let name = text_of(request.params, "name", LONGEST)?;
        let (server, own) = index.prompt(&name)?;
        let fields = passed_on(request.params, |key, _| match key {
            "name" => Edit::Text(own.to_owned()),
            _ => Edit::Keep,
        });
        Some(self.ask(server, request, "prompts/get", Some(own), &fields).await)
    }

    async fn complete(&self, request: &ContentRequest<'_>) -> Option<Result<RawJson, RpcError>> {
        let index = self.index();
        let reference = field_of(request.params, "ref")?;
        let named = |key| text_of(&reference, key, LONGEST);
        let (server, key, own) = match (named("name"), named("uri")) {
            (Some(name), _) => {
                let (server, own) = index.prompt(&name)?;
                (server.clone(), "name", own.to_owned())
            }
            (None, Some(uri)) => match index.template(&uri) {
                Some(server) => (server.clone(), "uri", uri),
                None => {
                    let Route { server, address, .. } = index.route(&uri)?;
                    (server, "uri", address)
                }
            },
            (None, None) => return None,
        };
        let reference = edited(&reference, |field, _| match field {
            field if field == key => Edit::Text(own.clone()),
            _ => Edit::Keep,
        });
        let fields = passed_on(request.params, |field, _| match field {
            "ref" => Edit::Raw(reference.to_raw()),
            _ => Edit::Keep,
        });
        Some(self.ask(&server, request, "completion/complete", None, &fields).await)
    }

    /// Asks whoever answers for an address.
    async fn at_address(
        &self,
        request: &ContentRequest<'_>,
        method: &'static str,
    ) -> Option<Result<RawJson, RpcError>> {
        let uri = text_of(request.params, "uri", LONGEST)?;
        let Route { server, address, moved: folders } = self.index().route(&uri)?;
        let offer = self.shared.manager.server(server.as_str())?.offer();
        let can = match method {
            "resources/directory/read" => offer.directories,
            "skills/get" => !offer.skills.is_empty(),
            _ => true,
        };
        if !can {
            let message = format!("the server of {uri} does not know of that");
            return Some(Err(RpcError { code: INVALID_PARAMS, message, data: None }));
        }
        let fields = passed_on(request.params, |key, _| match key {
            "uri" => Edit::Text(address.clone()),
            _ => Edit::Keep,
        });
        let result = self.ask(&server, request, method, Some(&address), &fields).await;
        Some(match folders {
            Some((offered, own)) => result.map(|result| moved(&result, &own, &offered)),
            None => result,
        })
    }

    async fn watch(&self, request: &ContentRequest<'_>, follow: bool) -> Option<Result<RawJson, RpcError>> {
        let uri = text_of(request.params, "uri", LONGEST)?;
        let Route { server, address, .. } = self.index().route(&uri)?;
        let server = self.shared.manager.server(server.as_str())?;
        let number = self.shared.number;
        let done = match follow {
            true if !server.offer().subscriptions => {
                let message = format!("the server of {uri} does not tell of changes");
                return Some(Err(RpcError { code: INVALID_PARAMS, message, data: None }));
            }
            true => server.watch(number, &address).await,
            false => server.unwatch(number, &address).await,
        };
        Some(done.map(|()| RawJson::empty_object()).map_err(|error| told(&server.config().id, error)))
    }

    /// Servers of the legacy era write for all clients at once, so the lowest level that anyone wants counts; whoever wants
    /// less is not shown the rest.
    async fn set_level(&self, request: &ContentRequest<'_>) -> Result<RawJson, RpcError> {
        let level = text_of(request.params, "level", LONGEST);
        let level = level.and_then(|level| LEVELS.iter().position(|known| *known == level));
        let Some(level) = level else {
            let message = format!("params.level is none of {}", LEVELS.join(", "));
            return Err(RpcError { code: INVALID_PARAMS, message, data: None });
        };
        let conversation = request.caller.as_ref().map_or(0, |caller| caller.conversation());
        let lowest = {
            let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
            if levels.len() >= MOST_LEVELS {
                levels.clear();
            }
            levels.insert(conversation, level);
            levels.values().copied().min().and_then(|lowest| LEVELS.get(lowest))
        };
        if let Some(lowest) = lowest {
            self.shared.manager.set_log_level(lowest).await;
        }
        Ok(RawJson::empty_object())
    }

    async fn ask(
        &self,
        server: &SourceId,
        request: &ContentRequest<'_>,
        method: &'static str,
        about: Option<&str>,
        fields: &JsonObject,
    ) -> Result<RawJson, RpcError> {
        let gone = || RpcError { code: INTERNAL, message: format!("{server} is gone"), data: None };
        let server = self.shared.manager.server(server.as_str()).ok_or_else(gone)?;
        let call = ContentCall { method, about, fields, caller: request.caller.as_ref() };
        server.ask(call).await.map_err(|error| told(&server.config().id, error))
    }
}

impl ContentService for Upstreams {
    /// Servers nobody has seen yet may have anything.
    fn kinds(&self) -> ContentKinds {
        let servers = self.shared.servers();
        let unknown = servers.iter().any(|server| !server.is_known());
        let any = |has: fn(&Offer) -> bool| unknown || servers.iter().any(|server| has(&server.offer()));
        ContentKinds {
            prompts: any(|offer| !offer.prompts.is_empty()),
            resources: any(|offer| offer.has_resources),
            subscriptions: any(|offer| offer.subscriptions),
            completions: any(|offer| offer.completions),
            skills: servers.iter().any(|server| !server.offer().skills.is_empty()),
            logging: any(|offer| offer.logging),
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
        Box::pin(async move { self.answer(&request).await })
    }

    fn events(&self) -> Option<broadcast::Receiver<ContentEvent>> {
        Some(self.events.subscribe())
    }
}

/// The parameters of a request as another server gets them: what they say about their sender stays here, and so do answers,
/// which the caller has.
fn passed_on(params: &RawJson, mut edit: impl FnMut(&str, &RawJson) -> Edit) -> JsonObject {
    edited(params, |key, value| match key {
        "_meta" | "inputResponses" | "requestState" => Edit::Leave,
        _ => edit(key, value),
    })
}

/// What a client is told of a failure: an error of the server as it came, else who failed and why.
fn told(server: &SourceId, error: AskError) -> RpcError {
    match error {
        AskError::Request(RequestError::Rpc(error)) => error,
        other => {
            let message = format!("{server}: {other}");
            RpcError { code: INTERNAL, message: redact(&message).into_owned(), data: None }
        }
    }
}

/// Tells a door of what changed at its servers.
async fn pass_on(
    shared: Arc<Shared>,
    mut changes: broadcast::Receiver<ServerEvent>,
    events: broadcast::Sender<ContentEvent>,
) {
    loop {
        let told: &[ContentEvent] = match changes.recv().await {
            Ok(ServerEvent::PromptsChanged(id)) if (shared.filter)(&id) => &[ContentEvent::PromptsChanged],
            Ok(ServerEvent::ResourcesChanged(id)) if (shared.filter)(&id) => {
                &[ContentEvent::ResourcesChanged]
            }
            Ok(ServerEvent::ResourceUpdated(id, address)) if (shared.filter)(&id) => {
                // Nobody may be interested.
                let _ = events.send(ContentEvent::ResourceUpdated(address));
                continue;
            }
            Ok(_) => continue,
            // What was missed may have been anything.
            Err(broadcast::error::RecvError::Lagged(_)) => {
                &[ContentEvent::PromptsChanged, ContentEvent::ResourcesChanged]
            }
            Err(broadcast::error::RecvError::Closed) => return,
        };
        for event in told {
            let _ = events.send(event.clone());
        }
    }
}

/// One line on a server whose tools are missing, and why; none if they are there.
pub(super) fn note(server: &Server) -> Option<String> {
    let id = &server.config().id;
    let why = match server.state() {
        ServerState::Down { reason, failures, .. } => {
            let reason = one_line(&reason);
            let tries = if failures > 1 { format!(", {failures} times in a row") } else { String::new() };
            format!("is down ({reason}{tries}) and is tried again by itself")
        }
        ServerState::Configured => "was never seen; its tools are not known".to_owned(),
        ServerState::Starting { .. } if !server.is_known() => {
            "is starting for the first time; its tools are not known yet".to_owned()
        }
        _ => return None,
    };
    Some(format!("{id} {why}"))
}

/// A reason in one line, without secrets, and not endless.
fn one_line(reason: &str) -> String {
    let words: Vec<&str> = reason.split_whitespace().collect();
    let line = words.join(" ");
    let mut short: String = redact(&line).chars().take(200).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    toolyard_core::shown(&short).into_owned()
}
