//! A server that behaves badly in one named way, and well otherwise, for the tests of the client.
//!
//! `stdio CASE` and `http CASE` play a case; the latter says its port first. Options before the case: `--legacy` speaks
//! only the legacy era, `--events` answers with events and `--sse` in the first revision's way over HTTP, `--note FILE` adds
//! its process id to a file. `guard NAME WORDS…` is the guardian of such a server.

mod address;
mod address_bodies;
mod answers;
mod bomb;
mod definitions;
mod program;
mod protocol;

use std::{
    fs::OpenOptions,
    io::{self, Write},
    process::ExitCode,
};

use toolyard_mcp::client::guard;

/// What to play.
#[derive(Debug, Clone)]
pub(crate) struct Play {
    pub(crate) case: String,
    pub(crate) legacy: bool,
    /// Answers over HTTP are events.
    pub(crate) events: bool,
    /// Over HTTP it speaks the first revision only.
    pub(crate) sse: bool,
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let transport = words.next().unwrap_or_default();
    if transport == "guard" {
        // The name of the server comes first; it is only there to be seen.
        let code = guard(std::env::args_os().skip(3));
        return ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX));
    }
    let played = read_words(words).and_then(|play| match transport.as_str() {
        "stdio" => program::play(&play),
        "http" => address::play(&play),
        _ => Err(io::Error::other("it wants to hear: stdio|http [--legacy] [--note FILE] CASE")),
    });
    match played {
        Ok(()) => ExitCode::SUCCESS,
        // The client is gone: that is how it should end.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            // There is nobody else to tell.
            let _ = writeln!(io::stderr(), "hostile server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read_words(mut words: impl Iterator<Item = String>) -> io::Result<Play> {
    let mut play = Play { case: String::new(), legacy: false, events: false, sse: false };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--legacy" => play.legacy = true,
            "--events" => play.events = true,
            "--sse" => (play.sse, play.legacy) = (true, true),
            "--note" => {
                let path = words.next().unwrap_or_default();
                let mut file = OpenOptions::new().create(true).append(true).open(path)?;
                file.write_all(format!("{}\n", std::process::id()).as_bytes())?;
            }
            _ => play.case = word,
        }
    }
    Ok(play)
}
