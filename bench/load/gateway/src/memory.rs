//! The lower bound for lists: a server that responds with stored bytes from memory.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::BenchError;

/// Serves the pages of a list: the first to a request without a cursor, else the next one of the connection.
pub(crate) async fn serve(address: &str, pages: Vec<Vec<u8>>) -> Result<(), BenchError> {
    let listener = TcpListener::bind(address).await?;
    let pages: Arc<[Bytes]> = pages.into_iter().map(Bytes::from).collect();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (pages, next) = (Arc::clone(&pages), Arc::new(AtomicUsize::new(0)));
        let service = service_fn(move |request: Request<Incoming>| {
            let (pages, next) = (Arc::clone(&pages), Arc::clone(&next));
            async move {
                // The request is read, as any server would.
                let body_bytes =
                    request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
                let has_cursor = body_bytes.windows(8).any(|part| part == b"\"cursor\"");
                let page = if has_cursor { next.load(Ordering::Relaxed) } else { 0 };
                next.store(page + 1, Ordering::Relaxed);
                let body = pages.get(page).cloned().unwrap_or_default();
                let response = Response::builder().header("content-type", "application/json");
                Ok::<_, Infallible>(response.body(Full::new(body)).unwrap_or_default())
            }
        });
        tokio::spawn(async move {
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
