//! Cases of an HTTP server: connections, heads and bodies.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use parking_lot::Mutex;

use crate::{
    Scenario, http_responses,
    protocol::Request,
    responses::{self, MessageWriter},
};

/// An HTTP request.
pub(crate) struct HttpCall {
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) port: u16,
    pub(crate) request: Option<Request>,
}

impl HttpCall {
    /// The stage of the session in which it is made.
    pub(crate) fn stage(&self) -> &'static str {
        match self.request.as_ref().map(|request| request.method.as_str()) {
            Some("server/discover" | "initialize") => "connect",
            Some("tools/list") => "list",
            Some("tools/call") => "call",
            Some(_) => "other",
            None if self.verb == "GET" => "listen",
            None => "other",
        }
    }
}

/// The stream of an HTTP+SSE server, which carries all responses.
type SharedStream = Arc<Mutex<Option<TcpStream>>>;

/// Runs a case until the process is killed.
pub(crate) fn run(scenario: &Scenario) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port();
    io::stdout().write_all(format!("{port}\n").as_bytes())?;
    io::stdout().flush()?;
    let event_stream = SharedStream::default();
    for stream in listener.incoming() {
        let (scenario, stream, event_stream) = (scenario.clone(), stream?, Arc::clone(&event_stream));
        // Errors mean that the client disconnected.
        thread::spawn(move || serve(&scenario, stream, port, &event_stream));
    }
    Ok(())
}

fn serve(
    scenario: &Scenario,
    mut stream: TcpStream,
    port: u16,
    event_stream: &SharedStream,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (name, stage) = scenario.case.split_once("-at-").unwrap_or((&scenario.case, "call"));
    if reset_connection(name, stage, &mut stream)? {
        return Ok(());
    }
    let call = read_call(&stream, port)?;
    if scenario.sse {
        return serve_sse(scenario, &call, stream, event_stream);
    }
    let is_affected = stage == call.stage() || stage == "every";
    if is_affected && http_responses::send_hostile(name, &call, &mut stream)? {
        return Ok(());
    }
    match &call.request {
        Some(request) if request.id.is_some() => {
            let mut writer = HttpBodyWriter { stream, events: scenario.events, has_begun: false };
            responses::respond(scenario, request, &mut writer)
        }
        Some(_) => respond(&mut stream, "202 Accepted", "", ""),
        None if call.verb == "GET" => respond(&mut stream, "405 Method Not Allowed", "", ""),
        None => respond(&mut stream, "200 OK", "", ""),
    }
}

pub(crate) fn respond(stream: &mut TcpStream, status: &str, headers: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n{body}");
    stream.write_all(head.as_bytes())
}

fn read_call(stream: &TcpStream, port: u16) -> io::Result<HttpCall> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut request_line_parts = first.split(' ').map(str::to_owned);
    let (verb, path) =
        (request_line_parts.next().unwrap_or_default(), request_line_parts.next().unwrap_or_default());
    Ok(HttpCall { verb, path, port, request: Request::read(&String::from_utf8_lossy(&body)) })
}

/// Closes the connection at the stage of the case, with input unread, so that the kernel resets it. Returns whether it did.
fn reset_connection(name: &str, stage: &str, stream: &mut TcpStream) -> io::Result<bool> {
    let partial_response: &[u8] = match name {
        "reset" => b"",
        "reset-in-head" => b"HTTP/1.1 200 OK\r\nContent-Ty",
        "reset-in-body" => {
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"jsonrpc\""
        }
        "reset-in-event" => b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {\"jsonrpc\"",
        _ => return Ok(false),
    };
    let mut request = vec![0; 64 << 10];
    for _ in 0..100 {
        let length = stream.peek(&mut request)?;
        let text = String::from_utf8_lossy(request.get(..length).unwrap_or_default()).into_owned();
        let current_stage = match () {
            () if text.contains("\"server/discover\"") || text.contains("\"initialize\"") => "connect",
            () if text.contains("\"tools/list\"") => "list",
            () if text.contains("\"tools/call\"") => "call",
            () if text.contains("\"method\"") || text.starts_with("GET") => "other",
            () => "",
        };
        if current_stage == stage {
            stream.write_all(partial_response)?;
            thread::sleep(Duration::from_millis(50));
            return Ok(true);
        }
        if !current_stage.is_empty() {
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(false)
}

/// Writes a body as JSON or as events.
struct HttpBodyWriter {
    stream: TcpStream,
    events: bool,
    has_begun: bool,
}

impl MessageWriter for HttpBodyWriter {
    fn begin(&mut self) -> io::Result<()> {
        if !self.has_begun {
            self.has_begun = true;
            let kind = if self.events { "text/event-stream" } else { "application/json" };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n");
            self.stream.write_all(head.as_bytes())?;
        }
        if self.events { self.stream.write_all(b"data: ") } else { Ok(()) }
    }

    fn write_piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    fn end(&mut self) -> io::Result<()> {
        if self.events { self.stream.write_all(b"\n\n") } else { Ok(()) }
    }
}

/// Writes to the stream of an HTTP+SSE server.
struct SseWriter<'a>(&'a mut TcpStream);

impl MessageWriter for SseWriter<'_> {
    fn begin(&mut self) -> io::Result<()> {
        self.0.write_all(b"event: message\r\ndata: ")
    }

    fn write_piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn end(&mut self) -> io::Result<()> {
        self.0.write_all(b"\r\n\r\n")
    }
}

/// HTTP+SSE of revision 2024-11-05: GET opens the stream, POST gets 202, responses go to the stream.
fn serve_sse(
    scenario: &Scenario,
    call: &HttpCall,
    mut stream: TcpStream,
    event_stream: &SharedStream,
) -> io::Result<()> {
    if call.verb == "GET" {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")?;
        if http_responses::send_endpoint(&scenario.case, call.port, &mut stream)? {
            return Ok(());
        }
        // Locked before the client knows the endpoint: its first message must find the stream.
        let mut shared = event_stream.lock();
        stream.write_all(b"event: endpoint\ndata: /messages?session=1\n\n")?;
        *shared = Some(stream);
        return Ok(());
    }
    if !call.path.starts_with("/messages") {
        return respond(&mut stream, "405 Method Not Allowed", "", "");
    }
    respond(&mut stream, "202 Accepted", "", "")?;
    let mut shared = event_stream.lock();
    let (Some(request), Some(open)) = (&call.request, shared.as_mut()) else { return Ok(()) };
    if call.stage() == "call" {
        match scenario.case.as_str() {
            "stream-ends" => {
                *shared = None;
                return Ok(());
            }
            "half-an-event" => {
                open.write_all(b"event: message\ndata: {\"jsonrpc\":\"2.0\",")?;
                *shared = None;
                return Ok(());
            }
            "silence" => return Ok(()),
            "endless-comments" => return http_responses::send_endlessly(open, b": still here\n\n"),
            "endless-events" => return http_responses::send_endlessly(open, b"event: other\ndata: {}\n\n"),
            _ => {}
        }
    }
    responses::respond(scenario, request, &mut SseWriter(open))
}
