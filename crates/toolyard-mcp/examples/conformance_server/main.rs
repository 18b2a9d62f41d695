//! A server with everything that the official conformance suite asks for: tools, prompts, resources, skills.
//!
//! `conformance_server [--http ADDRESS] [--stdio] [--sse] [--era legacy|modern|both]`. Over HTTP it says its address on
//! standard output once it is ready; any token is taken, because none is asked for. See `docs/conformance.md`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for a test suite")]

mod content;
mod content_answers;
mod definitions;
mod questions;
mod skills;
mod tools;

use std::{env, process::ExitCode, sync::Arc};

use content::FixtureContent;
use tokio::net::TcpListener;
use tools::FixtureTools;
use toolyard_mcp::server::{
    Access, Door, HttpConfig, McpServer, ServedEras, ServerConfig, SessionKeys, serve_http, serve_stdio,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What it is told.
#[derive(Debug, Default)]
struct Words {
    http: Option<String>,
    stdio: bool,
    sse: bool,
    eras: ServedEras,
}

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
    let words = read_words(env::args().skip(1))?;
    let content = Arc::new(FixtureContent::default());
    let tools = Arc::new(FixtureTools::new(Arc::clone(&content)));
    let mut config =
        ServerConfig::new("toolyard-conformance", env!("CARGO_PKG_VERSION"), SessionKeys::random()?);
    config.title = Some("Fixtures for the conformance suite".to_owned());
    config.eras = words.eras;
    let server = Arc::new(McpServer::new(config, Door { tools, content: vec![content], readiness: None }));
    if words.stdio {
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        return Ok(serve_stdio(server, input, output, std::future::pending()).await?);
    }
    let listener = TcpListener::bind(words.http.as_deref().unwrap_or("127.0.0.1:0")).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let mut http = HttpConfig::new(Access::Open);
    http.legacy_sse = words.sse;
    Ok(serve_http(server, listener, http, std::future::pending()).await?)
}

fn read_words(mut said: impl Iterator<Item = String>) -> Result<Words, Failure> {
    let mut words = Words::default();
    while let Some(word) = said.next() {
        match word.as_str() {
            "--http" => words.http = Some(said.next().ok_or("--http wants an address")?),
            "--stdio" => words.stdio = true,
            "--sse" => words.sse = true,
            "--era" => {
                words.eras = match said.next().as_deref() {
                    Some("legacy") => ServedEras::Legacy,
                    Some("modern") => ServedEras::Modern,
                    Some("both") => ServedEras::Both,
                    _ => return Err("--era wants legacy, modern or both".into()),
                }
            }
            other => return Err(format!("it does not know {other}").into()),
        }
    }
    Ok(words)
}
