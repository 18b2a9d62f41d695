//! A round-robin proxy: every request goes to the next replica, or to the other one if that refuses the connection. Like
//! nginx, it may leave a replica alone for a while that refused a connection.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, StatusCode, body::Incoming, client, server, service::service_fn};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};

/// A proxy without knowledge of sessions.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
}

/// A replica as the proxy knows it.
struct Upstream {
    address: SocketAddr,
    /// When it last refused a connection.
    failed_at: Mutex<Option<Instant>>,
}

impl Proxy {
    /// `fail_timeout` is how long a replica that refused a connection gets no requests, as with nginx and `max_fails=1`. If all
    /// replicas are left alone, a request fails.
    pub(crate) async fn start(replicas: Vec<SocketAddr>, fail_timeout: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let upstream = |address| Upstream { address, failed_at: Mutex::default() };
        let replicas: Arc<Vec<Upstream>> = Arc::new(replicas.into_iter().map(upstream).collect());
        let next = Arc::new(AtomicUsize::new(0));
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let (replicas, next) = (Arc::clone(&replicas), Arc::clone(&next));
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        let request_number = next.fetch_add(1, Ordering::Relaxed);
                        forward(request, Arc::clone(&replicas), request_number, fail_timeout)
                    });
                    // A client may disconnect at any time.
                    let _ = server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self { address }
    }
}

async fn forward(
    request: Request<Incoming>,
    replicas: Arc<Vec<Upstream>>,
    request_number: usize,
    fail_timeout: Duration,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    for offset in 0..replicas.len() {
        let upstream = &replicas[(request_number + offset) % replicas.len()];
        if upstream.failed_at.lock().is_some_and(|at| at.elapsed() < fail_timeout) {
            continue;
        }
        let Ok(stream) = TcpStream::connect(upstream.address).await else {
            *upstream.failed_at.lock() = Some(Instant::now());
            continue;
        };
        stream.set_nodelay(true).unwrap();
        let response = async {
            let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            let request = Request::from_parts(parts.clone(), Full::new(body.clone()));
            let (mut head, answer) = sender.send_request(request).await?.into_parts();
            // `Connection` concerns the connection to the replica, not the client's.
            head.headers.remove("connection");
            Ok::<_, hyper::Error>(Response::from_parts(head, Full::new(answer.collect().await?.to_bytes())))
        };
        // A request that was sent is not repeated: the proxy cannot know whether that is safe.
        return Ok(response.await.unwrap_or_else(|_| empty_response(StatusCode::BAD_GATEWAY)));
    }
    Ok(empty_response(StatusCode::SERVICE_UNAVAILABLE))
}

fn empty_response(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
