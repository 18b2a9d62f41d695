//! A server of your own functions, over stdio: `cargo run --example own_mcp_server`. With an address it serves HTTP instead:
//! `cargo run --example own_mcp_server -- 127.0.0.1:7411`.
use tokio::net::TcpListener;
use toolyard::{gateway::Access, prelude::*};

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet
    name: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let toolyard = Toolyard::builder()
        .native_tools([])
        .function("greet", "Greets a person", |g: Greet| async move { format!("Hello, {}!", g.name) })
        .prompt("welcome", "Asks for a welcome", |g: Greet| async move {
            Ok::<_, String>(format!("Write a short welcome for {}.", g.name))
        })
        .resource("memo://opening-hours", "Opening hours", "text/plain", || async {
            Ok::<_, String>("9 to 17")
        })
        .build()
        .await?;
    let endpoint = toolyard.serve("greeter", "1.0.0");
    match std::env::args().nth(1) {
        Some(address) => endpoint.http(TcpListener::bind(address).await?, Access::Open).await?,
        None => endpoint.stdio().await?,
    }
    Ok(())
}
