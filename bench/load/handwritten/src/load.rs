//! The other end of measured connections: a server with canned responses, and a client that sends one request after
//! another.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
};

use crate::{Outcome, http_server};

/// Starts a server whose response to `POST /N` has N bytes. It ends with the process.
pub(crate) fn start_server() -> Outcome<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || drop(serve(stream)));
        }
    });
    Ok(address)
}

fn serve(stream: TcpStream) -> Outcome {
    stream.set_nodelay(true)?;
    let (mut reader, mut writer) = (BufReader::new(stream.try_clone()?), stream);
    while let Some(request) = Head::read(&mut reader)? {
        let bytes: usize = request.first_line.split(['/', ' ']).nth(2).unwrap_or_default().parse()?;
        let head = format!(
            "HTTP/1.1 200 OK\r\ndate: Mon, 16 Nov 2026 09:00:00 GMT\r\nserver: uvicorn\r\ncontent-type: application/json\r\n\
             mcp-session-id: 9f0e3c1a5b7d4e2f8a6c0d1e2f3a4b5c\r\ncontent-length: {bytes}\r\n\r\n"
        );
        let mut response = head.into_bytes();
        response.resize(response.len() + bytes, b'x');
        writer.write_all(&response)?;
    }
    Ok(())
}

/// Head and body of a message.
struct Head {
    first_line: String,
    session: Option<String>,
    body: Vec<u8>,
}

impl Head {
    /// The next message; none at the end of the connection.
    fn read(reader: &mut BufReader<TcpStream>) -> Outcome<Option<Self>> {
        let mut message = Self { first_line: String::new(), session: None, body: Vec::new() };
        if reader.read_line(&mut message.first_line)? == 0 {
            return Ok(None);
        }
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse()?,
                "mcp-session-id" => message.session = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        message.body.resize(length, 0);
        reader.read_exact(&mut message.body)?;
        Ok(Some(message))
    }
}

/// Sends `count` tool calls over one connection and checks each response.
pub(crate) fn send_calls(way: &str, address: &str, count: usize) -> Outcome {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let (mut reader, mut writer) = (BufReader::new(stream.try_clone()?), stream);
    let mut exchange = |path: &str, session: Option<&str>, body: &str| -> Outcome<Head> {
        writer.write_all(&request(address, path, session, body))?;
        let response = Head::read(&mut reader)?.ok_or("the server closed the connection")?;
        if !response.first_line.starts_with("HTTP/1.1 200") {
            let body = String::from_utf8_lossy(&response.body);
            return Err(format!("{way}: {} {body}", response.first_line.trim()).into());
        }
        Ok(response)
    };
    let (path, mut session) = if way == "ours-mcp" { ("/mcp", None) } else { (http_server::PATH, None) };
    if way == "ours-mcp" {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}"#;
        session = exchange(path, None, body)?.session;
    }
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"greet","arguments":{}}}"#;
    for _ in 0..count {
        let response = exchange(path, session.as_deref(), call)?;
        let body = String::from_utf8(response.body)?;
        if !body.contains(r#""id":7"#) || !body.contains(r#""text":"hello""#) {
            return Err(format!("{way}: unexpected response {body}").into());
        }
    }
    Ok(())
}

fn request(address: &str, path: &str, session: Option<&str>, body: &str) -> Vec<u8> {
    let session = session.unwrap_or("9f0e3c1a5b7d4e2f8a6c0d1e2f3a4b5c");
    let session =
        if body.contains("initialize") { String::new() } else { format!("mcp-session-id: {session}\r\n") };
    format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
         authorization: Bearer {token}\r\nuser-agent: load/1\r\nmcp-protocol-version: 2025-11-25\r\n{session}content-length: {length}\r\n\r\n{body}",
        token = http_server::TOKEN,
        length = body.len(),
    )
    .into_bytes()
}
