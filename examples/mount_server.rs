//! Mounts an MCP server and calls one of its tools. The program and its arguments are those of the server:
//! `cargo run --example mount_server -- uvx mcp-server-time`.
#![expect(clippy::print_stdout, reason = "an example shows its result")]
use toolyard::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().ok_or("usage: mount_server PROGRAM ARGUMENT…")?;
    let toolyard = Toolyard::builder()
        .native_tools([])
        .server(McpServerConfig::stdio("mounted", program, arguments))
        // The server inherits PATH, HOME and the like, and nothing else.
        .environment(std::env::vars())
        .build()
        .await?;

    toolyard.discover_servers().await;
    for tool in toolyard.hub().tools() {
        println!("{}: {}", tool.spec().name, tool.spec().description.lines().next().unwrap_or_default());
    }
    // The first call of an unknown name starts the servers too: `discover_servers` is only needed for the list.
    if let Ok(output) = toolyard.call("calculate", json!({"expression": "6*7"})).await {
        println!("6*7 = {}", output.to_text());
    }
    toolyard.close().await?;
    Ok(())
}
