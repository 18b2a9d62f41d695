//! A hub that tests kill, and the guard of its server, for the tests of the stdio transport.
//!
//! `guard [NAME] ARGUMENTS…` is a guard. `hub COMMAND ARGUMENTS…` starts a server and waits for ever.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for tests")]

use std::{ffi::OsString, process::ExitCode, sync::Arc};

use toolyard_mcp::WireLimits;
use toolyard_mcp_client::{GuardProgram, PendingRequests, StdioLaunch, StdioTransport, run_guard};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(argument) if argument == "guard" => {
            // The name of the server comes first, for the process list.
            let arguments = arguments.skip_while(|argument| argument != "--grace-ms");
            u8::try_from(run_guard(arguments)).map_or(ExitCode::FAILURE, ExitCode::from)
        }
        Some(argument) if argument == "hub" => {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            runtime.block_on(hub(arguments.map(|argument| argument.into_string().unwrap()).collect()))
        }
        _ => ExitCode::FAILURE,
    }
}

async fn hub(arguments: Vec<String>) -> ExitCode {
    let mut arguments = arguments.into_iter();
    let mut launch = StdioLaunch::new(arguments.next().unwrap());
    launch.args = arguments.collect();
    launch.environment =
        std::env::vars().filter(|(name, _)| name == "PATH" || name == "TEST_DIRECTORY").collect();
    launch.guard = Some(GuardProgram::current_program([OsString::from("guard")]));
    let (requests, _messages) = PendingRequests::new(16);
    let connected = StdioTransport::connect(launch, Arc::new(requests), WireLimits::default()).await;
    let transport = connected.unwrap();
    println!("started");
    std::future::pending::<()>().await;
    drop(transport);
    ExitCode::SUCCESS
}
