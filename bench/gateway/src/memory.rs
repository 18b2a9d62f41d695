//! The floor for lists: answers every request with the same bytes from memory.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::Failed;

/// Serves these bytes to whoever asks anything.
pub(crate) async fn serve(address: &str, body: Vec<u8>) -> Result<(), Failed> {
    let (listener, body) = (TcpListener::bind(address).await?, Bytes::from(body));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let body = body.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let body = body.clone();
            async move {
                // What is asked is read, as any server would.
                let _ = request.into_body().collect().await;
                let response = Response::builder().header("content-type", "application/json");
                Ok::<_, Infallible>(response.body(Full::new(body)).unwrap_or_default())
            }
        });
        tokio::spawn(async move {
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
