//! A plain round-robin proxy: every request goes to the next replica, or to the other one if that refuses the connection.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, StatusCode, body::Incoming, client, server, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

/// A proxy without knowledge of sessions.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
}

impl Proxy {
    pub(crate) async fn start(replicas: Vec<SocketAddr>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (replicas, next) = (Arc::new(replicas), Arc::new(AtomicUsize::new(0)));
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let (replicas, next) = (Arc::clone(&replicas), Arc::clone(&next));
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        forward(request, Arc::clone(&replicas), next.fetch_add(1, Ordering::Relaxed))
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
    replicas: Arc<Vec<SocketAddr>>,
    request_number: usize,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    for offset in 0..replicas.len() {
        let address = replicas[(request_number + offset) % replicas.len()];
        let Ok(stream) = TcpStream::connect(address).await else { continue };
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
