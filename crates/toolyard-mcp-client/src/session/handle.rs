//! A live connection to a server whose revision is negotiated.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{broadcast, watch},
    task::AbortHandle,
    time::sleep,
};
use toolyard_core::{ContentHash, RawJson, RevisionFamily};
use toolyard_mcp::{JsonObject, ListPage, ServerDescription, WireError};

use crate::{
    session::{
        change_listener::{ChangeFilter, listen_for_changes},
        error::RequestError,
        inner::{OutgoingRequest, SessionInner},
        server_messages::SessionStatus,
    },
    transport::{error::TransportError, message::Transport, stdio::connection::StdioTransport},
};

/// How long an old resource subscription goes on beside the new one, so that no change is missed.
const SUBSCRIPTION_OVERLAP: Duration = Duration::from_millis(500);
const SET_LOG_LEVEL_TIMEOUT: Duration = Duration::from_secs(10);

/// A live connection to a server.
#[derive(Debug)]
pub struct Session {
    pub(crate) inner: Arc<SessionInner>,
    tasks: Mutex<Vec<AbortHandle>>,
    /// The task that listens for resource updates, in the modern revision.
    resource_listener: Mutex<Option<AbortHandle>>,
    status: watch::Receiver<SessionStatus>,
    about: ServerDescription,
    /// The process that serves the URL, if we started it.
    process: OnceLock<StdioTransport>,
    /// Calls in progress, including those that wait for input between two requests.
    calls: AtomicUsize,
    /// Hashes of the definitions that the server listed in this session, if it is not the one whose lists are recorded.
    checked_definitions: Mutex<HashMap<Arc<str>, ContentHash>>,
}

impl Session {
    pub(crate) fn new(
        inner: Arc<SessionInner>,
        status: watch::Receiver<SessionStatus>,
        about: ServerDescription,
    ) -> Self {
        Self {
            inner,
            tasks: Mutex::default(),
            resource_listener: Mutex::default(),
            status,
            about,
            process: OnceLock::new(),
            calls: AtomicUsize::new(0),
            checked_definitions: Mutex::default(),
        }
    }

    /// The family of the negotiated revision.
    pub fn revision_family(&self) -> RevisionFamily {
        self.inner.protocol.load().family
    }

    /// The negotiated revision.
    pub fn revision(&self) -> &'static str {
        self.inner.protocol.load().revision
    }

    /// What the server says about itself.
    pub fn about(&self) -> &ServerDescription {
        &self.about
    }

    /// What has changed since the session began, and updates of that.
    pub fn status(&self) -> watch::Receiver<SessionStatus> {
        self.status.clone()
    }

    /// The URIs of resources that change from now on.
    pub fn resource_updates(&self) -> broadcast::Receiver<String> {
        self.inner.resource_updates.subscribe()
    }

    /// Why the connection is closed, if it is.
    pub fn closed(&self) -> Option<TransportError> {
        self.inner.requests.closed()
    }

    /// How many requests await a response, except for those that a session keeps open. A call that waits for input counts.
    pub fn in_flight_requests(&self) -> usize {
        self.inner.requests.in_flight.count().max(self.calls.load(Ordering::Acquire))
    }

    /// The session is open: later requests do not belong to the trace of what caused it.
    pub(crate) fn end_cause(&self) {
        if let Some(telemetry) = &self.inner.telemetry {
            telemetry.forget_cause();
        }
    }

    /// The hash of a definition that the server listed in this session.
    pub(crate) fn checked_definition(&self, tool: &str) -> Option<ContentHash> {
        self.checked_definitions.lock().get(tool).copied()
    }

    pub(crate) fn set_checked_definitions(&self, hashes: HashMap<Arc<str>, ContentHash>) {
        *self.checked_definitions.lock() = hashes;
    }

    /// The sessions of clients that gave up a call a moment ago, which the server may not know yet.
    pub(crate) fn clients_of_abandoned_calls(&self) -> Vec<u64> {
        self.inner.requests.in_flight.clients_of_abandoned_calls()
    }

    /// Whether the server may remember something in this session.
    pub(crate) fn has_state(&self) -> bool {
        self.inner.transport.has_state()
    }

    /// Whether the transport usually tells which call an input request belongs to.
    pub(crate) fn relates_requests(&self) -> bool {
        self.inner.transport.relates_requests()
    }

    /// Whether the server sent an input request that did not tell which call it belongs to.
    pub(crate) fn has_unrelated_requests(&self) -> bool {
        self.inner.requests.in_flight.has_unrelated_requests()
    }

    pub(crate) fn owns_process(&self) -> bool {
        self.process.get().is_some()
    }

    /// The end of the server's stderr, if we can read it.
    pub fn stderr_tail(&self) -> Option<String> {
        self.process.get().map_or_else(|| self.inner.transport.stderr_tail(), Transport::stderr_tail)
    }

    /// All tools over all pages, as the server sent them.
    pub async fn list_tools(&self, idle_timeout: Duration) -> Result<Vec<RawJson>, RequestError> {
        self.list("tools/list", "tools", idle_timeout).await
    }

    /// The entries under `key` over all pages of a list method, as the server sent them.
    pub async fn list(
        &self,
        method: &'static str,
        key: &'static str,
        idle_timeout: Duration,
    ) -> Result<Vec<RawJson>, RequestError> {
        let limits = &self.inner.limits;
        let too_many = |what: &str, limit: usize| {
            let problem = format!("more than {limit} {what}, or endless pages");
            RequestError::from(WireError::InvalidResult { method, problem })
        };
        let (mut entries, mut bytes, mut cursor): (Vec<RawJson>, usize, Option<String>) =
            (Vec::new(), 0, None);
        for _ in 0..limits.pages {
            let fields = match &cursor {
                Some(cursor) => JsonObject::new().with_text("cursor", cursor),
                None => JsonObject::new(),
            };
            let raw = self.request(method, None, fields, Some(idle_timeout)).await?;
            bytes = bytes.saturating_add(raw.get().len());
            if bytes > limits.list_bytes {
                return Err(WireError::TooLong { what: "a list", limit: limits.list_bytes }.into());
            }
            let page = ListPage::read(&raw, method, key, limits)?;
            entries.extend(page.entries);
            if entries.len() > limits.list_entries {
                return Err(too_many(key, limits.list_entries));
            }
            match page.next_cursor {
                // A cursor that leads to itself would never end.
                Some(next) if cursor.as_deref() == Some(next.as_str()) => break,
                Some(next) => cursor = Some(next),
                None => return Ok(entries),
            }
        }
        Err(too_many("pages", limits.pages))
    }

    /// Makes a request that is not on behalf of a caller.
    pub async fn request(
        &self,
        method: &'static str,
        subject: Option<&str>,
        fields: JsonObject,
        idle_timeout: Option<Duration>,
    ) -> Result<RawJson, RequestError> {
        let request = OutgoingRequest { subject, idle_timeout, ..OutgoingRequest::new(method, fields) };
        self.inner.request(request).await
    }

    /// Sets the minimum level of the log messages that a legacy server sends, if it sends any.
    pub(crate) async fn set_log_level(&self, level: &str) {
        if self.revision_family() == RevisionFamily::Modern || !self.about.capabilities.logging {
            return;
        }
        let fields = JsonObject::new().with_text("level", level);
        let response = self.request("logging/setLevel", None, fields, Some(SET_LOG_LEVEL_TIMEOUT));
        if let Err(error) = response.await {
            tracing::debug!(server = %self.inner.server, %error, "failed to set the log level");
        }
    }

    /// Listens for updates of exactly these resources, in the modern revision.
    pub(crate) fn listen_for_resources(&self, uris: Vec<String>) {
        let listener = (!uris.is_empty()).then(|| {
            let filter = ChangeFilter::Resources(uris);
            tokio::spawn(listen_for_changes(Arc::clone(&self.inner), filter)).abort_handle()
        });
        let previous = std::mem::replace(&mut *self.resource_listener.lock(), listener);
        if let Some(previous) = previous {
            tokio::spawn(async move {
                sleep(SUBSCRIPTION_OVERLAP).await;
                previous.abort();
            });
        }
    }

    /// Counts a call until the returned guard is dropped.
    pub(super) fn count_call(&self) -> CallCount<'_> {
        self.calls.fetch_add(1, Ordering::AcqRel);
        CallCount(&self.calls)
    }

    /// Shuts the connection down gracefully, and waits until its tasks and processes have ended.
    pub async fn close(&self) {
        self.abort_tasks();
        self.inner.requests.close(&TransportError::Closed);
        self.inner.transport.close().await;
        if let Some(process) = self.process.get() {
            process.close().await;
        }
    }

    /// Takes over the process that serves the URL; it ends with the session.
    pub(crate) fn own_process(&self, process: StdioTransport) {
        // A session has one process at most.
        let _ = self.process.set(process);
    }

    /// Takes over a background task; it ends with the session.
    pub(crate) fn own_task(&self, task: AbortHandle) {
        self.tasks.lock().push(task);
    }

    fn abort_tasks(&self) {
        let listener = self.resource_listener.lock().take();
        self.tasks.lock().drain(..).chain(listener).for_each(|task| task.abort());
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.abort_tasks();
    }
}

pub(super) struct CallCount<'a>(&'a AtomicUsize);

impl Drop for CallCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
