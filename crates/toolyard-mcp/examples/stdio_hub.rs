//! A hub that is meant to be killed, and the guardian of its server, for the tests of the stdio transport.
//!
//! `guard [NAME] WORDS…` is a guardian. `hub COMMAND ARGS…` starts a server through the transport and waits for its own end.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a process made for tests")]

use std::{ffi::OsString, process::ExitCode, sync::Arc};

use toolyard_mcp::{
    client::{Exchange, GuardProgram, StdioLaunch, guard, stdio::connect},
    wire::WireLimits,
};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    match words.next() {
        Some(word) if word == "guard" => {
            // Whom it guards is said first, for whoever looks at the list of processes.
            let words = words.skip_while(|word| word != "--grace-ms");
            u8::try_from(guard(words)).map_or(ExitCode::FAILURE, ExitCode::from)
        }
        Some(word) if word == "hub" => {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            runtime.block_on(hub(words.map(|word| word.into_string().unwrap()).collect()))
        }
        _ => ExitCode::FAILURE,
    }
}

async fn hub(words: Vec<String>) -> ExitCode {
    let mut words = words.into_iter();
    let mut launch = StdioLaunch::new(words.next().unwrap());
    launch.args = words.collect();
    launch.environment = std::env::vars().filter(|(name, _)| name == "PATH" || name == "YARD").collect();
    launch.guard = Some(GuardProgram::this_program([OsString::from("guard")]));
    let (exchange, _heard) = Exchange::new(16);
    let transport = connect(launch, Arc::new(exchange), WireLimits::default()).await.unwrap();
    println!("started");
    std::future::pending::<()>().await;
    drop(transport);
    ExitCode::SUCCESS
}
