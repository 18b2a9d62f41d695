//! A server with all fixtures of the official conformance suite: tools, prompts, resources, skills.
//!
//! `conformance_server [--http ADDRESS] [--stdio] [--sse] [--revisions legacy|modern|both]`. Over HTTP it
//! prints its URL when it is ready; no token is needed. See `docs/conformance.md`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for a test suite")]

mod content;
mod content_results;
mod definitions;
mod input_requests;
mod skills;
mod tools;

use std::{env, process::ExitCode, sync::Arc};

use content::FixtureContent;
use tokio::net::TcpListener;
use tools::FixtureTools;
use toolyard_mcp_server::{
    Access, Endpoint, HttpConfig, McpServer, ServedRevisions, ServerConfig, SessionKeys, serve_http,
    serve_stdio,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, Default)]
struct Arguments {
    http: Option<String>,
    stdio: bool,
    sse: bool,
    revisions: ServedRevisions,
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
    let arguments = parse_arguments(env::args().skip(1))?;
    let content = Arc::new(FixtureContent::default());
    let tools = Arc::new(FixtureTools::new(Arc::clone(&content)));
    let mut config =
        ServerConfig::new("toolyard-conformance", env!("CARGO_PKG_VERSION"), SessionKeys::random()?);
    config.title = Some("Fixtures for the conformance suite".to_owned());
    config.revisions = arguments.revisions;
    let server =
        Arc::new(McpServer::new(config, Endpoint { content: vec![content], ..Endpoint::new(tools) }));
    if arguments.stdio {
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        return Ok(serve_stdio(server, input, output, std::future::pending()).await?);
    }
    let listener = TcpListener::bind(arguments.http.as_deref().unwrap_or("127.0.0.1:0")).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let mut http = HttpConfig::new(Access::Open);
    http.legacy_sse = arguments.sse;
    Ok(serve_http(server, listener, http, std::future::pending()).await?)
}

fn parse_arguments(mut args: impl Iterator<Item = String>) -> Result<Arguments, Failure> {
    let mut arguments = Arguments::default();
    while let Some(argument) = args.next() {
        match argument.as_str() {
            "--http" => arguments.http = Some(args.next().ok_or("--http needs an address")?),
            "--stdio" => arguments.stdio = true,
            "--sse" => arguments.sse = true,
            "--revisions" => {
                arguments.revisions = match args.next().as_deref() {
                    Some("legacy") => ServedRevisions::Legacy,
                    Some("modern") => ServedRevisions::Modern,
                    Some("both") => ServedRevisions::Both,
                    _ => return Err("--revisions needs legacy, modern or both".into()),
                }
            }
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    Ok(arguments)
}
