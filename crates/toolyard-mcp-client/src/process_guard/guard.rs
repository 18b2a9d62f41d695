//! Command line and entry point of the guard process.
//!
//! We start `PROGRAM ARGS… --grace-ms N -- COMMAND ARGS…`; the program calls [`run_guard`] with what follows its own
//! arguments. The server inherits standard input, output and error, so no byte is copied. When we close the server's
//! input, or are gone, the guard ends the whole process tree. As a subreaper it adopts the orphans of that tree.

use std::{
    ffi::OsString,
    io::{self, Write},
    path::PathBuf,
    process::{Child, Command},
    thread::sleep,
    time::Duration,
};

use toolyard_core::busy_executable_delay;

#[cfg(target_os = "linux")]
use crate::process_guard::monitor::{Monitor, SignalPipes};

/// How long a server may take to exit once its input is closed.
pub(crate) const DEFAULT_SHUTDOWN_GRACE: Duration = Duration::from_millis(700);

/// The exit code if the guard itself fails.
const EXIT_GUARD_FAILED: i32 = 125;
/// The exit code if the command cannot be executed, as in shells.
const EXIT_NOT_EXECUTABLE: i32 = 126;
/// The exit code if the command does not exist, as in shells.
const EXIT_NOT_FOUND: i32 = 127;
const GRACE_FLAG: &str = "--grace-ms";
const END_OF_FLAGS: &str = "--";

/// The program that becomes the guard, usually the running one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardProgram {
    /// The program.
    pub program: PathBuf,
    /// Its first arguments, such as `guard`.
    pub args: Vec<OsString>,
}

impl GuardProgram {
    /// Adds the name of the server as an argument, for readers of the process list.
    #[must_use]
    pub fn with_label(mut self, server: &str) -> Self {
        self.args.push(server.into());
        self
    }

    /// The running program, which must call [`run_guard`] when it gets `args`. The path stays valid if the file is
    /// replaced by an update.
    pub fn current_program(args: impl IntoIterator<Item = OsString>) -> Self {
        Self { program: PathBuf::from("/proc/self/exe"), args: args.into_iter().collect() }
    }

    pub(crate) fn arguments(&self, server: GuardedCommand) -> Vec<OsString> {
        let mut arguments = self.args.clone();
        arguments.extend([
            GRACE_FLAG.into(),
            server.shutdown_grace.as_millis().to_string().into(),
            END_OF_FLAGS.into(),
            server.program,
        ]);
        arguments.extend(server.args);
        arguments
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GuardedCommand {
    pub(crate) shutdown_grace: Duration,
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
}

/// Runs a server under guard until every process of it has ended. `arguments` are those after the program's own.
/// Returns the exit code of the server, or 128 plus its signal.
///
/// Blocks the thread and needs a process of its own, without a runtime.
pub fn run_guard(arguments: impl IntoIterator<Item = OsString>) -> i32 {
    let Some(server) = parse_arguments(arguments) else {
        report("usage: [--grace-ms N] -- COMMAND [ARGS…]");
        return EXIT_GUARD_FAILED;
    };
    run(&server)
}

#[cfg(target_os = "linux")]
fn run(server: &GuardedCommand) -> i32 {
    let signals = match SignalPipes::register() {
        Ok(signals) => signals,
        Err(error) => {
            report(&format!("failed to register signal handlers: {error}"));
            return EXIT_GUARD_FAILED;
        }
    };
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        report(&format!("failed to become a subreaper: {error}"));
        return EXIT_GUARD_FAILED;
    }
    match start(server) {
        Ok(child) => Monitor::new(&child, server.shutdown_grace, signals).run(),
        Err(code) => code,
    }
}

/// Without subreapers a guard cannot find orphans; it only runs the server.
#[cfg(not(target_os = "linux"))]
fn run(server: &GuardedCommand) -> i32 {
    match start(server).map(|mut child| child.wait()) {
        Ok(Ok(status)) => status.code().unwrap_or(EXIT_GUARD_FAILED),
        Ok(Err(_)) => EXIT_GUARD_FAILED,
        Err(code) => code,
    }
}

fn start(server: &GuardedCommand) -> Result<Child, i32> {
    let mut command = Command::new(&server.program);
    command.args(&server.args);
    let mut attempt = 1;
    loop {
        match command.spawn() {
            Ok(child) => return Ok(child),
            Err(error) => {
                if let Some(delay) = busy_executable_delay(&error, attempt) {
                    attempt += 1;
                    sleep(delay);
                    continue;
                }
                report(&format!("failed to start `{}`: {error}", server.program.display()));
                let is_missing = error.kind() == io::ErrorKind::NotFound;
                return Err(if is_missing { EXIT_NOT_FOUND } else { EXIT_NOT_EXECUTABLE });
            }
        }
    }
}

fn parse_arguments(arguments: impl IntoIterator<Item = OsString>) -> Option<GuardedCommand> {
    let mut arguments = arguments.into_iter();
    let mut shutdown_grace = DEFAULT_SHUTDOWN_GRACE;
    loop {
        let flag = arguments.next()?;
        if flag == END_OF_FLAGS {
            break;
        } else if flag == GRACE_FLAG {
            shutdown_grace = Duration::from_millis(arguments.next()?.to_str()?.parse().ok()?);
        } else {
            return None;
        }
    }
    Some(GuardedCommand { shutdown_grace, program: arguments.next()?, args: arguments.collect() })
}

/// Writes to stderr, which is the server's: it ends up in the server's log.
fn report(problem: &str) {
    let _ = writeln!(io::stderr(), "guard: {problem}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn arguments_are_parsed_back_to_the_same_command() {
        let program = GuardProgram { program: "toolyard".into(), args: arguments(&["guard"]) };
        let server = || GuardedCommand {
            shutdown_grace: Duration::from_millis(30),
            program: "npx".into(),
            args: arguments(&["--", "-y", "--grace-ms", ""]),
        };
        let all = program.arguments(server());
        assert_eq!(all.first(), Some(&OsString::from("guard")));
        assert_eq!(parse_arguments(all.into_iter().skip(1)), Some(server()));
    }

    #[test]
    fn unknown_arguments_are_rejected() {
        for wrong in
            [&["npx"][..], &[], &["--"], &["--grace-ms", "--", "npx"], &["--grace-ms", "-1", "--", "npx"]]
        {
            assert_eq!(parse_arguments(arguments(wrong)), None, "{wrong:?}");
        }
        let parsed = parse_arguments(arguments(&["--", "npx"]));
        assert_eq!(parsed.map(|server| server.shutdown_grace), Some(DEFAULT_SHUTDOWN_GRACE));
    }
}
