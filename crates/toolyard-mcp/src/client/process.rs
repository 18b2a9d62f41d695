//! The process of one stdio server: started, watched, ended and reaped, with everything it started.

use std::{
    ffi::OsString,
    io,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    time::{sleep, timeout},
};

use super::{
    StdioLaunch, TransportError,
    guard::{GuardProgram, Job},
    program,
};

/// How long a guardian may take beyond the grace it was told.
const GUARDIAN: Duration = Duration::from_millis(1_800);
/// How long a server without a guardian may take once it got SIGTERM.
const TOLD: Duration = Duration::from_millis(300);
/// A program that is being written at this moment cannot be started; that passes.
const BUSY_ATTEMPTS: u32 = 10;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// A running server, or its guardian.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
    group: Group,
    grace: Duration,
    guarded: bool,
    status: Option<String>,
}

/// The three ways to talk with a server.
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

impl ServerProcess {
    /// Starts a server. Everything it may see of the world is in the launch.
    pub(super) async fn start(launch: &StdioLaunch) -> Result<(Self, Pipes), TransportError> {
        let folder = launch.working_directory.as_deref();
        let program = program::find(&launch.command, &launch.environment, folder, program::look)
            .map_err(TransportError::Unreachable)?;
        // Elsewhere a guardian could not keep its promise.
        let guard = launch.guard.as_ref().filter(|_| cfg!(target_os = "linux"));
        let mut command = command(launch, &program, guard);
        let mut child = spawn(&mut command).await.map_err(|error| {
            let started = guard.map_or(program.as_path(), |guard| guard.program.as_path());
            TransportError::Unreachable(format!("`{}` could not be started: {error}", started.display()))
        })?;
        let group = Group { id: process_id(&child), guarded: guard.is_some() };
        match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => {
                let process =
                    Self { child, group, grace: launch.grace, guarded: guard.is_some(), status: None };
                Ok((process, Pipes { stdin, stdout, stderr }))
            }
            _ => Err(TransportError::Unreachable("the server has no pipes".to_owned())),
        }
    }

    /// Waits for the server's end, and tells its status in words. Whatever it left behind is gone then.
    pub(super) async fn ended(&mut self) -> String {
        if let Some(status) = &self.status {
            return status.clone();
        }
        let (words, clean) = match self.child.wait().await {
            Ok(status) => (in_words(status), self.guarded && status.code().is_some()),
            Err(error) => (format!("unknown: {error}"), false),
        };
        // A guardian that ended by itself has left nothing behind; otherwise the group may still hold something.
        if clean {
            self.group.id = None;
        } else {
            self.group.kill();
        }
        self.status = Some(words.clone());
        words
    }

    /// Goes down the ladder. The server's input must be closed already. Afterwards nothing is left.
    pub(super) async fn end(&mut self) -> String {
        if self.guarded {
            if let Ok(status) = timeout(self.grace + GUARDIAN, self.ended()).await {
                return status;
            }
        } else {
            if let Ok(status) = timeout(self.grace, self.ended()).await {
                return status;
            }
            self.group.signal(Signal::TERM);
            if let Ok(status) = timeout(TOLD, self.ended()).await {
                return status;
            }
        }
        self.group.kill();
        self.ended().await
    }
}

fn command(launch: &StdioLaunch, program: &Path, guard: Option<&GuardProgram>) -> Command {
    let mut command = match guard {
        Some(guard) => {
            let args = launch.args.iter().map(OsString::from).collect();
            let mut command = Command::new(&guard.program);
            command.args(guard.words(Job { grace: launch.grace, command: program.into(), args }));
            command
        }
        None => {
            let mut command = Command::new(program);
            command.args(&launch.args);
            command
        }
    };
    command
        .env_clear()
        .envs(launch.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        // A guardian sees that its input is closed, and still has work to do then.
        .kill_on_drop(guard.is_none());
    if let Some(folder) = &launch.working_directory {
        command.current_dir(folder);
    }
    command
}

async fn spawn(command: &mut Command) -> io::Result<Child> {
    let mut attempt = 1;
    loop {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && attempt < BUSY_ATTEMPTS => {
                attempt += 1;
                sleep(BUSY_PAUSE).await;
            }
            result => return result,
        }
    }
}

fn process_id(child: &Child) -> Option<Pid> {
    child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
}

/// Shells and guardians tell a signal as 128 and its number.
fn in_words(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code @ 129..=192), _) => format!("exit code {code}, which often means signal {}", code - 128),
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown".to_owned(),
    }
}

/// A process group, killed at the latest when this is dropped, unless a guardian takes care of it.
#[derive(Debug)]
struct Group {
    id: Option<Pid>,
    guarded: bool,
}

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.id {
            // An error means that nothing of the group is left.
            let _ = kill_process_group(group, signal);
        }
    }

    fn kill(&mut self) {
        self.kill_descendants();
        self.signal(Signal::KILL);
        self.id = None;
    }

    /// Some of a guardian's descendants may have left the group.
    #[cfg(target_os = "linux")]
    fn kill_descendants(&self) {
        let below = self.id.filter(|_| self.guarded).and_then(|id| super::guard::descendants(id).ok());
        for process in below.unwrap_or_default() {
            let _ = rustix::process::kill_process(process, Signal::KILL);
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn kill_descendants(&self) {}
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.guarded {
            self.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn a_status_in_words() {
        assert_eq!(in_words(ExitStatus::from_raw(0)), "exit code 0");
        assert_eq!(in_words(ExitStatus::from_raw(3 << 8)), "exit code 3");
        assert_eq!(in_words(ExitStatus::from_raw(137 << 8)), "exit code 137, which often means signal 9");
        assert_eq!(in_words(ExitStatus::from_raw(9)), "signal 9");
    }
}
