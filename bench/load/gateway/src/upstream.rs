//! The built-in upstream: a small MCP server with `echo`, and ten servers of a hundred tools each.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpListener,
};

use crate::BenchError;

/// Number of tools of each of the ten servers.
const TOOLS_PER_SERVER: usize = 100;

/// Serves at `/mcp` (answers as events), `/json/mcp` (answers as JSON) and `/u0/mcp` … `/u9/mcp` (100 tools each).
pub(crate) async fn over_http(address: &str) -> Result<(), BenchError> {
    let listener = TcpListener::bind(address).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            // A client may disconnect at any time.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(handle)).await;
        });
    }
}

/// Serves on stdin and stdout.
pub(crate) async fn over_stdio() -> Result<(), BenchError> {
    let (mut lines, mut out) = (BufReader::new(tokio::io::stdin()).lines(), tokio::io::stdout());
    while let Some(line) = lines.next_line().await? {
        let message: Value = serde_json::from_str(&line)?;
        if let Some(mut answer) = response_to(&message, None).map(|answer| answer.to_string()) {
            answer.push('\n');
            out.write_all(answer.as_bytes()).await?;
            out.flush().await?;
        }
    }
    Ok(())
}

async fn handle(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let server_number =
        path.strip_prefix("/u").and_then(|rest| rest.split('/').next()?.parse::<usize>().ok());
    let is_post = request.method() == hyper::Method::POST;
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let answer = response_to(&message, server_number).filter(|_| is_post);
    let as_events = path == "/mcp";
    let (status, kind, body) = match answer {
        None if is_post => (202, "application/json", String::new()),
        None => (405, "application/json", String::new()),
        Some(answer) if as_events => (200, "text/event-stream", format!("data: {answer}\n\n")),
        Some(answer) => (200, "application/json", answer.to_string()),
    };
    let response = Response::builder().status(status).header("content-type", kind);
    Ok(response.body(Full::new(body.into())).unwrap_or_default())
}

/// The response to a legacy message; `None` for notifications.
fn response_to(message: &Value, server_number: Option<usize>) -> Option<Value> {
    let id = message.get("id")?;
    let result = match message["method"].as_str()? {
        "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "bench", "version": "1"}}),
        "tools/list" => json!({ "tools": tools(server_number) }),
        "tools/call" => {
            json!({"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]})
        }
        "ping" => json!({}),
        _ => {
            let error = json!({"code": -32601, "message": "no such method"});
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn tools(server_number: Option<usize>) -> Vec<Value> {
    let Some(number) = server_number else {
        return vec![json!({"name": "echo", "description": "Returns its text", "inputSchema":
            {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}})];
    };
    let schema = json!({"type": "object", "required": ["path"], "properties": {
        "path": {"type": "string", "description": "Path of the file, absolute or relative to the workspace"},
        "range": {"type": "string", "description": "Range of cells or lines, for example A1:C10"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
        "dry_run": {"type": "boolean", "default": false}, "text": {"type": "string"}}});
    let tool = |at: usize| {
        json!({"name": format!("t{number}_{at:03}"), "inputSchema": schema, "description":
            format!("Tool {at} of server {number}: reads, changes and writes one record and says what changed.")})
    };
    (0..TOOLS_PER_SERVER).map(tool).collect()
}
