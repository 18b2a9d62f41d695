//! Measures what a call through a gateway costs: Toolyard compared with nginx, other gateways and no gateway at all, in one
//! run, as ratios. `just bench-gateway` runs it.

mod benchmark;
mod client;
mod load;
mod memory;
mod plot;
mod process;
mod report;
mod subject;
mod upstream;

use std::{path::PathBuf, process::ExitCode};

use crate::{
    benchmark::{Benchmark, Plan},
    load::Load,
};

/// Why a measurement failed.
type BenchError = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "\
bench-gateway run --toolyard PROGRAM [--shared FOLDER] [--seconds 3] [--rounds 3] [--write FILE.md --plot FILE.svg]
                  [--calls no] [--peer 'NAME=COMMAND …{port} …{upstream}'] [--stdio-peer 'NAME=COMMAND …{port} … {server}']
bench-gateway upstream --http ADDRESS | --stdio
bench-gateway memory ADDRESS FILE…

--shared is a folder with the programs bench-upstream, bench-load and bench-rmcp-proxy, which replace the built-in ones.";

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["upstream", "--http", address] => upstream::over_http(address).await,
        ["upstream", "--stdio"] => upstream::over_stdio().await,
        ["memory", address, files @ ..] => match files.iter().map(std::fs::read).collect() {
            Ok(pages) => memory::serve(address, pages).await,
            Err(error) => Err(error.into()),
        },
        ["run", options @ ..] => run(options).await,
        _ => Err(USAGE.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &[&str]) -> Result<(), BenchError> {
    let mut plan = Plan::default();
    let (mut write, mut plot) = (None, None);
    let mut arguments = options.iter();
    while let Some(option) = arguments.next() {
        let value = *arguments.next().ok_or(USAGE)?;
        match *option {
            "--toolyard" => plan.toolyard = std::path::absolute(value)?,
            "--seconds" => plan.seconds = value.parse()?,
            "--calls" => plan.skips_calls = value == "no",
            "--rounds" => plan.rounds = value.parse()?,
            "--shared" => {
                plan.shared = Some(PathBuf::from(value)).filter(|folder| folder.join("bench-load").exists())
            }
            "--peer" => plan.peers.push(value.split_once('=').map(owned).ok_or(USAGE)?),
            "--stdio-peer" => plan.stdio_peers.push(value.split_once('=').map(owned).ok_or(USAGE)?),
            "--write" => write = Some(PathBuf::from(value)),
            "--plot" => plot = Some(PathBuf::from(value)),
            _ => return Err(USAGE.into()),
        }
    }
    plan.load = plan.shared.as_ref().map_or(Load::Own, |folder| Load::Shared(folder.join("bench-load")));
    let figures = Benchmark::open(plan)?.figures().await?;
    let table = report::markdown(&figures);
    println!("{table}");
    if let Some(file) = write {
        report::replace_table(&file, &table)?;
    }
    if let Some(file) = plot {
        std::fs::write(file, plot::svg(&figures))?;
    }
    Ok(())
}

fn owned((name, command): (&str, &str)) -> (String, String) {
    (name.to_owned(), command.to_owned())
}
