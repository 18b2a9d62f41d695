//! Accepts connections and shuts them down gracefully.

use std::{convert::Infallible, future::Future, net::IpAddr, pin::pin, sync::Arc, time::Duration};

use http::{HeaderValue, header};
use hyper::{server::conn::http1, service::service_fn};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, MissedTickBehavior, interval_at, sleep, timeout},
};

use crate::{
    http::{
        activity_stream::ActivityStream,
        close_listener::close_listener,
        config::HttpConfig,
        connection::{Connection, HttpServer},
    },
    server::{McpServer, ServeError, ShutdownSignal},
};

/// Bytes of a request head.
const MAX_HEAD_BYTES: usize = 32 << 10;
/// Pause after the system refused a connection for lack of resources.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Serves over HTTP until `stop` resolves. Then no connection is accepted any more, in-flight requests may end within
/// [`HttpConfig::drain_timeout`], and idle connections stay open for [`HttpConfig::shutdown_grace`]. After
/// [`McpServer::begin_drain`], connections are accepted until the idle ones were closed, so that their clients can connect
/// again.
///
/// The main endpoint is at `/mcp`, profiles are at `/mcp/PROFILE`; [`HttpConfig::routes`] may serve other paths.
pub async fn serve_http(
    server: Arc<McpServer>,
    listener: TcpListener,
    config: HttpConfig,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let max_connections = u32::try_from(config.max_connections).unwrap_or(u32::MAX).clamp(1, 1 << 20);
    let permits = Arc::new(Semaphore::new(usize::try_from(max_connections).unwrap_or(1)));
    let (drain_timeout, shutdown_grace) = (config.drain_timeout, config.shutdown_grace);
    let http =
        Arc::new(HttpServer { server: Arc::clone(&server), config, legacy_sse_sessions: Arc::default() });
    accept_until(stop, &listener, &http, &permits).await?;
    server.shut_down();
    if server.is_draining() {
        accept_until(sleep(shutdown_grace), &listener, &http, &permits).await?;
    }
    close_listener(listener, |stream, client| {
        if let Ok(permit) = Arc::clone(&permits).try_acquire_owned() {
            let shutdown = server.shutdown_signal();
            tokio::spawn(serve_connection(Arc::clone(&http), stream, client.ip(), shutdown, permit));
        }
    })
    .await;
    // Remaining requests are cut off when the runtime ends.
    let _ = timeout(drain_timeout, async {
        let _ = permits.acquire_many(max_connections).await;
        server.calls_for_peers.wait_until_none().await;
    })
    .await;
    Ok(())
}

/// Accepts and serves connections until `stop` resolves.
async fn accept_until(
    stop: impl Future<Output = ()> + Send,
    listener: &TcpListener,
    http: &Arc<HttpServer>,
    permits: &Arc<Semaphore>,
) -> Result<(), ServeError> {
    let mut stop = pin!(stop);
    loop {
        let permit = tokio::select! {
            permit = Arc::clone(permits).acquire_owned() => permit,
            () = &mut stop => return Ok(()),
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => return Ok(()),
        };
        match (accepted, permit) {
            (Ok((stream, client)), Ok(permit)) => {
                let shutdown = http.server.shutdown_signal();
                tokio::spawn(serve_connection(Arc::clone(http), stream, client.ip(), shutdown, permit));
            }
            (Err(error), _) if is_transient(&error) => sleep(ACCEPT_RETRY_DELAY).await,
            (Err(error), _) => return Err(ServeError::Accept(error)),
            // The semaphore is never closed.
            (_, Err(_)) => return Ok(()),
        }
    }
}

async fn serve_connection(
    http: Arc<HttpServer>,
    stream: TcpStream,
    client_address: IpAddr,
    mut shutdown: ShutdownSignal,
    permit: OwnedSemaphorePermit,
) {
    let _permit = permit;
    // Otherwise streamed events wait for acknowledgements of earlier ones.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "connection closed before it was served");
        return;
    }
    let local_address = stream.local_addr().ok().map(|address| address.ip());
    // Event streams must have time to send keep-alives.
    let idle_timeout = http.config.idle_timeout.max(http.config.keep_alive_interval * 2);
    let shutdown_grace = http.config.shutdown_grace;
    let mut idle_checks = interval_at(Instant::now() + idle_timeout, idle_timeout);
    idle_checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let connection = Arc::new(Connection::new(http, local_address, client_address));
    let activity = Arc::clone(&connection.activity);
    let stream = ActivityStream::new(stream, Arc::clone(&activity));
    let service = service_fn(move |request| {
        let connection = Arc::clone(&connection);
        async move {
            let mut response = connection.respond(request).await;
            // The client opens its next connection where the load balancer sends it.
            if connection.activity.is_closing() || connection.http.server.is_draining() {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    if shutdown.is_triggered() {
        activity.close_after_response();
    }
    let mut builder = http1::Builder::new();
    let mut serving = pin!(builder.max_header_size(MAX_HEAD_BYTES).serve_connection(stream, service));
    let mut grace_end = pin!(async {
        shutdown.wait().await;
        // A request may be on its way: closing at once would lose it.
        activity.close_after_response();
        sleep(shutdown_grace).await;
    });
    let mut is_closing = false;
    loop {
        tokio::select! {
            biased;
            ended = &mut serving => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "connection failed");
                }
                return;
            }
            () = &mut grace_end, if !is_closing => {
                is_closing = true;
                serving.as_mut().graceful_shutdown();
            }
            _ = idle_checks.tick() => {
                if activity.is_idle() {
                    return;
                }
            }
        }
    }
}

/// Whether the listener can accept further connections after this error.
pub(super) fn is_transient(error: &std::io::Error) -> bool {
    use std::io::ErrorKind as K;
    // ENOMEM, ENFILE, EMFILE, ENOBUFS: other connections will close.
    let is_full = matches!(error.raw_os_error(), Some(12 | 23 | 24 | 105));
    is_full
        || matches!(error.kind(), K::ConnectionAborted | K::ConnectionReset | K::Interrupted | K::WouldBlock)
}
