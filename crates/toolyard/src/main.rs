//! The program `toolyard`: reads the command line, runs one command, and says how it went.

mod cli;
mod commands;
mod failure;
mod files;
mod folders;
mod guardian;
mod logs;
mod machine;
mod output;
mod progress;
mod run_view;
mod server_files;

use std::process::ExitCode;

use clap::Parser as _;

use crate::{
    cli::{Cli, Command},
    output::Output,
};

fn main() -> ExitCode {
    // A guardian of a server is this program too; it needs nothing else of it.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == guardian::WORD) {
        return guardian::run(words);
    }
    let cli = Cli::parse();
    start_logging(cli.verbose);
    let output = Output::new(cli.json);
    let runtime = match runtime(&cli) {
        Ok(runtime) => runtime,
        Err(error) => {
            output.error(&format!("failed to start: {error}"), None);
            return ExitCode::FAILURE;
        }
    };
    let outcome = runtime.block_on(commands::run(cli, &output));
    // Whatever a dropped call left behind on other threads must not keep the program alive.
    runtime.shutdown_background();
    match outcome {
        Ok(()) if !output.is_complete() => {
            output.error("the answer could not be written", Some("is the disk full?"));
            ExitCode::FAILURE
        }
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell(&output);
            failure.code()
        }
    }
}

/// One thread is enough for all but very busy hubs, and costs least for each call.
fn runtime(cli: &Cli) -> std::io::Result<tokio::runtime::Runtime> {
    use tokio::runtime::Builder;
    match &cli.command {
        Command::Serve(arguments) if arguments.threads > 1 => {
            Builder::new_multi_thread().worker_threads(arguments.threads).enable_all().build()
        }
        _ => Builder::new_current_thread().enable_all().build(),
    }
}

/// Logs go to stderr: warnings by default, decisions with `-v`, everything with `-vv`.
fn start_logging(verbose: u8) {
    let level = match verbose {
        // What servers do wrong is told by the commands themselves.
        0 => "warn,toolyard_mcp=error",
        1 => "toolyard=debug,toolyard_hub=debug,toolyard_mcp=debug,toolyard_tools=debug,warn",
        _ => "trace",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("TOOLYARD_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(level));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Redacting).with_ansi(false).init();
}

/// Standard error, with secrets taken out of every line of the log.
struct Redacting;

impl std::io::Write for Redacting {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        std::io::stderr().write_all(toolyard_core::redact(&text).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}
