//! A server that sends scripted bytes at scripted times.

use std::{collections::VecDeque, net::SocketAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// A step of the response to a request.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Write(Vec<u8>),
    Wait(Duration),
    /// Repeats the bytes, with pauses, until the client disconnects.
    Repeat(Vec<u8>, Duration),
    Reset,
    /// Sends nothing until the client disconnects.
    Hang,
}

#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
    disconnects: Arc<Mutex<usize>>,
}

impl Server {
    /// Sends these responses in order, and repeats the last one.
    pub(crate) async fn start(responses: impl IntoIterator<Item = Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Self { address, requests: Arc::default(), disconnects: Arc::default() };
        let responses: Arc<Mutex<VecDeque<Vec<Step>>>> =
            Arc::new(Mutex::new(responses.into_iter().collect()));
        let this = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (server, responses) = (this.clone(), Arc::clone(&responses));
                tokio::spawn(async move { server.serve(stream, &responses).await });
            }
        });
        server
    }

    pub(crate) fn requests(&self) -> Vec<Value> {
        self.requests.lock().iter().map(|(_, body)| body.clone()).collect()
    }

    pub(crate) fn heads(&self) -> Vec<String> {
        self.requests.lock().iter().map(|(head, _)| head.clone()).collect()
    }

    /// How many clients disconnected before the response was complete.
    pub(crate) fn disconnects(&self) -> usize {
        *self.disconnects.lock()
    }

    async fn serve(&self, mut stream: TcpStream, responses: &Mutex<VecDeque<Vec<Step>>>) {
        let Some(request) = read_request(&mut stream).await else { return };
        self.requests.lock().push(request);
        let steps = {
            let mut responses = responses.lock();
            if responses.len() > 1 { responses.pop_front() } else { responses.front().cloned() }
        };
        for step in steps.unwrap_or_default() {
            match step {
                Step::Write(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        break;
                    }
                }
                Step::Wait(time) => tokio::time::sleep(time).await,
                Step::Repeat(bytes, pause) => {
                    while stream.write_all(&bytes).await.is_ok() {
                        tokio::time::sleep(pause).await;
                    }
                    *self.disconnects.lock() += 1;
                }
                Step::Reset => {
                    stream.set_zero_linger().unwrap();
                    return;
                }
                Step::Hang => {
                    let _ = stream.read(&mut [0; 16]).await;
                    *self.disconnects.lock() += 1;
                }
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<(String, Value)> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let lower = head.to_ascii_lowercase();
        let length =
            lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if body.len() >= length.unwrap_or(0) {
            return Some((head.to_owned(), serde_json::from_str(body).unwrap_or(Value::Null)));
        }
    }
}

/// The head of a response that ends with its connection.
pub(crate) fn head(status: &str, content_type: &str, extra_headers: &str) -> Step {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nConnection: close\r\n{extra_headers}\r\n"
    );
    Step::Write(head.into_bytes())
}

pub(crate) fn write(text: impl Into<String>) -> Step {
    Step::Write(text.into().into_bytes())
}

/// A complete response.
pub(crate) fn response(status: &str, content_type: &str, extra_headers: &str, body: &str) -> Vec<Step> {
    let extra_headers = format!("Content-Length: {}\r\n{extra_headers}", body.len());
    vec![head(status, content_type, &extra_headers), write(body)]
}

/// A response that streams these events.
pub(crate) fn stream(events: &str) -> Vec<Step> {
    vec![head("200 OK", "text/event-stream", ""), write(events)]
}

/// An event with text.
pub(crate) fn text_event(text: &str) -> String {
    let choice = serde_json::json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    format!("data: {choice}\n\n")
}

pub(crate) const DONE: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
