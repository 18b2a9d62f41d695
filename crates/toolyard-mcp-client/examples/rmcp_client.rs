//! Lists and calls tools of a gateway with rmcp's client: `rmcp_client legacy|modern http URL` or
//! `… stdio PROGRAM ARGUMENTS…`. The token comes from the environment variable TOKEN.

#![expect(clippy::print_stdout, reason = "prints what it found")]

use std::{error::Error, process::Stdio};

use rmcp::{
    ClientLifecycleMode, RoleClient,
    model::{CallToolRequestParams, ProtocolVersion},
    serve_client_with_lifecycle,
    service::RunningService,
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::{Value, json};

type Client = RunningService<RoleClient, ()>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (family, transport_kind) =
        (arguments.next().unwrap_or_default(), arguments.next().unwrap_or_default());
    let client = connect(&family, &transport_kind, arguments.collect()).await?;
    let tools = client.list_all_tools().await?;
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    let answer = call_tool(&client, "calculate", json!({"expression": "6*7"})).await?;
    let upstream = call_tool(&client, "get_current_time", json!({"timezone": "UTC"})).await?;
    println!("{}", json!({"tools": names, "answer": answer, "upstream": upstream}));
    client.cancel().await?;
    Ok(())
}

async fn connect(family: &str, transport_kind: &str, target: Vec<String>) -> Result<Client, Box<dyn Error>> {
    let lifecycle = match family {
        "modern" => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
        _ => ClientLifecycleMode::Initialize,
    };
    let url_or_program = target.first().cloned().unwrap_or_default();
    if transport_kind == "http" {
        let mut config = StreamableHttpClientTransportConfig::with_uri(url_or_program);
        config.auth_header = std::env::var("TOKEN").ok();
        let transport = StreamableHttpClientTransport::from_config(config);
        return Ok(serve_client_with_lifecycle((), transport, lifecycle).await?);
    }
    let mut command = tokio::process::Command::new(url_or_program);
    command.args(target.iter().skip(1)).stdin(Stdio::piped()).stdout(Stdio::piped());
    // The program ends with its standard input.
    let mut child = command.spawn()?;
    let pipes = child.stdout.take().zip(child.stdin.take()).ok_or("no pipes")?;
    Ok(serve_client_with_lifecycle((), pipes, lifecycle).await?)
}

async fn call_tool(client: &Client, tool: &'static str, arguments: Value) -> Result<Value, Box<dyn Error>> {
    let mut request = CallToolRequestParams::new(tool);
    request.arguments = arguments.as_object().cloned();
    Ok(serde_json::to_value(client.call_tool(request).await?)?)
}
