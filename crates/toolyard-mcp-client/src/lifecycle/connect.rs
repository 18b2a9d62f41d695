//! Opens the transport to a server and negotiates a session.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use tokio::{
    sync::{broadcast, mpsc, watch},
    task::AbortHandle,
    time::{Instant, error::Elapsed, sleep, timeout, timeout_at},
};
use toolyard_core::{
    RevisionFamily, SourceId,
    telemetry::{SpanContext, Telemetry},
};
use toolyard_mcp::{JsonObject, WireLimits};
use url::Url;

use crate::{
    config::HttpKind,
    lifecycle::{
        connect_error::ConnectError,
        handshake::{Handshake, handshake, http_handshake, initialize},
    },
    server_secrets::ServerSecrets,
    session::{
        change_listener::{ChangeFilter, listen_for_changes},
        handle::Session,
        inner::SessionInner,
        operation::SessionTelemetry,
        protocol_context::ProtocolContext,
        server_messages::{SessionStatus, handle_messages},
    },
    transport::{
        error::TransportError,
        http::{client::http_client, streamable::StreamableHttp, target::HttpTarget},
        message::Transport,
        requests::pending::{PendingRequests, ServerMessage},
        sse::LegacySse,
        stdio::{connection::StdioTransport, launch::StdioLaunch},
    },
};

const DEFAULT_STARTUP_TIMEOUT: Duration = Duration::from_secs(30);
/// Resource updates that may be queued for a receiver.
const MAX_QUEUED_UPDATES: usize = 256;
/// How long a session waits for the stream on which a legacy server sends its requests.
const LISTEN_STREAM_TIMEOUT: Duration = Duration::from_secs(1);
/// The delay between two attempts to reach a URL whose process is starting.
const PROCESS_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How to reach a server, with all references resolved.
#[derive(Debug)]
pub enum ConnectTarget {
    /// A process to start.
    Stdio(StdioLaunch),
    /// A URL.
    Http(HttpTarget, HttpKind),
    /// A URL, and the process to start if nothing responds there.
    HttpWithProcess(StdioLaunch, HttpTarget, HttpKind),
}

/// How to connect.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// The operator's name for the server.
    pub server: SourceId,
    /// The family of revisions that the server spoke last time, or that the operator configured.
    pub revision_family: Option<RevisionFamily>,
    /// How long the server may take until its first response.
    pub startup_timeout: Duration,
    /// How much the server may send.
    pub limits: WireLimits,
    /// The HTTP client that servers share; a new one if absent.
    pub client: Option<reqwest::Client>,
    /// Redacted in what the server sends, apart from lists.
    pub secrets: Arc<ServerSecrets>,
    /// Receives the requests to the server that have ended.
    pub telemetry: Option<Arc<dyn Telemetry>>,
    /// The span that causes the connection.
    pub cause: Option<SpanContext>,
}

impl ConnectOptions {
    /// Defaults: 30 s for the start and default limits.
    pub fn new(server: impl Into<SourceId>) -> Self {
        Self {
            server: server.into(),
            revision_family: None,
            startup_timeout: DEFAULT_STARTUP_TIMEOUT,
            limits: WireLimits::default(),
            client: None,
            secrets: Arc::default(),
            telemetry: None,
            cause: None,
        }
    }

    fn client(&self) -> Result<reqwest::Client, TransportError> {
        self.client.clone().map_or_else(http_client, Ok)
    }
}

/// Connects to a server.
pub async fn connect(target: ConnectTarget, options: &ConnectOptions) -> Result<Session, ConnectError> {
    let deadline = Instant::now() + options.startup_timeout;
    match target {
        ConnectTarget::Stdio(launch) => connect_stdio(launch, options, deadline).await,
        ConnectTarget::Http(target, kind) => connect_url(&target, kind, options, deadline).await,
        ConnectTarget::HttpWithProcess(launch, target, kind) => {
            match connect_url(&target, kind, options, deadline).await {
                Err(ConnectError::Transport(TransportError::Unreachable(_))) => {
                    connect_process(launch, &target, kind, options, deadline).await
                }
                // The server is running already.
                outcome => outcome,
            }
        }
    }
}

async fn connect_url(
    target: &HttpTarget,
    kind: HttpKind,
    options: &ConnectOptions,
    deadline: Instant,
) -> Result<Session, ConnectError> {
    if kind == HttpKind::Sse {
        return connect_sse(target.clone(), options, deadline).await;
    }
    match connect_streamable(target, options, deadline).await? {
        Some(session) => Ok(session),
        None if kind == HttpKind::Auto => connect_sse(target.clone(), options, deadline).await,
        None => {
            let response = "a refusal of Streamable HTTP".to_owned();
            Err(TransportError::UnexpectedResponse(response).into())
        }
    }
}

/// Starts the process behind a URL and connects when it responds. The process ends with the session.
async fn connect_process(
    launch: StdioLaunch,
    target: &HttpTarget,
    kind: HttpKind,
    options: &ConnectOptions,
    deadline: Instant,
) -> Result<Session, ConnectError> {
    // No message is sent over its pipes; they only show its exit.
    let (requests, mut messages) = PendingRequests::new(0);
    let requests = Arc::new(requests);
    let process = StdioTransport::connect(launch, Arc::clone(&requests), options.limits).await?;
    let session = loop {
        if let Some(error) = requests.closed() {
            return Err(error.into());
        }
        match connect_url(target, kind, options, deadline).await {
            Err(ConnectError::Transport(TransportError::Unreachable(_))) if Instant::now() < deadline => {
                sleep(PROCESS_POLL_INTERVAL).await;
            }
            Err(error) => {
                process.close().await;
                return Err(error);
            }
            Ok(session) => break session,
        }
    };
    let inner = Arc::clone(&session.inner);
    let exit_watcher = tokio::spawn(async move {
        while let Some(message) = messages.recv().await {
            if let ServerMessage::Closed(error) = message {
                return inner.requests.close(&error);
            }
        }
    });
    session.own_task(exit_watcher.abort_handle());
    session.own_process(process);
    Ok(session)
}

async fn connect_stdio(
    launch: StdioLaunch,
    options: &ConnectOptions,
    deadline: Instant,
) -> Result<Session, ConnectError> {
    let (requests, messages) = PendingRequests::new(options.limits.in_flight);
    let requests = Arc::new(requests);
    let transport = StdioTransport::connect(launch, Arc::clone(&requests), options.limits).await?;
    let opening = OpeningSession::new(options, None, requests, Box::new(transport), messages);
    let outcome = timeout_at(deadline, handshake(&opening.inner, options.revision_family)).await;
    opening.finish(outcome, options.startup_timeout).await
}

async fn connect_sse(
    target: HttpTarget,
    options: &ConnectOptions,
    deadline: Instant,
) -> Result<Session, ConnectError> {
    let (requests, messages) = PendingRequests::new(options.limits.in_flight);
    let requests = Arc::new(requests);
    let (client, remaining) = (options.client()?, deadline.saturating_duration_since(Instant::now()));
    let url = target.url.clone();
    let transport =
        LegacySse::connect(target, Arc::clone(&requests), options.limits, client, remaining).await?;
    let opening = OpeningSession::new(options, Some(&url), requests, Box::new(transport), messages);
    let outcome = timeout_at(deadline, initialize(&opening.inner)).await;
    opening.finish(outcome, options.startup_timeout).await
}

/// Connects over Streamable HTTP; none if the server seems to speak only revision 2024-11-05, which lacks it.
async fn connect_streamable(
    target: &HttpTarget,
    options: &ConnectOptions,
    deadline: Instant,
) -> Result<Option<Session>, ConnectError> {
    let (requests, messages) = PendingRequests::new(options.limits.in_flight);
    let requests = Arc::new(requests);
    let transport =
        StreamableHttp::new(target.clone(), Arc::clone(&requests), options.limits, options.client()?);
    let opening = OpeningSession::new(options, Some(&target.url), requests, Box::new(transport), messages);
    let outcome = match timeout_at(deadline, http_handshake(&opening.inner, options.revision_family)).await {
        Ok(Ok(None)) => return Ok(None),
        Ok(Ok(Some(handshake))) => Ok(Ok(handshake)),
        Ok(Err(error)) => Ok(Err(error)),
        Err(elapsed) => Err(elapsed),
    };
    opening.finish(outcome, options.startup_timeout).await.map(Some)
}

/// A session before its handshake is complete.
struct OpeningSession {
    inner: Arc<SessionInner>,
    status: watch::Receiver<SessionStatus>,
    message_handler: AbortOnDrop,
}

/// Aborts a task on drop, unless a session takes it over. The task holds the connection, which would stay open for ever.
struct AbortOnDrop(Option<AbortHandle>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.take().inspect(AbortHandle::abort);
    }
}

impl OpeningSession {
    fn new(
        options: &ConnectOptions,
        url: Option<&Url>,
        requests: Arc<PendingRequests>,
        transport: Box<dyn Transport>,
        messages: mpsc::Receiver<ServerMessage>,
    ) -> Self {
        requests.in_flight.set_secrets(Arc::clone(&options.secrets));
        let inner = Arc::new(SessionInner {
            server: options.server.clone(),
            requests,
            transport,
            protocol: ArcSwap::from_pointee(ProtocolContext::modern()),
            secrets: Arc::clone(&options.secrets),
            limits: options.limits,
            telemetry: options
                .telemetry
                .as_ref()
                .map(|telemetry| SessionTelemetry::new(telemetry, url, options.cause)),
            resource_updates: broadcast::Sender::new(MAX_QUEUED_UPDATES),
        });
        let (sender, status) = watch::channel(SessionStatus::default());
        let task = tokio::spawn(handle_messages(Arc::clone(&inner), messages, sender));
        Self { inner, status, message_handler: AbortOnDrop(Some(task.abort_handle())) }
    }

    /// The session after a successful handshake; otherwise the connection is closed.
    async fn finish(
        self,
        outcome: Result<Result<Handshake, ConnectError>, Elapsed>,
        startup_timeout: Duration,
    ) -> Result<Session, ConnectError> {
        let error = match outcome {
            Ok(Ok(handshake)) => return Ok(self.into_session(handshake).await),
            Ok(Err(error)) => error,
            Err(_elapsed) => ConnectError::TimedOut {
                after: startup_timeout,
                stderr: self.inner.transport.stderr_tail().unwrap_or_default(),
            },
        };
        drop(self.message_handler);
        self.inner.transport.close().await;
        Err(error)
    }

    async fn into_session(mut self, handshake: Handshake) -> Session {
        let Handshake { protocol, about } = handshake;
        let family = protocol.family;
        self.inner.transport.set_protocol_version(Some(protocol.revision));
        self.inner.protocol.store(Arc::new(protocol));
        let session = Session::new(Arc::clone(&self.inner), self.status, about);
        if let Some(task) = self.message_handler.0.take() {
            session.own_task(task);
        }
        match family {
            RevisionFamily::Legacy => {
                self.inner.notify("notifications/initialized", JsonObject::new()).await;
                let opened = self.inner.transport.open_listen_stream();
                // Requests that the server sends before the stream is open are lost. On a timeout the session begins
                // without the stream.
                let _ = timeout(LISTEN_STREAM_TIMEOUT, opened).await;
            }
            RevisionFamily::Modern => {
                if let Some(filter) = ChangeFilter::lists_of(&session.about().capabilities) {
                    let task = tokio::spawn(listen_for_changes(self.inner, filter));
                    session.own_task(task.abort_handle());
                }
            }
        }
        session
    }
}

#[cfg(test)]
#[path = "connect_tests.rs"]
mod tests;
