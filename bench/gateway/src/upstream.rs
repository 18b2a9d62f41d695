//! A small MCP server to measure against, where no other one is at hand: `echo`, and ten times a hundred tools.

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

use crate::Failed;

/// How many tools each of the ten servers of a farm has.
const FARM_TOOLS: usize = 100;

/// Serves at `/mcp` (answers as events), `/json/mcp` (answers as JSON) and `/u0/mcp` … `/u9/mcp` (100 tools each).
pub(crate) async fn over_http(address: &str) -> Result<(), Failed> {
    let listener = TcpListener::bind(address).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            // A client that goes away is none of our business.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await;
        });
    }
}

/// Serves whoever started it.
pub(crate) async fn over_stdio() -> Result<(), Failed> {
    let (mut lines, mut out) = (BufReader::new(tokio::io::stdin()).lines(), tokio::io::stdout());
    while let Some(line) = lines.next_line().await? {
        let message: Value = serde_json::from_str(&line)?;
        if let Some(mut answer) = answered(&message, None).map(|answer| answer.to_string()) {
            answer.push('\n');
            out.write_all(answer.as_bytes()).await?;
            out.flush().await?;
        }
    }
    Ok(())
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let farm = path.strip_prefix("/u").and_then(|rest| rest.split('/').next()?.parse::<usize>().ok());
    let posted = request.method() == hyper::Method::POST;
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let answer = answered(&message, farm).filter(|_| posted);
    let as_events = path == "/mcp";
    let (status, kind, body) = match answer {
        None if posted => (202, "application/json", String::new()),
        None => (405, "application/json", String::new()),
        Some(answer) if as_events => (200, "text/event-stream", format!("data: {answer}\n\n")),
        Some(answer) => (200, "application/json", answer.to_string()),
    };
    let response = Response::builder().status(status).header("content-type", kind);
    Ok(response.body(Full::new(body.into())).unwrap_or_default())
}

/// The answer to one message of the legacy era; none to what asks nothing.
fn answered(message: &Value, farm: Option<usize>) -> Option<Value> {
    let id = message.get("id")?;
    let result = match message["method"].as_str()? {
        "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "bench", "version": "1"}}),
        "tools/list" => json!({ "tools": tools(farm) }),
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

fn tools(farm: Option<usize>) -> Vec<Value> {
    let Some(number) = farm else {
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
    (0..FARM_TOOLS).map(tool).collect()
}
