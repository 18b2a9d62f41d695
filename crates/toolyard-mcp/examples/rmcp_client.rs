//! Lists and calls through a door with rmcp's client: `rmcp_client legacy|modern http URL` or `… stdio PROGRAM ARGUMENTS…`;
//! the token comes from the environment variable TOKEN.

#![expect(clippy::print_stdout, reason = "what it found is what it prints")]

use std::error::Error;

use rmcp::{
    ClientLifecycleMode, RoleClient,
    model::{CallToolRequestParams, ProtocolVersion},
    serve_client_with_lifecycle,
    service::RunningService,
    transport::{
        StreamableHttpClientTransport, TokioChildProcess,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Value, json};

type Client = RunningService<RoleClient, ()>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (era, kind) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let client = connected(&era, &kind, words.collect()).await?;
    let tools = client.list_all_tools().await?;
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    let answer = called(&client, "calculate", json!({"expression": "6*7"})).await?;
    let upstream = called(&client, "get_current_time", json!({"timezone": "UTC"})).await?;
    println!("{}", json!({"tools": names, "answer": answer, "upstream": upstream}));
    client.cancel().await?;
    Ok(())
}

async fn connected(era: &str, kind: &str, target: Vec<String>) -> Result<Client, Box<dyn Error>> {
    let lifecycle = match era {
        "modern" => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
        _ => ClientLifecycleMode::Initialize,
    };
    let first = target.first().cloned().unwrap_or_default();
    if kind == "http" {
        let mut config = StreamableHttpClientTransportConfig::with_uri(first);
        config.auth_header = std::env::var("TOKEN").ok();
        let transport = StreamableHttpClientTransport::from_config(config);
        return Ok(serve_client_with_lifecycle((), transport, lifecycle).await?);
    }
    let mut command = tokio::process::Command::new(first);
    command.args(target.iter().skip(1));
    Ok(serve_client_with_lifecycle((), TokioChildProcess::new(command)?, lifecycle).await?)
}

async fn called(client: &Client, tool: &'static str, arguments: Value) -> Result<Value, Box<dyn Error>> {
    let mut request = CallToolRequestParams::new(tool);
    request.arguments = arguments.as_object().cloned();
    Ok(serde_json::to_value(client.call_tool(request).await?)?)
}
