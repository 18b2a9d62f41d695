//! The process of a stdio server: start, exit status, and shutdown with everything it started.

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
use toolyard_core::busy_executable_delay;

use crate::{
    process_guard::guard::{GuardProgram, GuardedCommand},
    transport::{
        error::TransportError,
        stdio::{executable, launch::StdioLaunch},
    },
};

/// How long a guard may take beyond the grace of its server.
const GUARD_GRACE: Duration = Duration::from_millis(1_800);
/// How long a server without a guard may take after SIGTERM.
const TERMINATE_GRACE: Duration = Duration::from_millis(300);

/// A running server, or the guard that runs it.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
    group: ProcessGroup,
    shutdown_grace: Duration,
    /// The exit status for people, once the process has exited.
    status: Option<String>,
}

pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

impl ServerProcess {
    pub(super) async fn start(launch: &StdioLaunch) -> Result<(Self, Pipes), TransportError> {
        let directory = launch.working_directory.as_deref();
        let program =
            executable::find(&launch.command, &launch.environment, directory, executable::probe_path)
                .map_err(|error| TransportError::Unreachable(error.to_string()))?;
        // Guards need subreapers, which only Linux has.
        let guard = launch.guard.as_ref().filter(|_| cfg!(target_os = "linux"));
        let mut command = command(launch, &program, guard);
        let mut child = spawn(&mut command).await.map_err(|error| {
            let failed_program = guard.map_or(program.as_path(), |guard| guard.program.as_path());
            TransportError::Unreachable(format!("failed to start `{}`: {error}", failed_program.display()))
        })?;
        let group = ProcessGroup { id: process_id(&child), is_guarded: guard.is_some() };
        match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => {
                let process = Self { child, group, shutdown_grace: launch.shutdown_grace, status: None };
                Ok((process, Pipes { stdin, stdout, stderr }))
            }
            _ => Err(TransportError::Unreachable("the server has no pipes".to_owned())),
        }
    }

    /// Waits for the exit and returns the status for people. Processes that the server left behind are killed.
    pub(super) async fn exited(&mut self) -> String {
        if let Some(status) = &self.status {
            return status.clone();
        }
        let (description, is_clean) = match self.child.wait().await {
            Ok(status) => (describe_exit(status), self.group.is_guarded && status.code().is_some()),
            Err(error) => (format!("unknown: {error}"), false),
        };
        // A guard that exited by itself has left nothing behind.
        if is_clean {
            self.group.id = None;
        } else {
            self.group.kill();
        }
        self.status = Some(description.clone());
        description
    }

    /// Waits for a graceful exit, then terminates, then kills. The server's input must be closed already. No process
    /// of it is left afterwards.
    pub(super) async fn shut_down(&mut self) {
        let grace = self.shutdown_grace + if self.group.is_guarded { GUARD_GRACE } else { Duration::ZERO };
        if timeout(grace, self.exited()).await.is_ok() {
            return;
        }
        if !self.group.is_guarded {
            self.group.signal(Signal::TERM);
            if timeout(TERMINATE_GRACE, self.exited()).await.is_ok() {
                return;
            }
        }
        self.group.kill();
        self.exited().await;
    }
}

fn command(launch: &StdioLaunch, program: &Path, guard: Option<&GuardProgram>) -> Command {
    let mut command = match guard {
        Some(guard) => {
            let args = launch.args.iter().map(OsString::from).collect();
            let server =
                GuardedCommand { shutdown_grace: launch.shutdown_grace, program: program.into(), args };
            let mut command = Command::new(&guard.program);
            command.args(guard.arguments(server));
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
        // A guard notices the closed input by itself and has to end its server then.
        .kill_on_drop(guard.is_none());
    if let Some(directory) = &launch.working_directory {
        command.current_dir(directory);
    }
    command
}

async fn spawn(command: &mut Command) -> io::Result<Child> {
    let mut attempt = 1;
    loop {
        match command.spawn() {
            Err(error) => match busy_executable_delay(&error, attempt) {
                Some(delay) => sleep(delay).await,
                None => return Err(error),
            },
            started => return started,
        }
        attempt += 1;
    }
}

fn process_id(child: &Child) -> Option<Pid> {
    child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
}

/// An exit status for people. Shells and guards report a signal as 128 plus its number.
fn describe_exit(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code @ 129..=192), _) => format!("exit code {code}, usually signal {}", code - 128),
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown".to_owned(),
    }
}

/// A process group, killed on drop unless a guard takes care of it.
#[derive(Debug)]
struct ProcessGroup {
    id: Option<Pid>,
    is_guarded: bool,
}

impl ProcessGroup {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.id {
            // An error means that the group is empty.
            let _ = kill_process_group(group, signal);
        }
    }

    fn kill(&mut self) {
        self.kill_descendants();
        self.signal(Signal::KILL);
        self.id = None;
    }

    /// Descendants of a guard may have left the group.
    #[cfg(target_os = "linux")]
    fn kill_descendants(&self) {
        use crate::process_guard::process_tree::descendants;
        let processes = self.id.filter(|_| self.is_guarded).and_then(|id| descendants(id).ok());
        for process in processes.unwrap_or_default() {
            let _ = rustix::process::kill_process(process, Signal::KILL);
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn kill_descendants(&self) {}
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if !self.is_guarded {
            self.kill();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn exit_statuses_are_described() {
        assert_eq!(describe_exit(ExitStatus::from_raw(0)), "exit code 0");
        assert_eq!(describe_exit(ExitStatus::from_raw(3 << 8)), "exit code 3");
        assert_eq!(describe_exit(ExitStatus::from_raw(137 << 8)), "exit code 137, usually signal 9");
        assert_eq!(describe_exit(ExitStatus::from_raw(9)), "signal 9");
    }
}
