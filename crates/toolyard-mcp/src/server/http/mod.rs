//! Streamable HTTP: one endpoint for both eras, and the transport of the first revision where it is wanted.

mod body;
mod config;
mod connection;
mod guard;
mod legacy_sse;
mod mirror;
mod pages;
mod post;
mod pulse;
mod respond;

use std::{convert::Infallible, future::Future, pin::pin, sync::Arc, time::Duration};

use http::{HeaderValue, header};
use hyper::{server::conn::http1, service::service_fn};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, MissedTickBehavior, interval_at, sleep, timeout},
};

pub use config::{Access, AccessToken, HttpConfig};
use connection::{Connection, HttpServer};
pub use pages::{PageAnswer, PageBody, PageRequest, Pages};
use pulse::Felt;

use super::{McpServer, ServeError, mcp_server::Stopped};

/// Bytes of the head of a request.
const MAX_HEAD: usize = 32 << 10;
/// How long nobody is accepted when the system has no room for another connection.
const BREATH: Duration = Duration::from_millis(50);

/// So many connections that arrived before the end are taken over at most.
const MOST_ARRIVED: usize = 8_192;

/// Serves over HTTP until `stop` ends; then nobody new comes in, what is under way may end, and whoever was let in but has
/// asked nothing yet may still ask for [`HttpConfig::farewell`].
///
/// The main door is at `/mcp`, profiles are at `/mcp/PROFILE`, and whatever [`HttpConfig::pages`] serves beside them.
pub async fn serve_http(
    server: Arc<McpServer>,
    listener: TcpListener,
    config: HttpConfig,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let places = u32::try_from(config.connections).unwrap_or(u32::MAX).clamp(1, 1 << 20);
    let permits = Arc::new(Semaphore::new(usize::try_from(places).unwrap_or(1)));
    let drain_time = config.drain_time;
    let principal = config.access.principal();
    let http =
        Arc::new(HttpServer { server: Arc::clone(&server), config, principal, legacy: Arc::default() });
    let mut stop = pin!(stop);
    loop {
        let permit = tokio::select! {
            permit = Arc::clone(&permits).acquire_owned() => permit,
            () = &mut stop => break,
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        match (accepted, permit) {
            (Ok((stream, _)), Ok(permit)) => {
                tokio::spawn(attend(Arc::clone(&http), stream, server.stopped(), permit));
            }
            (Err(error), _) if is_passing(&error) => sleep(BREATH).await,
            (Err(error), _) => return Err(ServeError::Accept(error)),
            // It is never closed.
            (_, Err(_)) => break,
        }
    }
    server.stop();
    for stream in arrived(listener) {
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else { break };
        tokio::spawn(attend(Arc::clone(&http), stream, server.stopped(), permit));
    }
    // Whoever is not done by then is cut off when the runtime ends.
    let _ = timeout(drain_time, permits.acquire_many(places)).await;
    Ok(())
}

/// Closes the listener. Whoever the system let in before that is not turned away: the request may have been sent already.
fn arrived(listener: TcpListener) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    let Ok(listener) = listener.into_std() else { return streams };
    // The listener stays open meanwhile: whoever floods it must not keep it open for ever.
    for _ in 0..MOST_ARRIVED {
        match listener.accept() {
            Ok((stream, _)) => {
                streams.extend(stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream)));
            }
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock && is_passing(&error) => {}
            Err(_) => break,
        }
    }
    streams
}

/// Attends to one connection until it ends.
async fn attend(
    http: Arc<HttpServer>,
    stream: TcpStream,
    mut stopped: Stopped,
    permit: OwnedSemaphorePermit,
) {
    let _permit = permit;
    // Otherwise a streamed answer waits for the acknowledgement of what was sent before it.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection is gone already");
        return;
    }
    let local = stream.local_addr().ok().map(|address| address.ip());
    // An open stream says something at every beat, and must have the time to.
    let silence = http.config.silence.max(http.config.stream_beat * 2);
    let farewell = http.config.farewell;
    let mut looks = interval_at(Instant::now() + silence, silence);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let connection = Arc::new(Connection::new(http, local));
    let pulse = Arc::clone(&connection.pulse);
    let stream = Felt::new(stream, Arc::clone(&pulse));
    let service = service_fn(move |request| {
        let connection = Arc::clone(&connection);
        async move {
            let mut response = connection.answer(request).await;
            if connection.pulse.is_leaving() {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    if stopped.is_now() {
        pulse.leave();
    }
    let mut builder = http1::Builder::new();
    let mut serving = pin!(builder.max_header_size(MAX_HEAD).serve_connection(stream, service));
    let mut closing = pin!(async {
        stopped.wait().await;
        // A request may be on its way: a connection that is closed at once would lose it.
        pulse.leave();
        sleep(farewell).await;
    });
    let mut is_closing = false;
    loop {
        tokio::select! {
            biased;
            ended = &mut serving => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                return;
            }
            () = &mut closing, if !is_closing => {
                is_closing = true;
                serving.as_mut().graceful_shutdown();
            }
            _ = looks.tick() => {
                if pulse.is_silent() {
                    return;
                }
            }
        }
    }
}

/// Whether the next connection may be accepted although this one was not.
fn is_passing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind as K;
    // No room for file descriptors or memory (EMFILE, ENFILE, ENOBUFS, ENOMEM): others close sooner or later.
    let is_full = matches!(error.raw_os_error(), Some(12 | 23 | 24 | 105));
    is_full
        || matches!(error.kind(), K::ConnectionAborted | K::ConnectionReset | K::Interrupted | K::WouldBlock)
}
