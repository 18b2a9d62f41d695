//! The floor for lists: answers every request with the same bytes from memory.

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

use crate::Failed;

/// Serves the pages of a list: the first to whoever asks without a cursor, the next one of its connection to others.
pub(crate) async fn serve(address: &str, pages: Vec<Vec<u8>>) -> Result<(), Failed> {
    let listener = TcpListener::bind(address).await?;
    let pages: Arc<[Bytes]> = pages.into_iter().map(Bytes::from).collect();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (pages, next) = (Arc::clone(&pages), Arc::new(AtomicUsize::new(0)));
        let service = service_fn(move |request: Request<Incoming>| {
            let (pages, next) = (Arc::clone(&pages), Arc::clone(&next));
            async move {
                // What is asked is read, as any server would.
                let asked = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
                let goes_on = asked.windows(8).any(|part| part == b"\"cursor\"");
                let at = if goes_on { next.load(Ordering::Relaxed) } else { 0 };
                next.store(at + 1, Ordering::Relaxed);
                let body = pages.get(at).cloned().unwrap_or_default();
                let response = Response::builder().header("content-type", "application/json");
                Ok::<_, Infallible>(response.body(Full::new(body)).unwrap_or_default())
            }
        });
        tokio::spawn(async move {
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
