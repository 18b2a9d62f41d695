//! The guardian: a small process between the hub and one server, which leaves nothing of the server behind, not even
//! when the hub is killed.
//!
//! The hub starts `PROGRAM WORDS… --grace-ms N -- COMMAND ARGS…`; the program calls [`guard`] with what follows its own
//! words. The server inherits standard input, output and error, so no byte is copied. When the hub closes the server's
//! input, or is gone, the guardian takes the whole tree of processes down; orphans of that tree come to it.

#[cfg(target_os = "linux")]
mod phase;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod watch;

use std::{
    ffi::OsString,
    io::{self, Write},
    path::PathBuf,
    process::{Child, Command},
    thread::sleep,
    time::Duration,
};

#[cfg(target_os = "linux")]
pub(super) use tree::descendants;

/// How long a server may take to end by itself once its input is closed.
pub(super) const GRACE: Duration = Duration::from_millis(700);

/// The exit code when the guardian itself could not do its work.
const GUARD_FAILED: i32 = 125;
/// The exit code when the command cannot be run, as shells have it.
const NOT_RUNNABLE: i32 = 126;
/// The exit code when the command does not exist, as shells have it.
const NOT_FOUND: i32 = 127;
/// A program that is being written at this moment cannot be started; that passes.
const BUSY_ATTEMPTS: u32 = 10;
const BUSY_PAUSE: Duration = Duration::from_millis(20);
const GRACE_WORD: &str = "--grace-ms";
const END_OF_WORDS: &str = "--";

/// The program that becomes a guardian, usually the hub's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardProgram {
    /// The program.
    pub program: PathBuf,
    /// What it wants to hear first, such as `guard`.
    pub args: Vec<OsString>,
}

impl GuardProgram {
    /// The same program with one more word of its own: whom it guards, for whoever looks at the list of processes.
    #[must_use]
    pub fn named(mut self, server: &str) -> Self {
        self.args.push(server.into());
        self
    }

    /// The program that runs now, which must call [`guard`] when it hears `args`. It is found even when its file was
    /// replaced by a newer one meanwhile.
    pub fn this_program(args: impl IntoIterator<Item = OsString>) -> Self {
        Self { program: PathBuf::from("/proc/self/exe"), args: args.into_iter().collect() }
    }

    /// Everything the program is called with.
    pub(super) fn words(&self, job: Job) -> Vec<OsString> {
        let mut words = self.args.clone();
        words.extend([
            GRACE_WORD.into(),
            job.grace.as_millis().to_string().into(),
            END_OF_WORDS.into(),
            job.command,
        ]);
        words.extend(job.args);
        words
    }
}

/// What a guardian is told to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) grace: Duration,
    pub(super) command: OsString,
    pub(super) args: Vec<OsString>,
}

/// Runs a server under guard until nothing of it is left; `words` are those after the guardian's own. The exit code to
/// end with: the server's, or 128 and its signal.
///
/// Plain blocking code: it needs no runtime, and wants a process of its own.
pub fn guard(words: impl IntoIterator<Item = OsString>) -> i32 {
    let Some(job) = read_words(words) else {
        complain("it wants to hear: [--grace-ms N] -- COMMAND [ARGS…]");
        return GUARD_FAILED;
    };
    run(&job)
}

#[cfg(target_os = "linux")]
fn run(job: &Job) -> i32 {
    let signals = match watch::Signals::listen() {
        Ok(signals) => signals,
        Err(error) => {
            complain(&format!("signals cannot be heard: {error}"));
            return GUARD_FAILED;
        }
    };
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        complain(&format!("orphans cannot be taken care of: {error}"));
        return GUARD_FAILED;
    }
    match start(job) {
        Ok(child) => watch::Watch::new(&child, job.grace, signals).until_nothing_is_left(),
        Err(code) => code,
    }
}

/// Without subreapers a guardian could not keep its promise; the server just runs.
#[cfg(not(target_os = "linux"))]
fn run(job: &Job) -> i32 {
    match start(job).map(|mut child| child.wait()) {
        Ok(Ok(status)) => status.code().unwrap_or(GUARD_FAILED),
        Ok(Err(_)) => GUARD_FAILED,
        Err(code) => code,
    }
}

fn start(job: &Job) -> Result<Child, i32> {
    let mut command = Command::new(&job.command);
    command.args(&job.args);
    let mut attempt = 1;
    loop {
        match command.spawn() {
            Ok(child) => return Ok(child),
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && attempt < BUSY_ATTEMPTS => {
                attempt += 1;
                sleep(BUSY_PAUSE);
            }
            Err(error) => {
                complain(&format!("`{}` could not be started: {error}", job.command.display()));
                let missing = error.kind() == io::ErrorKind::NotFound;
                return Err(if missing { NOT_FOUND } else { NOT_RUNNABLE });
            }
        }
    }
}

fn read_words(words: impl IntoIterator<Item = OsString>) -> Option<Job> {
    let mut words = words.into_iter();
    let mut grace = GRACE;
    loop {
        let word = words.next()?;
        if word == END_OF_WORDS {
            break;
        } else if word == GRACE_WORD {
            grace = Duration::from_millis(words.next()?.to_str()?.parse().ok()?);
        } else {
            return None;
        }
    }
    Some(Job { grace, command: words.next()?, args: words.collect() })
}

/// The guardian's stderr is the server's: the hub shows it when the server ends.
fn complain(problem: &str) {
    // There is nobody else to tell.
    let _ = writeln!(io::stderr(), "guardian: {problem}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn what_is_said_is_what_is_heard() {
        let program = GuardProgram { program: "toolyard".into(), args: words(&["guard"]) };
        let job = || Job {
            grace: Duration::from_millis(30),
            command: "npx".into(),
            args: words(&["--", "-y", "--grace-ms", ""]),
        };
        let said = program.words(job());
        assert_eq!(said.first(), Some(&OsString::from("guard")));
        assert_eq!(read_words(said.into_iter().skip(1)), Some(job()));
    }

    #[test]
    fn other_words_are_not_guessed_at() {
        for wrong in
            [&["npx"][..], &[], &["--"], &["--grace-ms", "--", "npx"], &["--grace-ms", "-1", "--", "npx"]]
        {
            assert_eq!(read_words(words(wrong)), None, "{wrong:?}");
        }
        assert_eq!(read_words(words(&["--", "npx"])).map(|job| job.grace), Some(GRACE));
    }
}
