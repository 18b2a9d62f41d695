//! [`OwnedTool`]: a tool of a stateful server. Its calls go to the process that owns the session with the server.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use parking_lot::{RwLock, RwLockWriteGuard};
use tokio::time::{Instant, sleep};
use toolyard_core::{
    BoxFuture, CallContext, CallerIdentity, ContentHash, ErrorKind, NameClaim, PeerError, SourceId,
    SourceInfo, SourceSignal, StorageError, Tool, ToolCallRequest, ToolError, ToolOutput, ToolSpec,
};

use super::{
    owners::{Admission, Location, SESSION_PREFIX, SessionOwners},
    service::{Envelope, OWNED_CALL_SERVICE, Refusal},
};
use crate::call_outcomes::PendingOutcome;
use crate::remote_call::{CallTarget, LocalTools, ReplayedExchange, await_outcome, encode_request};

/// Pause between two attempts to reach the owner of a session.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// How long before the deadline of a call the search for an owner ends, so that the error can say that nothing was sent.
const DEADLINE_MARGIN: Duration = Duration::from_millis(50);

type ToolsBySource = HashMap<SourceId, HashMap<Arc<str>, Arc<OwnedTool>>>;

/// The tools of stateful servers, as other processes find them here.
#[derive(Default)]
pub struct OwnedTools {
    by_source: RwLock<ToolsBySource>,
}

impl fmt::Debug for OwnedTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedTools").finish_non_exhaustive()
    }
}

impl OwnedTools {
    /// Replaces the tools of a source by tools whose calls go to the owner of its session, and returns those.
    pub fn replace(
        &self,
        source: &SourceInfo,
        tools: Vec<Arc<dyn Tool>>,
        owners: &Arc<SessionOwners>,
    ) -> Vec<Arc<dyn Tool>> {
        let owned = tools.into_iter().map(|inner| {
            Arc::new(OwnedTool {
                source: source.id.clone(),
                is_trusted: source.trusted,
                definition: OnceLock::new(),
                owners: Arc::clone(owners),
                inner,
            })
        });
        let owned: Vec<Arc<OwnedTool>> = owned.collect();
        let by_name = owned.iter().map(|tool| (Arc::clone(&tool.spec().name), Arc::clone(tool))).collect();
        self.write().insert(source.id.clone(), by_name);
        owned.into_iter().map(|tool| tool as Arc<dyn Tool>).collect()
    }

    /// Whether this process has the server of a session.
    pub(super) fn has_session(&self, session: &str) -> bool {
        let server = session.strip_prefix(SESSION_PREFIX).unwrap_or(session);
        let server = server.split_once('/').map_or(server, |(server, _)| server);
        let by_source = self.by_source.read();
        by_source.contains_key(&SourceId::from(server))
    }

    /// Removes the tools of a source.
    pub fn remove(&self, source: &SourceId) {
        self.write().remove(source);
    }

    fn write(&self) -> RwLockWriteGuard<'_, ToolsBySource> {
        self.by_source.write()
    }
}

/// The tools by their sources, shared with the service that calls them for other processes.
impl LocalTools for Arc<OwnedTools> {
    fn find(
        &self,
        source: &SourceId,
        tool: &str,
        definition: Option<&ContentHash>,
    ) -> Result<Arc<dyn Tool>, ToolError> {
        let by_source = self.by_source.read();
        let found = by_source.get(source).and_then(|tools| tools.get(tool));
        let missing = |message: &str| {
            ToolError::new(ErrorKind::Unavailable, message)
                .with_source_signal(SourceSignal::Unknown)
                .with_operator_hint("give all processes of the cluster the same settings")
                .on_tool(tool)
                .on_source(source)
        };
        let found =
            found.ok_or_else(|| missing("the process that owns the session does not have this tool"))?;
        if definition.is_some_and(|definition| found.definition() != definition) {
            return Err(missing("the process that owns the session has another definition of this tool"));
        }
        Ok(Arc::clone(&found.inner))
    }
}

/// A tool of a stateful server.
pub struct OwnedTool {
    source: SourceId,
    /// The hash of its definition, computed at the first call because most tools are never called.
    definition: OnceLock<ContentHash>,
    owners: Arc<SessionOwners>,
    is_trusted: bool,
    inner: Arc<dyn Tool>,
}

/// What became of a call that was sent to another process.
enum Forwarded {
    Outcome(Result<ToolOutput, ToolError>),
    /// Nothing was called there.
    Refused(Refusal),
    NotReached(String),
}

impl OwnedTool {
    fn definition(&self) -> &ContentHash {
        self.definition.get_or_init(|| {
            let spec = self.inner.spec();
            let text = spec
                .raw
                .clone()
                .map_or_else(|| serde_json::to_string(spec).unwrap_or_default(), |raw| raw.get().to_owned());
            ContentHash::of(text.as_bytes())
        })
    }

    async fn execute(
        &self,
        request: &ToolCallRequest,
        context: &CallContext,
    ) -> Result<ToolOutput, ToolError> {
        if !self.inner.is_stateful() {
            return self.inner.call(request, context).await;
        }
        let mut pending = None;
        let outcome = self.execute_at_owner(request, context, &mut pending).await;
        if let Some(pending) = pending {
            pending.end(&outcome);
        }
        outcome
    }

    /// Sets `pending` if the call is forwarded.
    async fn execute_at_owner<'a>(
        &'a self,
        request: &ToolCallRequest,
        context: &CallContext,
        pending: &mut Option<PendingOutcome<'a>>,
    ) -> Result<ToolOutput, ToolError> {
        let envelope = self.envelope(context);
        let deadline = Instant::from_std(context.deadline);
        let give_up = deadline.checked_sub(DEADLINE_MARGIN).unwrap_or(deadline);
        let (mut unreachable, mut problem) = (Vec::new(), None);
        loop {
            match self.owners.locate(&envelope.session, &unreachable).await {
                Ok(Location::Here(fence)) => {
                    match self.owners.admit(&envelope.session, fence, &envelope.user).await {
                        Ok(Admission::Admitted(_session_use)) => {
                            return self.call_here(request, context, pending).await;
                        }
                        Ok(Admission::SessionLost(fence)) => {
                            return Err(self.session_lost(&envelope, fence).await);
                        }
                        Ok(Admission::Expired) => {}
                        Err(error) => {
                            return self
                                .call_without_store(&envelope, &error, request, context, pending)
                                .await;
                        }
                    }
                }
                Ok(Location::There(process)) => {
                    pending.get_or_insert_with(|| self.owners.forwarded.begin());
                    match self.forward(process, &envelope, request, context).await {
                        Forwarded::Outcome(outcome) => return outcome,
                        Forwarded::Refused(Refusal::SessionLost { fence }) => {
                            return Err(self.session_lost(&envelope, fence).await);
                        }
                        Forwarded::Refused(Refusal::StoreUnavailable { reason }) => {
                            return Err(self.store_unavailable(&reason));
                        }
                        Forwarded::Refused(Refusal::Elsewhere { owner }) => {
                            self.owners.note_owner(&envelope.session, owner);
                        }
                        Forwarded::Refused(Refusal::NotServed) => {
                            self.owners.forget_owner(&envelope.session);
                            unreachable.push(process);
                            problem = Some("the process does not serve this server".to_owned());
                        }
                        Forwarded::NotReached(reason) => {
                            self.owners.forget_owner(&envelope.session);
                            unreachable.push(process);
                            problem = Some(reason);
                        }
                    }
                }
                Err(error) => {
                    return self.call_without_store(&envelope, &error, request, context, pending).await;
                }
            }
            if Instant::now() + RETRY_PAUSE >= give_up {
                return Err(self.unreachable(problem.as_deref()));
            }
            sleep(RETRY_PAUSE).await;
        }
    }

    /// Calls the server from this process. An earlier attempt may have been forwarded; the call does not count as such.
    async fn call_here(
        &self,
        request: &ToolCallRequest,
        context: &CallContext,
        pending: &mut Option<PendingOutcome<'_>>,
    ) -> Result<ToolOutput, ToolError> {
        if let Some(pending) = pending.take() {
            pending.dismiss();
        }
        self.inner.call(request, context).await
    }

    fn envelope(&self, context: &CallContext) -> Envelope {
        let identity = context.identity.as_deref().filter(|identity| identity.is_distinguished());
        let user = identity.map(|identity| identity.owner().to_string()).unwrap_or_default();
        let is_isolated = self.inner.is_isolated(context.identity.as_deref());
        let session = if is_isolated {
            format!("{SESSION_PREFIX}{}/{user}", self.source)
        } else {
            format!("{SESSION_PREFIX}{}", self.source)
        };
        Envelope { session, user, is_read_only: self.is_read_only() }
    }

    /// Whether calls change nothing, as far as the tool is believed.
    fn is_read_only(&self) -> bool {
        self.is_trusted && self.inner.spec().hints.read_only == Some(true)
    }

    async fn forward(
        &self,
        process: u64,
        envelope: &Envelope,
        request: &ToolCallRequest,
        context: &CallContext,
    ) -> Forwarded {
        let target = CallTarget { source: self.source.clone(), definition: Some(*self.definition()) };
        let call = match encode_request(&target, request, context) {
            Ok(call) => call,
            Err(error) => return Forwarded::Outcome(Err(error)),
        };
        let opened = self.owners.peers.open(process, OWNED_CALL_SERVICE, envelope.encode(&call)).await;
        let mut exchange = match opened {
            Ok(exchange) => exchange,
            Err(PeerError::NotReached(reason)) => return Forwarded::NotReached(reason),
            Err(PeerError::Lost(reason)) => return Forwarded::Outcome(Err(self.lost(&reason))),
        };
        let first = match exchange.receive().await {
            Ok(Some(first)) => first,
            Ok(None) => return Forwarded::Outcome(Err(self.lost("the exchange ended without an answer"))),
            Err(PeerError::NotReached(reason)) => return Forwarded::NotReached(reason),
            Err(PeerError::Lost(reason)) => return Forwarded::Outcome(Err(self.lost(&reason))),
        };
        if let Some(refusal) = Refusal::decode(&first) {
            return Forwarded::Refused(refusal);
        }
        let exchange = Box::new(ReplayedExchange::new(first, exchange));
        Forwarded::Outcome(await_outcome(exchange, &target, request, context).await)
    }

    /// Without the store, no other process can take the session. So its last owner goes on with calls that change nothing.
    async fn call_without_store(
        &self,
        envelope: &Envelope,
        error: &StorageError,
        request: &ToolCallRequest,
        context: &CallContext,
        pending: &mut Option<PendingOutcome<'_>>,
    ) -> Result<ToolOutput, ToolError> {
        if envelope.is_read_only && self.owners.was_used_here(&envelope.session, &envelope.user) {
            return self.call_here(request, context, pending).await;
        }
        Err(self.store_unavailable(&error.to_string()))
    }

    fn store_unavailable(&self, reason: &str) -> ToolError {
        let message =
            format!("the store does not say which process owns the session: {reason}; nothing was sent");
        self.error(ErrorKind::Unavailable, message).with_hint("retry later")
    }

    async fn session_lost(&self, envelope: &Envelope, fence: i64) -> ToolError {
        self.owners.record_told(&envelope.session, fence, &envelope.user).await;
        let message = "the session with the server is gone, with all that the server remembered for this caller; nothing was sent";
        self.error(ErrorKind::SessionLost, message.to_owned()).with_hint(
            "call again to begin a new session; repeat earlier calls whose effect the server must remember",
        )
    }

    fn unreachable(&self, reason: Option<&str>) -> ToolError {
        let reason = reason.unwrap_or("the owner has changed too often");
        let message =
            format!("the process that owns the session cannot be reached: {reason}; nothing was sent");
        self.error(ErrorKind::Unavailable, message).with_hint("retry later")
    }

    fn lost(&self, reason: &str) -> ToolError {
        self.error(ErrorKind::ResponseLost, format!("lost the process that owns the session: {reason}"))
    }

    fn error(&self, kind: ErrorKind, message: String) -> ToolError {
        ToolError::new(kind, message)
            .with_source_signal(SourceSignal::Unknown)
            .on_tool(&self.inner.spec().name)
            .on_source(&self.source)
    }
}

impl fmt::Debug for OwnedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedTool").field("source", &self.source).finish_non_exhaustive()
    }
}

impl Tool for OwnedTool {
    fn spec(&self) -> &ToolSpec {
        self.inner.spec()
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.execute(request, context))
    }

    fn name_claim(&self) -> Option<&NameClaim> {
        self.inner.name_claim()
    }

    fn is_isolated(&self, identity: Option<&CallerIdentity>) -> bool {
        self.inner.is_isolated(identity)
    }

    fn is_stateful(&self) -> bool {
        self.inner.is_stateful()
    }

    fn needs_conversation(&self) -> bool {
        self.inner.needs_conversation()
    }
}
