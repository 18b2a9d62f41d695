//! HTTP/1.1 clients: POSTs of a JSON-RPC request over one connection, each with the whole body of its response.

use std::{
    future::poll_fn,
    hint::black_box,
    pin::{Pin, pin},
    task::Poll,
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Uri,
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HOST},
};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Response,
    body::{Body as _, Incoming},
    client::conn::http1::{Connection, SendRequest, handshake},
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use tokio::net::TcpStream;
use url::Url;

use crate::{Outcome, transport::http::PoolClient};

/// The clients, ours first.
pub(crate) const WAYS: [&str; 5] = ["ours", "hyper-inline", "hyper-task", "hyper-util", "reqwest"];
const REQUEST_BYTES: usize = 300;

/// Sends `count` requests with one of the clients, for responses of `bytes` bytes.
pub(crate) async fn run(way: &str, address: &str, bytes: usize, count: usize) -> Outcome {
    let url = Url::parse(&format!("http://{address}/{bytes}"))?;
    let body = request_body();
    match way {
        "ours" => {
            let client = PoolClient::default();
            for _ in 0..count {
                check(client.post(&url, &request_headers(), &body).await?, bytes)?;
            }
        }
        "hyper-inline" => {
            let mut client = InlineClient::connect(address, bytes).await?;
            for _ in 0..count {
                check(client.post(request_headers(), body.clone()).await?, bytes)?;
            }
        }
        "hyper-task" => {
            let mut client = TaskClient::connect(address, bytes).await?;
            for _ in 0..count {
                check(client.post(request_headers(), body.clone()).await?, bytes)?;
            }
        }
        "hyper-util" => {
            let mut connector = HttpConnector::new();
            connector.set_nodelay(true);
            let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
            let uri: Uri = url.as_str().parse()?;
            for _ in 0..count {
                let request = post_request(uri.clone(), request_headers(), body.clone());
                check(read_body(client.request(request).await?).await?, bytes)?;
            }
        }
        "reqwest" => {
            let client = reqwest_client()?;
            for _ in 0..count {
                let request = client.post(url.clone()).headers(request_headers()).body(body.clone());
                check(read_reqwest_body(request.send().await?).await?, bytes)?;
            }
        }
        other => return Err(format!("unknown client {other}").into()),
    }
    Ok(())
}

/// A failed request must not count as fast.
fn check(body: Vec<u8>, bytes: usize) -> Outcome {
    if black_box(body).len() == bytes { Ok(()) } else { Err("the body has another length".into()) }
}

/// The headers that the MCP client sends, built anew for each request as there.
fn request_headers() -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(12);
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    headers.insert(HeaderName::from_static("mcp-protocol-version"), HeaderValue::from_static("2025-11-25"));
    headers.insert(
        HeaderName::from_static("mcp-session-id"),
        HeaderValue::from_static("9f0e3c1a5b7d4e2f8a6c0d1e2f3a4b5c"),
    );
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers
}

fn request_body() -> Bytes {
    let (start, end) = (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":""#,
        r#""}}}"#,
    );
    let filler = "x".repeat(REQUEST_BYTES - start.len() - end.len());
    format!("{start}{filler}{end}").into()
}

fn post_request(uri: Uri, headers: HeaderMap, body: Bytes) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    request
}

async fn read_body(response: Response<Incoming>) -> Outcome<Vec<u8>> {
    if response.status() != StatusCode::OK {
        return Err(format!("status {}", response.status()).into());
    }
    let mut body = response.into_body();
    let announced = usize::try_from(body.size_hint().exact().unwrap_or_default())?;
    let mut whole = Vec::with_capacity(announced);
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            whole.extend_from_slice(&data);
        }
    }
    Ok(whole)
}

/// hyper's connection in a task of its own, as its documentation shows.
struct TaskClient {
    sender: SendRequest<Full<Bytes>>,
    host: HeaderValue,
    path: Uri,
}

impl TaskClient {
    async fn connect(address: &str, bytes: usize) -> Outcome<Self> {
        let (sender, connection) = handshake(TokioIo::new(connect(address).await?)).await?;
        tokio::spawn(connection);
        Ok(Self { sender, host: address.parse()?, path: format!("/{bytes}").parse()? })
    }

    async fn post(&mut self, mut headers: HeaderMap, body: Bytes) -> Outcome<Vec<u8>> {
        headers.insert(HOST, self.host.clone());
        self.sender.ready().await?;
        let request = post_request(self.path.clone(), headers, body);
        read_body(self.sender.send_request(request).await?).await
    }
}

/// hyper's connection, polled by the task that waits for the response.
struct InlineClient {
    sender: SendRequest<Full<Bytes>>,
    connection: Pin<Box<Connection<TokioIo<TcpStream>, Full<Bytes>>>>,
    host: HeaderValue,
    path: Uri,
}

impl InlineClient {
    async fn connect(address: &str, bytes: usize) -> Outcome<Self> {
        let (sender, connection) = handshake(TokioIo::new(connect(address).await?)).await?;
        let connection = Box::pin(connection);
        Ok(Self { sender, connection, host: address.parse()?, path: format!("/{bytes}").parse()? })
    }

    async fn post(&mut self, mut headers: HeaderMap, body: Bytes) -> Outcome<Vec<u8>> {
        headers.insert(HOST, self.host.clone());
        let request = post_request(self.path.clone(), headers, body);
        let sender = &mut self.sender;
        let exchange = async move {
            sender.ready().await?;
            read_body(sender.send_request(request).await?).await
        };
        let connection = &mut self.connection;
        let mut exchange = pin!(exchange);
        poll_fn(|context| {
            if let Poll::Ready(body) = exchange.as_mut().poll(context) {
                return Poll::Ready(body);
            }
            if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                return Poll::Ready(Err(format!("the connection ended: {ended:?}").into()));
            }
            exchange.as_mut().poll(context)
        })
        .await
    }
}

async fn connect(address: &str) -> Outcome<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// With the settings that the MCP client uses for `https://`.
fn reqwest_client() -> Outcome<reqwest::Client> {
    Ok(reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .no_proxy()
        .build()?)
}

async fn read_reqwest_body(mut response: reqwest::Response) -> Outcome<Vec<u8>> {
    if response.status() != StatusCode::OK {
        return Err(format!("status {}", response.status()).into());
    }
    let announced = usize::try_from(response.content_length().unwrap_or_default())?;
    let mut whole = Vec::with_capacity(announced);
    while let Some(chunk) = response.chunk().await? {
        whole.extend_from_slice(&chunk);
    }
    Ok(whole)
}
