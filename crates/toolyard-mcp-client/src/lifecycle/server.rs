//! One configured server: started on demand, once for all callers, and supervised while it runs.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use toolyard_core::{
    ContentHash, RevisionFamily, StoredDefinition, ToolError, telemetry::SpanContext, unix_millis,
};
use toolyard_mcp::{JsonObject, error_code::METHOD_NOT_FOUND};

use crate::{
    config::{McpServerConfig, TransportConfig},
    content::server_content::{ContentLists, ServerContent},
    lifecycle::{
        back_channel::BackChannel,
        caller_sessions::CallerSessions,
        connect::{ConnectOptions, ConnectTarget, connect},
        connect_error::ConnectError,
        host::Host,
        isolation::{instances::PrivateInstances, role::InstanceRole},
        shared::ManagerShared,
        state::{Lifecycle, ServerState, SessionAccess, Start, StartReason, StartSender, StopTarget},
        subscriptions::ResourceSubscriptions,
        supervisor::{DRAIN_POLL_INTERVAL, close_when_unused},
    },
    pinning::{CacheError, CachedServer, ToolApprovals},
    server_secrets::ServerSecrets,
    session::{error::RequestError, handle::Session, server_messages::SessionStatus},
    transport::stdio::{running_processes::RunningProcesses, stderr_tail::StderrTail},
};

const STDERR_TAIL_BYTES: usize = 16 << 10;
/// How long the first call waits for prompts, resources and skills.
const CONTENT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a server may take to show that it still has a session.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// One configured server.
#[derive(Debug)]
pub struct ManagedServer {
    pub(super) config: McpServerConfig,
    pub(super) host: Arc<Host>,
    pub(super) shared: Arc<ManagerShared>,
    pub(super) stderr_tail: Arc<StderrTail>,
    pub(super) secrets: Arc<ServerSecrets>,
    /// The processes that were started, until they have ended.
    pub(super) processes: RunningProcesses,
    pub(super) role: InstanceRole,
    pub(super) state: Mutex<ManagedState>,
    /// Serializes reading and recording of lists.
    pub(super) refresh_lock: tokio::sync::Mutex<()>,
    /// Serializes registrations of the tools.
    pub(super) register_lock: Mutex<()>,
}

/// Everything about a server that changes.
#[derive(Debug)]
pub(super) struct ManagedState {
    pub(super) lifecycle: Lifecycle<Session>,
    /// Sessions that are being closed; each becomes true once its session is closed.
    pub(super) closing: Vec<watch::Receiver<bool>>,
    /// Replaced sessions whose requests in flight may complete.
    pub(super) draining: Vec<Arc<Session>>,
    pub(super) revision_family: Option<RevisionFamily>,
    pub(super) back_channel: BackChannel,
    /// Tools that can ask for input only in a modern session, while the usual one is legacy.
    pub(super) modern_tools: BTreeSet<String>,
    pub(super) approvals: Arc<ToolApprovals>,
    /// The hash of the list that the latest session of this process sent.
    pub(super) listed_tools: Option<ContentHash>,
    pub(super) content: Arc<ServerContent>,
    pub(super) subscriptions: ResourceSubscriptions,
    pub(super) caller_sessions: CallerSessions,
}

impl ManagedState {
    /// Closes a session in the background. The next start waits for that.
    pub(super) fn close_session(&mut self, session: Arc<Session>) {
        let (sender, closed) = watch::channel(false);
        self.closing.retain(|closed| !*closed.borrow());
        self.closing.push(closed);
        tokio::spawn(async move {
            session.close().await;
            sender.send_replace(true);
        });
    }
}

impl ManagedServer {
    /// A server whose tools the caller registers.
    pub(super) fn new(
        config: McpServerConfig,
        host: Arc<Host>,
        shared: Arc<ManagerShared>,
        private: Arc<PrivateInstances>,
        cached: Option<CachedServer>,
    ) -> Arc<Self> {
        let lifecycle = Lifecycle::new(config.enabled, cached.is_some(), Instant::now());
        let CachedServer { revision_family, approvals, content } = cached.unwrap_or_else(|| CachedServer {
            approvals: host.cache.provisional_approvals(&config),
            ..CachedServer::default()
        });
        let state = ManagedState {
            lifecycle,
            closing: Vec::new(),
            draining: Vec::new(),
            back_channel: BackChannel::default(),
            modern_tools: BTreeSet::new(),
            revision_family: config.revision_family.or(revision_family),
            approvals: Arc::new(approvals),
            listed_tools: None,
            content: Arc::new(content),
            subscriptions: ResourceSubscriptions::default(),
            caller_sessions: CallerSessions::default(),
        };
        let secrets = Arc::new(host.possible_secrets(&config));
        let stderr_tail = StderrTail::new(STDERR_TAIL_BYTES, host.secrets_of(&config));
        let stderr_tail = Arc::new(stderr_tail.with_server_secrets(Arc::clone(&secrets)));
        let refresh_lock = tokio::sync::Mutex::default();
        Arc::new(Self {
            config,
            host,
            shared,
            stderr_tail,
            secrets,
            processes: RunningProcesses::default(),
            role: InstanceRole::shared(private),
            state: Mutex::new(state),
            refresh_lock,
            register_lock: Mutex::default(),
        })
    }

    /// The state of the server.
    pub fn state(&self) -> ServerState {
        self.state.lock().lifecycle.state()
    }

    /// The configuration.
    pub fn config(&self) -> &McpServerConfig {
        &self.config
    }

    /// The tools: approved, waiting for approval, and invalid.
    pub fn tool_approvals(&self) -> Arc<ToolApprovals> {
        Arc::clone(&self.state.lock().approvals)
    }

    /// Prompts, resources and skills.
    pub fn content(&self) -> Arc<ServerContent> {
        Arc::clone(&self.state.lock().content)
    }

    /// Whether the tools are known: read by this process, or cached by an earlier one.
    pub fn has_known_tools(&self) -> bool {
        self.state.lock().lifecycle.has_known_tools()
    }

    /// The family of revisions that the server spoke last, that its input requests need, or that is configured.
    pub fn revision_family(&self) -> Option<RevisionFamily> {
        let state = self.state.lock();
        match state.back_channel {
            BackChannel::Legacy => Some(RevisionFamily::Legacy),
            BackChannel::Untested | BackChannel::Missing => state.revision_family,
        }
    }

    /// Whether the server may remember something between two calls: a program, or a session of an MCP revision that has sessions. The
    /// tokens of callers stay in the process that they were presented to, so servers that need those are called from there.
    pub fn is_stateful(&self) -> bool {
        let has_sessions = match self.config.transport {
            TransportConfig::Stdio { .. } => true,
            TransportConfig::Http { .. } => self.revision_family() != Some(RevisionFamily::Modern),
        };
        has_sessions && !self.config.stateless && !self.config.has_tokens_per_caller()
    }

    /// The end of the server's stderr.
    pub fn stderr_tail(&self) -> &StderrTail {
        &self.stderr_tail
    }

    /// The live session, if there is one.
    pub fn live_session(&self) -> Option<Arc<Session>> {
        self.state.lock().lifecycle.session().filter(|session| session.closed().is_none()).cloned()
    }

    /// The live session, which is started if necessary. Fails at once while the server waits for its next retry.
    pub async fn connect(self: &Arc<Self>) -> Result<Arc<Session>, ConnectError> {
        self.session(StartReason::Call, None).await
    }

    /// Like [`Self::connect`]; the requests of a start belong to the trace of `cause`.
    pub(super) async fn connect_for(
        self: &Arc<Self>,
        cause: Option<SpanContext>,
    ) -> Result<Arc<Session>, ConnectError> {
        self.session(StartReason::Call, cause).await
    }

    /// The live session, the one that is being started, or a new one.
    pub(super) async fn session(
        self: &Arc<Self>,
        reason: StartReason,
        cause: Option<SpanContext>,
    ) -> Result<Arc<Session>, ConnectError> {
        let start = {
            let mut state = self.state.lock();
            let is_open = |session: &Session| session.closed().is_none();
            match state.lifecycle.access(reason, Instant::now(), is_open)? {
                SessionAccess::Running(session) => return Ok(session),
                SessionAccess::Pending(start) => start,
                SessionAccess::MustStart { start, sender, replaced, kept } => {
                    if let Some(replaced) = replaced {
                        state.close_session(replaced);
                    }
                    // A task of its own, because the first caller may give up while others wait.
                    tokio::spawn(Arc::clone(self).run_start(start.clone(), sender, kept, cause));
                    start
                }
            }
        };
        start.outcome().await
    }

    async fn run_start(
        self: Arc<Self>,
        start: Start<Session>,
        sender: StartSender<Session>,
        kept: Option<Arc<Session>>,
        cause: Option<SpanContext>,
    ) {
        let outcome = tokio::select! {
            outcome = self.start_session(kept.as_ref(), cause) => outcome,
            () = start.cancelled() => Err(ConnectError::Cancelled),
        };
        let outcome = match outcome {
            Ok((session, status)) => {
                if self.state.lock().lifecycle.finish_start(&start, &session, Instant::now()) {
                    let family = session.revision_family();
                    if self.is_private() {
                        tracing::info!(server = %self.config.id, ?family, "private instance ready");
                    } else {
                        tracing::info!(server = %self.config.id, ?family, "server ready");
                        self.host.registrar.report_ready(&self.config.id);
                    }
                    // A session that continues is still supervised.
                    if kept.as_ref().is_none_or(|kept| !Arc::ptr_eq(kept, &session)) {
                        tokio::spawn(Arc::clone(&self).supervise(Arc::clone(&session), status));
                    }
                    Ok(session)
                } else {
                    session.close().await;
                    Err(ConnectError::Cancelled)
                }
            }
            Err(error) if error.is_sign_in_required() => {
                // The person may sign in at any moment.
                self.state.lock().lifecycle.abandon_start(&start);
                Err(error)
            }
            Err(error) => {
                let reason = error.to_string();
                let is_current = {
                    let lifecycle = &mut self.state.lock().lifecycle;
                    lifecycle.fail_start(&start, &reason, Instant::now(), fastrand::f64())
                };
                if is_current {
                    self.log_and_reconnect(&reason);
                }
                Err(error)
            }
        };
        if let Some(kept) = kept.filter(|kept| !self.is_in_use(kept)) {
            close_when_unused(kept);
        }
        // There may be no receiver.
        let _ = sender.send(Some(outcome));
    }

    /// How to connect to the server, with all variables resolved.
    pub(super) async fn connect_target(
        &self,
        cause: Option<SpanContext>,
    ) -> Result<(ConnectTarget, ConnectOptions), ConnectError> {
        let (host, config, owner) = (Arc::clone(&self.host), self.config.clone(), self.owner());
        let (stderr_tail, secrets) = (Arc::clone(&self.stderr_tail), Arc::clone(&self.secrets));
        // A variable may be a stored secret whose keychain waits for its owner: no thread of the runtime may wait with it.
        let resolving = tokio::task::spawn_blocking(move || {
            host.connect_target(&config, &stderr_tail, &secrets, owner.as_ref())
        });
        let failed = |error: tokio::task::JoinError| {
            ConnectError::Configuration(format!("failed to resolve the variables of the server: {error}"))
        };
        let mut target = resolving.await.map_err(failed)??;
        if let ConnectTarget::Stdio(launch) | ConnectTarget::HttpWithProcess(launch, ..) = &mut target {
            launch.processes = self.processes.clone();
        }
        let options = ConnectOptions {
            server: self.config.id.clone(),
            revision_family: self.revision_family(),
            startup_timeout: self.config.startup_timeout,
            limits: self.host.limits,
            secrets: Arc::clone(&self.secrets),
            telemetry: self.host.telemetry.clone(),
            cause,
            client: match &target {
                ConnectTarget::Http(..) | ConnectTarget::HttpWithProcess(..) => {
                    Some(self.host.http_client()?)
                }
                ConnectTarget::Stdio(_) => None,
            },
        };
        Ok((target, options))
    }

    /// Connects and reads all lists. If the server still has the session `kept`, this goes on with it instead of connecting. No
    /// tool is called before its definition was compared with the approved one.
    ///
    /// The returned status was taken before the lists were read. A change that the server announces while they are read is
    /// therefore seen as newer than this status, and the lists are read again.
    async fn start_session(
        self: &Arc<Self>,
        kept: Option<&Arc<Session>>,
        cause: Option<SpanContext>,
    ) -> Result<(Arc<Session>, SessionStatus), ConnectError> {
        // Two instances of a server could conflict, and the old one may still respond at the URL.
        while (self.config.exclusive || self.is_private()) && !self.state.lock().draining.is_empty() {
            sleep(DRAIN_POLL_INTERVAL).await;
        }
        self.wait_until_closed().await;
        let continued = match kept {
            Some(kept) => self.still_has(kept).await?.then(|| Arc::clone(kept)),
            None => None,
        };
        let is_continued = continued.is_some();
        let session = match continued {
            Some(session) => session,
            None => {
                let (target, options) = self.connect_target(cause).await?;
                Arc::new(connect(target, &options).await?)
            }
        };
        let status = session.status().borrow().clone();
        if self.is_private() {
            // The lists of the shared instance count; the definition of a tool is compared before its call.
            session.end_cause();
            return Ok((session, status));
        }
        let previous = self.content();
        let content = session.read_content(
            &previous,
            ContentLists::ALL,
            self.config.startup_timeout.min(CONTENT_TIMEOUT),
        );
        match tokio::join!(self.refresh_tools(&session), timeout(CONTENT_TIMEOUT, content)) {
            (Ok(()), content) => {
                if let Ok(content) = content {
                    self.set_content(content).await;
                }
                session.end_cause();
                Ok((session, status))
            }
            (Err(error), _) => {
                if is_continued && !error.may_have_kept_session() {
                    self.state.lock().lifecycle.forget_kept(&session);
                } else if !is_continued {
                    session.close().await;
                }
                Err(error)
            }
        }
    }

    /// Whether the server still has a session in which a request did not reach it; an error if it still cannot be reached.
    async fn still_has(&self, kept: &Arc<Session>) -> Result<bool, ConnectError> {
        let limit = self.config.startup_timeout.min(PING_TIMEOUT);
        match kept.request("ping", None, JsonObject::new(), Some(limit)).await {
            Ok(_) => Ok(true),
            Err(RequestError::Rpc(error)) if error.code == METHOD_NOT_FOUND => Ok(true),
            Err(error) => {
                let error = ConnectError::from(error);
                if error.may_have_kept_session() {
                    return Err(error);
                }
                tracing::info!(server = %self.config.id, %error, "the session is gone; a new one begins");
                self.state.lock().lifecycle.forget_kept(kept);
                Ok(false)
            }
        }
    }

    /// Stops the server with its private instances. Its tools stay known.
    pub async fn stop(self: &Arc<Self>) {
        tokio::join!(self.stop_instance(), self.stop_private_instances());
    }

    /// Stops the instance that callers share, and not the private ones.
    pub async fn stop_shared(&self) {
        self.stop_instance().await;
    }

    async fn stop_instance(&self) {
        let start = {
            let mut state = self.state.lock();
            let draining = std::mem::take(&mut state.draining);
            for session in state.caller_sessions.take_all().into_iter().chain(draining) {
                state.close_session(session);
            }
            match state.lifecycle.stop() {
                StopTarget::Session(session) => {
                    state.close_session(session);
                    None
                }
                StopTarget::Start(start) => Some(start),
                StopTarget::Nothing => None,
            }
        };
        if let Some(start) = start {
            start.cancel();
            let _ = start.outcome().await;
        }
        self.wait_until_closed().await;
        self.state.lock().lifecycle.finish_stop();
    }

    /// Stops a server that is not configured any more and removes its tools.
    pub(super) async fn retire(self: &Arc<Self>) {
        self.begin_retirement();
        self.stop().await;
    }

    /// Removes the tools of a server that is not configured any more. It accepts no more calls; those in flight go on. Does
    /// nothing if it was called before: another server may have the id by now.
    pub(super) fn begin_retirement(&self) {
        let mut state = self.state.lock();
        if !state.lifecycle.is_retired() {
            state.lifecycle.retire();
            self.host.registrar.remove(&self.config.id);
        }
    }

    /// Whether a call is in flight.
    pub(super) fn has_calls(&self) -> bool {
        let is_used = |session: &Arc<Session>| session.in_flight_requests() > 0;
        let state = self.state.lock();
        state.lifecycle.session().is_some_and(|session| session.closed().is_none() && is_used(session))
            || state.draining.iter().any(is_used)
            || state.caller_sessions.has_calls()
    }

    /// The same for this instance and the private ones.
    pub(super) fn has_any_calls(&self) -> bool {
        self.has_calls() || self.has_private_calls()
    }

    pub(super) fn is_starting(&self) -> bool {
        matches!(self.state(), ServerState::Starting { .. })
    }

    /// Waits until no call is in flight or waits for the start of the server.
    pub(super) async fn wait_until_unused(&self) {
        while self.is_starting() || self.has_any_calls() {
            sleep(DRAIN_POLL_INTERVAL).await;
        }
    }

    /// Waits until the sessions that are being closed are closed.
    pub(super) async fn wait_until_closed(&self) {
        let closing = self.state.lock().closing.clone();
        for mut closed in closing {
            // An error means that the runtime is shutting down.
            let _ = closed.wait_for(|closed| *closed).await;
        }
    }

    /// Approves the definitions that the server sent last, each tool with the hash of the definition that the approver saw.
    pub async fn approve(self: &Arc<Self>, tools: &[(String, ContentHash)]) -> Result<(), CacheError> {
        let _guard = self.refresh_lock.lock().await;
        let name_users = |tool: &str| self.host.registrar.name_user(tool);
        let source = self.config.pinned_source();
        let approved = self.host.cache.approve(&source, Some(tools), &name_users, unix_millis()).await?;
        self.replace_approvals(ToolApprovals::from_decision(approved.decision));
        self.publish_record_change();
        Ok(())
    }

    /// Replaces the approvals after a decision of the operator.
    pub(super) async fn set_approvals(self: &Arc<Self>, approvals: ToolApprovals) {
        let _guard = self.refresh_lock.lock().await;
        self.replace_approvals(approvals);
    }

    /// Registers what is approved now; the server no longer reports what was held before.
    fn replace_approvals(self: &Arc<Self>, approvals: ToolApprovals) {
        let problem = approvals.problem_summary();
        self.state.lock().approvals = Arc::new(approvals);
        self.register_tools();
        self.state.lock().lifecycle.record_tools(problem);
    }

    /// Every definition the server ever sent, by tool and oldest first.
    pub async fn definitions(&self) -> Result<Vec<StoredDefinition>, CacheError> {
        self.host.cache.definitions(&self.config.pinned_source()).await
    }

    /// Fails unless the definition with the hash `pin` is still the approved one.
    pub(super) fn check_tool(&self, tool: &str, pin: ContentHash) -> Result<(), ToolError> {
        self.tool_approvals().check(&self.config.id, tool, pin)
    }
}
