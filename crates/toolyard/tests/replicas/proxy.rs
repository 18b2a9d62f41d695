//! A plain round-robin proxy: every request goes to the next replica, or to the other one where nobody answers.

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

/// A proxy that does not inspect the traffic.
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
                    // A client that leaves is no concern of the proxy.
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
    turn: usize,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    for offset in 0..replicas.len() {
        let address = replicas[(turn + offset) % replicas.len()];
        let Ok(stream) = TcpStream::connect(address).await else { continue };
        stream.set_nodelay(true).unwrap();
        let answered = async {
            let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            let request = Request::from_parts(parts.clone(), Full::new(body.clone()));
            let (mut head, answer) = sender.send_request(request).await?.into_parts();
            // What a replica says of its connection is not said of the client's.
            head.headers.remove("connection");
            Ok::<_, hyper::Error>(Response::from_parts(head, Full::new(answer.collect().await?.to_bytes())))
        };
        // What was sent once is not sent again by a proxy: it cannot know what it does.
        return Ok(answered.await.unwrap_or_else(|_| status(StatusCode::BAD_GATEWAY)));
    }
    Ok(status(StatusCode::SERVICE_UNAVAILABLE))
}

fn status(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
