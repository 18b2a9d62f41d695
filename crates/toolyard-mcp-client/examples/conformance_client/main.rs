//! The client that the official conformance suite drives: manager, sessions and tools of the library, directed by the name
//! of a scenario.
//!
//! `conformance_client URL`, with `MCP_CONFORMANCE_SCENARIO` and, for some, `MCP_CONFORMANCE_CONTEXT` in the environment.
//! The revision is negotiated, not read from `MCP_CONFORMANCE_PROTOCOL_VERSION`. See
//! `docs/conformance.md`.

#![expect(clippy::print_stderr, reason = "a program for a test suite, which keeps its output")]

mod accepting_user;
mod auth;
mod scenario;
mod test_environment;

use std::{env, process::ExitCode};

use scenario::Scenario;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Failure> {
    let url = env::args().next_back().ok_or("missing argument: URL of the server")?;
    let name = env::var("MCP_CONFORMANCE_SCENARIO")?;
    let context = match env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(text) => serde_json::from_str(&text)?,
        Err(_) => serde_json::Value::Null,
    };
    let scenario = Scenario::open(&url, name, context).await?;
    let outcome = scenario.run().await;
    scenario.close().await;
    outcome
}
