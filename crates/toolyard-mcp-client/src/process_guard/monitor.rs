//! Watches one server and everything it starts, until every process has ended.

use std::{
    collections::HashSet,
    fs::OpenOptions,
    io::{self, Read, Stdin},
    os::unix::net::UnixStream,
    process::Child,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_current_process_group, kill_process, wait},
    stdio::{dup2_stderr, dup2_stdout},
};
use signal_hook::{
    consts::signal::{SIGCHLD, SIGHUP, SIGINT, SIGTERM},
    low_level::pipe,
};

use crate::process_guard::{
    process_tree::descendants,
    shutdown_phase::{Observations, ShutdownPhase},
};

/// The delay between two rounds of SIGKILL.
const KILL_INTERVAL: Duration = Duration::from_millis(10);
/// How often the tree is searched again at once if it grows while it is signalled.
const MAX_TREE_SCANS: usize = 100;
/// The exit code for a server that could not be killed.
const EXIT_NOT_KILLED: i32 = 128 + 9;

/// Signals as readable pipes, so that one `poll` waits for everything.
pub(super) struct SignalPipes {
    child_exited: UnixStream,
    terminated: UnixStream,
}

impl SignalPipes {
    pub(super) fn register() -> io::Result<Self> {
        let (child_exited, exited_sender) = UnixStream::pair()?;
        let (terminated, terminated_sender) = UnixStream::pair()?;
        pipe::register(SIGCHLD, exited_sender)?;
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            pipe::register(signal, terminated_sender.try_clone()?)?;
        }
        child_exited.set_nonblocking(true)?;
        terminated.set_nonblocking(true)?;
        Ok(Self { child_exited, terminated })
    }
}

pub(super) struct Monitor {
    server: Option<Pid>,
    /// The server's input, which is never read: only its end matters.
    input: Stdin,
    signals: SignalPipes,
    grace: Duration,
    phase: ShutdownPhase,
    input_closed: bool,
    terminated: bool,
    /// The exit code, once the server's own process exited.
    exit_code: Option<i32>,
}

impl Monitor {
    pub(super) fn new(server: &Child, grace: Duration, signals: SignalPipes) -> Self {
        let server = i32::try_from(server.id()).ok().and_then(Pid::from_raw);
        let monitor = Self {
            server,
            input: io::stdin(),
            signals,
            grace,
            phase: ShutdownPhase::Serving,
            input_closed: false,
            terminated: false,
            exit_code: None,
        };
        release_output();
        monitor
    }

    /// Runs until every process has ended, and returns the exit code of the server.
    pub(super) fn run(mut self) -> i32 {
        while self.reap() {
            let next = self.phase.next(self.observe(), self.grace);
            match next {
                ShutdownPhase::Terminating { .. } if next != self.phase => signal_descendants(Signal::TERM),
                ShutdownPhase::Killing { .. } => signal_descendants(Signal::KILL),
                ShutdownPhase::Failed => return self.exit_code.unwrap_or(EXIT_NOT_KILLED),
                _ => {}
            }
            self.phase = next;
            self.wait();
        }
        self.exit_code.unwrap_or(EXIT_NOT_KILLED)
    }

    fn observe(&self) -> Observations {
        Observations {
            now: Instant::now(),
            input_closed: self.input_closed,
            terminated: self.terminated,
            server_exited: self.exit_code.is_some(),
        }
    }

    /// Reaps all children that exited. Returns whether any is left: as orphans become our children, none means no
    /// descendant.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((process, status))) if Some(process) == self.server => {
                    self.exit_code = Some(exit_code(status));
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    fn wait(&mut self) {
        let [child_exited, terminated, input_closed] = {
            let mut poll_fds = vec![
                PollFd::new(&self.signals.child_exited, PollFlags::IN),
                PollFd::new(&self.signals.terminated, PollFlags::IN),
            ];
            if !self.input_closed {
                // Without flags, only the end of the pipe is reported.
                poll_fds.push(PollFd::new(&self.input, PollFlags::empty()));
            }
            if poll(&mut poll_fds, self.wait_limit().as_ref()).is_err() {
                return;
            }
            let is_ready =
                |index: usize| poll_fds.get(index).is_some_and(|poll_fd| !poll_fd.revents().is_empty());
            [is_ready(0), is_ready(1), is_ready(2)]
        };
        if child_exited {
            discard_input(&self.signals.child_exited);
        }
        if terminated {
            discard_input(&self.signals.terminated);
        }
        self.terminated |= terminated;
        self.input_closed |= input_closed;
    }

    fn wait_limit(&self) -> Option<Timespec> {
        let limit = match self.phase {
            ShutdownPhase::Killing { .. } => KILL_INTERVAL,
            phase => phase.until()?.saturating_duration_since(Instant::now()),
        };
        Timespec::try_from(limit).ok()
    }
}

/// Closes our copies of the server's output, so that the reader sees its end when the server closes it.
fn release_output() {
    if let Ok(null) = OpenOptions::new().write(true).open("/dev/null") {
        // On failure the reader sees the end when the guard exits.
        let _ = dup2_stdout(&null);
        let _ = dup2_stderr(&null);
    }
}

fn exit_code(status: WaitStatus) -> i32 {
    status
        .exit_status()
        .or_else(|| status.terminating_signal().map(|signal| 128 + signal))
        .unwrap_or(EXIT_NOT_KILLED)
}

fn discard_input(mut stream: &UnixStream) {
    let mut bytes = [0_u8; 64];
    while matches!(stream.read(&mut bytes), Ok(1..)) {}
}

/// Signals all descendants, and searches again until no new ones appear.
fn signal_descendants(signal: Signal) {
    let mut signalled = HashSet::new();
    for _ in 0..MAX_TREE_SCANS {
        let Ok(processes) = descendants(getpid()) else {
            // Without /proc only the process group is known, which includes this process.
            let _ = kill_current_process_group(signal);
            return;
        };
        let new: Vec<Pid> = processes.into_iter().filter(|&process| signalled.insert(process)).collect();
        if new.is_empty() {
            return;
        }
        for process in new {
            // An error means that the process has exited, or belongs to another user.
            let _ = kill_process(process, signal);
        }
    }
}
