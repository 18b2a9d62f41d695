//! A server that misbehaves in one named way and is correct otherwise, for the tests of the client.
//!
//! `stdio CASE` and `http CASE` run a case; the latter prints its port first. Options before the case: `--legacy` speaks only
//! legacy revisions, `--events` responds with event streams, `--sse` speaks HTTP+SSE of revision 2024-11-05, and
//! `--record FILE` appends the process id to a file. `guard NAME ARGUMENTS…` is the guard of such a server.

mod gzip_bomb;
mod http_responses;
mod http_server;
mod protocol;
mod responses;
mod stdio_server;
mod tool_lists;

use std::{
    fs::OpenOptions,
    io::{self, Write},
    process::ExitCode,
};

use toolyard_mcp_client::run_guard;

/// What the server does.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) case: String,
    /// Speaks only legacy revisions.
    pub(crate) legacy: bool,
    /// Responds over HTTP with event streams.
    pub(crate) events: bool,
    /// Speaks HTTP+SSE.
    pub(crate) sse: bool,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let transport = arguments.next().unwrap_or_default();
    if transport == "guard" {
        // The first argument is the name of the server, for the process list.
        let code = run_guard(std::env::args_os().skip(3));
        return ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX));
    }
    let outcome = parse_arguments(arguments).and_then(|scenario| match transport.as_str() {
        "stdio" => stdio_server::run(&scenario),
        "http" => http_server::run(&scenario),
        _ => Err(io::Error::other("usage: stdio|http [--legacy] [--events] [--sse] [--record FILE] CASE")),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // The client has disconnected.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "hostile server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse_arguments(mut arguments: impl Iterator<Item = String>) -> io::Result<Scenario> {
    let mut scenario = Scenario { case: String::new(), legacy: false, events: false, sse: false };
    while let Some(word) = arguments.next() {
        match word.as_str() {
            "--legacy" => scenario.legacy = true,
            "--events" => scenario.events = true,
            "--sse" => (scenario.sse, scenario.legacy) = (true, true),
            "--record" => {
                let path = arguments.next().unwrap_or_default();
                let mut file = OpenOptions::new().create(true).append(true).open(path)?;
                file.write_all(format!("{}\n", std::process::id()).as_bytes())?;
            }
            _ => scenario.case = word,
        }
    }
    Ok(scenario)
}
