//! HTTP responses that are invalid, endless or redirect elsewhere.

use std::{
    io::{self, Write},
    net::TcpStream,
    thread::sleep,
    time::Duration,
};

use serde_json::json;

use crate::{
    gzip_bomb,
    http_server::{HttpCall, respond},
    protocol::{LEGACY, MODERN, Request, text_result, valid_response},
};

const JSON: &str = "Content-Type: application/json\r\n";
const EVENTS: &str = "Content-Type: text/event-stream\r\n";
/// Longer than any timeout of a test.
const SILENCE: Duration = Duration::from_secs(60);

/// Sends the response of the case. Returns whether there is one.
pub(crate) fn send_hostile(case: &str, call: &HttpCall, stream: &mut TcpStream) -> io::Result<bool> {
    Ok(send_redirect(case, call, stream)?
        || send_status(case, stream)?
        || send_head(case, call, stream)?
        || send_wrong_length(case, call, stream)?
        || send_body(case, call, stream)?)
}

fn send_redirect(case: &str, call: &HttpCall, stream: &mut TcpStream) -> io::Result<bool> {
    let (status, location) = match case {
        "redirect-loop" => ("307 Temporary Redirect", format!("http://127.0.0.1:{}/mcp", call.port)),
        "redirect-303" => ("303 See Other", "/elsewhere".to_owned()),
        "redirect-301" => ("301 Moved Permanently", "/elsewhere".to_owned()),
        "redirect-other-origin" => ("307 Temporary Redirect", "http://localhost:9/mcp".to_owned()),
        "redirect-other-port" => ("308 Permanent Redirect", "http://127.0.0.1:9/mcp".to_owned()),
        "redirect-file" => ("307 Temporary Redirect", "file:///etc/passwd".to_owned()),
        "redirect-metadata" => {
            ("307 Temporary Redirect", "http://169.254.169.254/latest/meta-data".to_owned())
        }
        "redirect-userinfo" => {
            ("307 Temporary Redirect", format!("http://user:pw@127.0.0.1:{}/mcp", call.port))
        }
        "redirect-invalid-url" => ("307 Temporary Redirect", "http://[".to_owned()),
        "redirect-1mb" => ("307 Temporary Redirect", "a".repeat(1 << 20)),
        _ => return Ok(false),
    };
    respond(stream, status, &format!("Location: {location}\r\n"), "")?;
    Ok(true)
}

fn send_status(case: &str, stream: &mut TcpStream) -> io::Result<bool> {
    let html = "<html><script>alert(1)</script>\u{1b}[2J</html>";
    match case {
        "html-200" => respond(stream, "200 OK", "Content-Type: text/html\r\n", html)?,
        "status-500" => respond(stream, "500 Oh No", "Content-Type: text/html\r\n", html)?,
        "status-503" => respond(stream, "503 Busy", "Retry-After: 99999999999\r\n", "")?,
        "status-429" => respond(stream, "429 Slow", "Retry-After: -1\r\n", "")?,
        "status-202" => respond(stream, "202 Accepted", "", "")?,
        "status-204" => respond(stream, "204 No Content", "", "")?,
        "status-304" => respond(stream, "304 Not Modified", "", "")?,
        "status-999" => respond(stream, "999 What", "", "")?,
        "status-404" => respond(stream, "404 Not Found", "", "")?,
        "no-content-type" => respond(stream, "200 OK", "", "{}")?,
        "empty-body" => respond(stream, "200 OK", JSON, "")?,
        "error-body-endless" => {
            stream.write_all(b"HTTP/1.1 400 Bad\r\nContent-Type: application/json\r\n\r\n{\"a\":\"")?;
            send_endlessly(stream, b"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")?;
        }
        "error-body-drip" => {
            stream.write_all(b"HTTP/1.1 500 Bad\r\nContent-Type: application/json\r\n\r\n{\"a\":\"")?;
            send_slowly(stream, b"x")?;
        }
        "challenge-100kb" => {
            let challenge = format!("WWW-Authenticate: Bearer realm=\"{}\"\r\n", "r".repeat(100_000));
            respond(stream, "401 Unauthorized", &challenge, "")?;
        }
        "challenge-strange" => {
            let challenge = "WWW-Authenticate: Bearer resource_metadata=\"file:///etc/passwd\", scope=\"\\\"\\\"\"\r\nWWW-Authenticate: ,,,=\"\r\n";
            respond(stream, "401 Unauthorized", challenge, "")?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Heads that are invalid, endless or missing, and compressed bodies.
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn send_head(case: &str, call: &HttpCall, stream: &mut TcpStream) -> io::Result<bool> {
    let body = call.request.as_ref().and_then(|request| valid_response(request, LEGACY)).unwrap_or_default();
    let json_headers = |header: String| format!("{JSON}{header}\r\n");
    match case {
        "tls" => stream
            .write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03garbage that goes on for a while")?,
        "not-http" => stream.write_all(b"SSH-2.0-OpenSSH_9.6\r\n")?,
        "http-without-head" => stream.write_all(body.as_bytes())?,
        "nothing" => {}
        "silence" => sleep(SILENCE),
        "head-drip" => send_slowly(stream, b"HTTP/1.1 200 OK\r\nX-A: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")?,
        "endless-head" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
            send_endlessly(stream, b"X-Header: one more of these\r\n")?;
        }
        "endless-header" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nX-Header: ")?;
            send_endlessly(stream, b"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")?;
        }
        "endless-continue" => send_endlessly(stream, b"HTTP/1.1 100 Continue\r\n\r\n")?,
        "switching-protocols" => {
            stream.write_all(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            )?;
            send_endlessly(stream, b"garbage")?;
        }
        "session-1mb" => {
            respond(
                stream,
                "200 OK",
                &json_headers(format!("Mcp-Session-Id: {}", "s".repeat(1 << 20))),
                &body,
            )?;
        }
        "session-100kb" => {
            respond(
                stream,
                "200 OK",
                &json_headers(format!("Mcp-Session-Id: {}", "s".repeat(100 << 10))),
                &body,
            )?;
        }
        "session-control" => {
            respond(stream, "200 OK", &json_headers("Mcp-Session-Id: a\x01\x1bb".to_owned()), &body)?;
        }
        "session-latin" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nMcp-Session-Id: \xe9\xff\r\n\r\n")?;
            stream.write_all(body.as_bytes())?;
        }
        "gzip-bomb" => {
            stream.write_all(
                format!("HTTP/1.1 200 OK\r\n{JSON}Content-Encoding: gzip\r\nConnection: close\r\n\r\n")
                    .as_bytes(),
            )?;
            stream.write_all(&gzip_bomb::gzip_megabytes(1_000))?;
        }
        "gzip-bomb-error" => {
            stream.write_all(
                format!("HTTP/1.1 400 No\r\n{JSON}Content-Encoding: gzip\r\nConnection: close\r\n\r\n")
                    .as_bytes(),
            )?;
            stream.write_all(&gzip_bomb::gzip_megabytes(1_000))?;
        }
        "gzip-bomb-events" => {
            stream.write_all(
                format!("HTTP/1.1 200 OK\r\n{EVENTS}Content-Encoding: gzip\r\nConnection: close\r\n\r\n")
                    .as_bytes(),
            )?;
            stream.write_all(&gzip_bomb::gzip_megabytes(1_000))?;
        }
        "unknown-encoding" => {
            respond(stream, "200 OK", &json_headers("Content-Encoding: zstd, br, gzip".to_owned()), &body)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Sends a response whose length is wrong or never reached.
fn send_wrong_length(case: &str, call: &HttpCall, stream: &mut TcpStream) -> io::Result<bool> {
    let body = call.request.as_ref().and_then(|request| valid_response(request, MODERN)).unwrap_or_default();
    let mut send = |header: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\n{JSON}{header}\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)
    };
    match case {
        "length-short" => send("Content-Length: 10", body.as_bytes()),
        "length-long" => send("Content-Length: 100000", body.as_bytes()),
        "length-100mb" => {
            send("Content-Length: 104857600", body.as_bytes())?;
            send_endlessly(stream, &[b' '; 4_096])
        }
        "length-15mb-and-silence" => {
            send("Content-Length: 15728640", b"")?;
            sleep(SILENCE);
            Ok(())
        }
        "length-negative" => send("Content-Length: -1", body.as_bytes()),
        "length-overflow" => send("Content-Length: 99999999999999999999999999", body.as_bytes()),
        "length-twice" => send("Content-Length: 10\r\nContent-Length: 20", body.as_bytes()),
        "length-and-chunked" => send(
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).as_bytes(),
        ),
        "chunks-endless" => {
            send("Transfer-Encoding: chunked", b"")?;
            send_endlessly(stream, b"10\r\n                \r\n")
        }
        "chunk-overflow" => send("Transfer-Encoding: chunked", b"fffffffffffffffff\r\n{}"),
        "chunk-extension-endless" => {
            send("Transfer-Encoding: chunked", b"1;")?;
            send_endlessly(stream, b"extension=value;")
        }
        "chunk-garbage" => send("Transfer-Encoding: chunked", b"zz\r\n{}\r\n"),
        "chunk-trailers-endless" => {
            send("Transfer-Encoding: chunked", format!("{:x}\r\n{body}\r\n0\r\n", body.len()).as_bytes())?;
            send_endlessly(stream, b"X-Trailer: one more\r\n")
        }
        _ => return Ok(false),
    }?;
    Ok(true)
}

/// Bodies and event streams that are endless, slow or cut off, or hold something unexpected.
fn send_body(case: &str, call: &HttpCall, stream: &mut TcpStream) -> io::Result<bool> {
    let valid_response =
        call.request.as_ref().and_then(|request| valid_response(request, MODERN)).unwrap_or_default();
    let id = call.request.as_ref().map(Request::numeric_id).unwrap_or_default();
    let mut send_events = |first: &str, repeated: &[u8]| {
        stream.write_all(format!("HTTP/1.1 200 OK\r\n{EVENTS}\r\n{first}").as_bytes())?;
        if repeated.is_empty() { Ok(()) } else { send_endlessly(stream, repeated) }
    };
    let response_to_another = json!({"jsonrpc": "2.0", "id": id + 1, "result": text_result("poison")});
    match case {
        "endless-events" => {
            send_events(
                "",
                b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n",
            )?;
        }
        "endless-other-events" => send_events("", b"event: other\ndata: x\n\n")?,
        "endless-comments" => send_events("", b": still here\n")?,
        "endless-line" => send_events("data: {\"", &[b'x'; 4_096])?,
        "endless-data-lines" => send_events("", b"data:\n")?,
        "endless-field" => send_events("", &[b'f'; 4_096])?,
        "endless-ids" => send_events("", b"id: 1\n\n")?,
        "endless-responses-to-others" => {
            send_events("", format!("data: {response_to_another}\n\n").as_bytes())?;
        }
        "event-drip" => {
            send_events("data: ", b"")?;
            send_slowly(stream, valid_response.as_bytes())?;
        }
        "body-drip" => {
            stream.write_all(format!("HTTP/1.1 200 OK\r\n{JSON}\r\n").as_bytes())?;
            send_slowly(stream, valid_response.as_bytes())?;
        }
        "event-silence" => {
            send_events(": hello\n\n", b"")?;
            sleep(SILENCE);
        }
        "half-an-event" => send_events(&format!("data: {valid_response}"), b"")?,
        "no-response-then-end" => {
            send_events("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n", b"")?;
        }
        "retry-zero" => send_events("retry: 0\nid: 1\ndata:\n\n", b"")?,
        "retry-huge" => send_events("retry: 99999999999999999999\nid: 1\ndata:\n\n", b"")?,
        "event-id-strange" => send_events("id: \u{1}\u{7f}é\0\ndata:\n\n", b"")?,
        "event-id-1mb" => send_events(&format!("id: {}\ndata:\n\n", "i".repeat(1 << 20)), b"")?,
        "event-not-json" => send_events("data: <html>\n\n", b"")?,
        "response-to-another" => respond(stream, "200 OK", JSON, &response_to_another.to_string())?,
        "response-to-another-event" => send_events(&format!("data: {response_to_another}\n\n"), b"")?,
        "carriage-returns" => send_events(&format!("event: message\rdata: {valid_response}\r\r"), b"")?,
        "open-after-response" => send_events(&format!("data: {valid_response}\n\n"), b": still here\n\n")?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Sends the endpoint event of an HTTP+SSE server as the case demands. Returns whether the case is about it.
pub(crate) fn send_endpoint(case: &str, port: u16, stream: &mut TcpStream) -> io::Result<bool> {
    let endpoint = match case {
        "endpoint-other-origin" => "http://localhost:9/messages".to_owned(),
        "endpoint-other-port" => "http://127.0.0.1:9/messages".to_owned(),
        "endpoint-metadata" => "//169.254.169.254/messages".to_owned(),
        "endpoint-file" => "file:///etc/passwd".to_owned(),
        "endpoint-userinfo" => format!("http://127.0.0.1:{port}@localhost:9/messages"),
        "endpoint-1mb" => "m".repeat(1 << 20),
        "endpoint-empty" => String::new(),
        "endpoint-never" => {
            send_endlessly(stream, b": soon\n\n")?;
            return Ok(true);
        }
        "endpoint-silence" => {
            sleep(SILENCE);
            return Ok(true);
        }
        "endpoint-stream-ends" => return Ok(true),
        _ => return Ok(false),
    };
    stream.write_all(format!("event: endpoint\ndata: {endpoint}\n\n").as_bytes())?;
    sleep(SILENCE);
    Ok(true)
}

/// Sends the same bytes until the client disconnects.
pub(crate) fn send_endlessly(stream: &mut TcpStream, piece: &[u8]) -> io::Result<()> {
    let pieces = piece.repeat(((64 << 10) / piece.len()).max(1));
    loop {
        stream.write_all(&pieces)?;
    }
}

/// Sends the bytes over and over, one a second, until the client disconnects.
fn send_slowly(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    for byte in bytes.iter().cycle() {
        stream.write_all(&[*byte])?;
        sleep(Duration::from_secs(1));
    }
    Ok(())
}
