//! One live connection to a server whose era is known: requests, answers, and what the server asks back.

use std::{
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use tokio::{
    sync::{broadcast, watch},
    task::AbortHandle,
    time::timeout,
};
use toolyard_core::{Caller, ProtocolEra, RawJson, SourceId};

use super::{
    Exchange, InputHandler, Outgoing, RequestError, StdioTransport, ToolCall, Transport, TransportError,
    beats::Whose, params::Speaker,
};
use crate::wire::{self, AboutServer, JsonObject, ListPage, WireError, WireLimits};

/// The request that stays open for as long as a session of the modern era lives.
pub(super) const SUBSCRIPTION: &str = "subscriptions/listen";
/// How long a server may take to take something that needs no answer.
const TELLING: Duration = Duration::from_secs(5);

/// What happened to a session since it began.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct News {
    /// How often the server said that its tools changed.
    pub tools_changed: u64,
    /// How often it said that its prompts changed.
    pub prompts_changed: u64,
    /// How often it said that its resources changed.
    pub resources_changed: u64,
    /// Why the connection is gone, once it is.
    pub closed: Option<TransportError>,
}

/// One live connection to a server.
#[derive(Debug)]
pub struct Session {
    pub(super) parts: Arc<Parts>,
    pub(super) tasks: Mutex<Vec<AbortHandle>>,
    /// The task that follows resources, in the modern era.
    pub(super) following: Mutex<Option<AbortHandle>>,
    pub(super) news: watch::Receiver<News>,
    about: AboutServer,
    /// The program behind an address, if we started it.
    program: OnceLock<StdioTransport>,
    /// Calls under way, those included that wait for a person between two rounds.
    pub(super) calls: AtomicUsize,
}

/// What a session and its background tasks share.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) server: SourceId,
    pub(super) exchange: Arc<Exchange>,
    pub(super) transport: Box<dyn Transport>,
    pub(super) speaker: ArcSwap<Speaker>,
    pub(super) input: Arc<dyn InputHandler>,
    pub(super) limits: WireLimits,
    /// Addresses of resources that changed.
    pub(super) updated: broadcast::Sender<String>,
}

impl Session {
    pub(super) fn new(parts: Arc<Parts>, news: watch::Receiver<News>, about: AboutServer) -> Self {
        Self {
            parts,
            tasks: Mutex::default(),
            following: Mutex::default(),
            news,
            about,
            program: OnceLock::new(),
            calls: AtomicUsize::new(0),
        }
    }

    /// Which protocol is spoken.
    pub fn era(&self) -> ProtocolEra {
        self.parts.speaker.load().era
    }

    /// Which revision of it.
    pub fn version(&self) -> &'static str {
        self.parts.speaker.load().version
    }

    /// What the server says about itself.
    pub fn about(&self) -> &AboutServer {
        &self.about
    }

    /// What happened since it began, and what will.
    pub fn news(&self) -> watch::Receiver<News> {
        self.news.clone()
    }

    /// The addresses of resources that the server says have changed, from now on.
    pub fn updates(&self) -> broadcast::Receiver<String> {
        self.parts.updated.subscribe()
    }

    /// Why the connection is gone, if it is.
    pub fn closed(&self) -> Option<TransportError> {
        self.parts.exchange.closed()
    }

    /// How many answers somebody waits for; what a session keeps open for itself does not count.
    pub fn busy(&self) -> usize {
        self.parts.exchange.beats.count().max(self.calls.load(Ordering::Acquire))
    }

    /// Whether we started the program behind the address.
    pub(super) fn has_program(&self) -> bool {
        self.program.get().is_some()
    }

    /// The end of what the server said on its side channel.
    pub fn last_words(&self) -> Option<String> {
        self.program.get().map_or_else(|| self.parts.transport.last_words(), Transport::last_words)
    }

    /// All tools, over all pages, each as the server wrote it.
    pub async fn list_tools(&self, silence: Duration) -> Result<Vec<RawJson>, RequestError> {
        self.list("tools/list", "tools", silence).await
    }

    /// Everything of one list, over all pages, each entry as the server wrote it: `prompts/list` has `prompts`.
    pub async fn list(
        &self,
        method: &'static str,
        key: &'static str,
        silence: Duration,
    ) -> Result<Vec<RawJson>, RequestError> {
        let limits = &self.parts.limits;
        let endless = |what: &str, limit: usize| {
            let problem = format!("there are more than {limit} {what}, or they never end");
            RequestError::from(WireError::NotAnAnswer { method, problem })
        };
        let (mut entries, mut bytes, mut cursor): (Vec<RawJson>, usize, Option<String>) =
            (Vec::new(), 0, None);
        for _ in 0..limits.pages {
            let mut ask = Ask::new(method).silence(Some(silence));
            if let Some(cursor) = &cursor {
                ask.fields = ask.fields.with_text("cursor", cursor);
            }
            let raw = self.parts.request(ask).await?;
            bytes = bytes.saturating_add(raw.get().len());
            if bytes > limits.list_bytes {
                return Err(WireError::TooLong { what: "a list", limit: limits.list_bytes }.into());
            }
            let page = ListPage::read(&raw, method, key, limits)?;
            entries.extend(page.entries);
            if entries.len() > limits.tools {
                return Err(endless(key, limits.tools));
            }
            match page.next_cursor {
                // A cursor that leads to itself would never end.
                Some(next) if cursor.as_deref() == Some(next.as_str()) => break,
                Some(next) => cursor = Some(next),
                None => return Ok(entries),
            }
        }
        Err(endless("pages", limits.pages))
    }

    /// Makes a request of our own: for tests, bridges, and what has no word here yet.
    pub async fn request(
        &self,
        method: &'static str,
        about: Option<&str>,
        fields: JsonObject,
        silence: Option<Duration>,
    ) -> Result<RawJson, RequestError> {
        let mut ask = Ask::new(method).with(fields).silence(silence);
        ask.about = about;
        self.parts.request(ask).await
    }

    /// Takes the connection down, politely first. Returns when nothing of it is left.
    pub async fn close(&self) {
        self.end_tasks();
        self.parts.exchange.close(&TransportError::Closed);
        self.parts.transport.close().await;
        if let Some(program) = self.program.get() {
            program.close().await;
        }
    }

    /// Takes over the program behind the address; it ends with the session.
    pub(super) fn adopt(&self, program: StdioTransport) {
        // A session has one program at most.
        let _ = self.program.set(program);
    }

    fn end_tasks(&self) {
        let following = self.following.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.drain(..).chain(following).for_each(|task| task.abort());
    }

    pub(super) fn keep(&self, task: AbortHandle) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end_tasks();
    }
}

/// On a connection that is gone already, nothing is sent any more.
fn not_sent(error: TransportError) -> TransportError {
    match error {
        TransportError::Busy(_) => error,
        gone => TransportError::Unreachable(format!("the connection is gone: {gone}")),
    }
}

/// One request on its way.
pub(super) struct Ask<'a> {
    pub(super) method: &'static str,
    pub(super) fields: JsonObject,
    /// The name it is about, which HTTP transports repeat in a header.
    pub(super) about: Option<&'a str>,
    pub(super) headers: &'a [(String, String)],
    silence: Option<Duration>,
    whose: Whose,
}

impl<'a> Ask<'a> {
    pub(super) fn new(method: &'static str) -> Self {
        let (fields, whose) = (JsonObject::new(), Whose::Ours);
        Self { method, fields, about: None, headers: &[], silence: None, whose }
    }

    pub(super) fn with(mut self, fields: JsonObject) -> Self {
        self.fields = fields;
        self
    }

    pub(super) fn on_behalf(mut self, call: ToolCall<'_>) -> Self {
        self.whose = match call.caller {
            Some(caller) => Whose::Callers(Arc::clone(caller), call.patience.cloned()),
            None => Whose::Nobodys,
        };
        self
    }

    pub(super) fn silence(mut self, limit: Option<Duration>) -> Self {
        self.silence = limit;
        self
    }

    fn outgoing(self, speaker: &Speaker, id: u64) -> Outgoing {
        let mut headers = speaker.headers(self.method, self.about);
        if speaker.era == ProtocolEra::Modern {
            headers.extend(self.headers.iter().cloned());
        }
        let caller = match &self.whose {
            Whose::Callers(caller, _) => Some(&**caller),
            Whose::Ours | Whose::Nobodys => None,
        };
        let may_progress = self.method == "tools/call" || caller.is_some_and(Caller::wants_progress);
        let params = speaker.params(self.fields, may_progress.then_some(id), caller);
        Outgoing { id: Some(id), method: self.method, body: wire::request(id, self.method, &params), headers }
    }
}

impl Parts {
    /// Makes one request and waits for its answer. Whoever drops this cancels the request.
    pub(super) async fn request(self: &Arc<Self>, ask: Ask<'_>) -> Result<RawJson, RequestError> {
        let speaker = self.speaker.load_full();
        self.request_as(&speaker, ask).await.map_err(RequestError::told)
    }

    /// The same in the words of another speaker than the one that was agreed on.
    pub(super) async fn request_as(
        self: &Arc<Self>,
        speaker: &Speaker,
        ask: Ask<'_>,
    ) -> Result<RawJson, RequestError> {
        let mut waiting = self.exchange.wait().map_err(not_sent)?;
        let (id, method, silence) = (waiting.id, ask.method, ask.silence);
        let mut request = UnderWay { parts: Arc::clone(self), id, method, sent: true };
        // What a session keeps open for itself is nothing that anyone waits for.
        let beat = (method != SUBSCRIPTION).then(|| self.exchange.beats.follow(id, ask.whose.clone()));
        let message = ask.outgoing(speaker, id);
        let answered = waiting.answer_to(self.transport.send(message));
        let answer = match (silence, beat) {
            (Some(limit), Some(beat)) => {
                beat.unless_silent(limit, answered).await.ok_or(RequestError::Silent(limit))?
            }
            _ => answered.await,
        };
        request.sent = false;
        Ok(answer??)
    }

    /// Sends a notification; one that does not get through is not missed.
    pub(super) async fn notify(&self, method: &'static str, fields: JsonObject) {
        let headers = self.speaker.load().headers(method, None);
        let body = wire::notification(method, &fields);
        self.tell(Outgoing { id: None, method, body, headers }).await;
    }

    /// Sends what nobody answers. A server that does not take it is not waited for: whoever tells it must go on.
    async fn tell(&self, message: Outgoing) {
        let method = message.method;
        let sent = timeout(TELLING, self.transport.send(message)).await;
        match sent {
            Ok(Ok(_sent)) => {}
            Ok(Err(error)) => tracing::debug!(server = %self.server, method, %error, "not told"),
            Err(_elapsed) => tracing::debug!(server = %self.server, method, "not taken in time"),
        }
    }

    /// Sends an answer to something the server asked.
    pub(super) async fn respond(&self, body: Vec<u8>) {
        let message = Outgoing { id: None, method: "", body, headers: Vec::new() };
        self.tell(message).await;
    }
}

/// A request that is told to the server as cancelled when nobody waits for it any more.
struct UnderWay {
    parts: Arc<Parts>,
    id: u64,
    method: &'static str,
    sent: bool,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.parts.exchange.beats.forget(self.id, !self.sent);
        let waited = self.parts.exchange.forget(self.id);
        if !self.sent || !waited || self.parts.transport.forget(self.id) || self.method == "initialize" {
            return;
        }
        // Without a runtime there is nobody left who could send it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (parts, id) = (Arc::clone(&self.parts), self.id);
            runtime.spawn(async move {
                let fields = JsonObject::new().with_value("requestId", &id.into());
                parts.notify("notifications/cancelled", fields).await;
            });
        }
    }
}
