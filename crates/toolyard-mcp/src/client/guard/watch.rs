//! Watches one server and everything it starts, until nothing of it is left.

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

use super::{
    descendants,
    phase::{Phase, Seen},
};

/// How often what should be dead is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// How often the tree is searched at once when it grows while it is killed.
const CHASES: usize = 100;
/// The exit code of a server that could not be ended.
const NEVER_ENDED: i32 = 128 + 9;

/// Signals as bytes, so that one `poll` waits for everything.
pub(super) struct Signals {
    child_ended: UnixStream,
    told_to_end: UnixStream,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        let (child_ended, ended_sender) = UnixStream::pair()?;
        let (told_to_end, told_sender) = UnixStream::pair()?;
        pipe::register(SIGCHLD, ended_sender)?;
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            pipe::register(signal, told_sender.try_clone()?)?;
        }
        child_ended.set_nonblocking(true)?;
        told_to_end.set_nonblocking(true)?;
        Ok(Self { child_ended, told_to_end })
    }
}

/// A server and what is known of it.
pub(super) struct Watch {
    server: Option<Pid>,
    /// The server's input, which we never read: only its end concerns us.
    input: Stdin,
    signals: Signals,
    grace: Duration,
    phase: Phase,
    hub_gone: bool,
    told_to_end: bool,
    /// The exit code, once the server's own process ended.
    code: Option<i32>,
}

impl Watch {
    pub(super) fn new(server: &Child, grace: Duration, signals: Signals) -> Self {
        let server = i32::try_from(server.id()).ok().and_then(Pid::from_raw);
        let watch = Self {
            server,
            input: io::stdin(),
            signals,
            grace,
            phase: Phase::Serving,
            hub_gone: false,
            told_to_end: false,
            code: None,
        };
        watch.let_go_of_output();
        watch
    }

    /// The exit code to end with.
    pub(super) fn until_nothing_is_left(mut self) -> i32 {
        while self.reap() {
            let next = self.phase.next(self.seen(), self.grace);
            match next {
                Phase::Told { .. } if next != self.phase => signal_all(Signal::TERM),
                Phase::Killing { .. } => signal_all(Signal::KILL),
                Phase::GivenUp => return self.code.unwrap_or(NEVER_ENDED),
                _ => {}
            }
            self.phase = next;
            self.listen();
        }
        self.code.unwrap_or(NEVER_ENDED)
    }

    fn seen(&self) -> Seen {
        Seen {
            now: Instant::now(),
            hub_gone: self.hub_gone,
            told_to_end: self.told_to_end,
            server_ended: self.code.is_some(),
        }
    }

    /// Takes note of all children that ended. Whether any is left: as orphans come to us, none means no descendant.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((process, status))) if Some(process) == self.server => self.code = Some(code(status)),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// Waits until something happens, or it is time for the next step.
    fn listen(&mut self) {
        let heard = {
            let mut sources = vec![
                PollFd::new(&self.signals.child_ended, PollFlags::IN),
                PollFd::new(&self.signals.told_to_end, PollFlags::IN),
            ];
            if !self.hub_gone {
                // Without events only the end of the pipe is reported.
                sources.push(PollFd::new(&self.input, PollFlags::empty()));
            }
            if poll(&mut sources, self.pause().as_ref()).is_err() {
                return;
            }
            let heard = |place: usize| sources.get(place).is_some_and(|source| !source.revents().is_empty());
            [heard(0), heard(1), heard(2)]
        };
        let [ended, told, hub_gone] = heard;
        if ended {
            empty(&self.signals.child_ended);
        }
        if told {
            empty(&self.signals.told_to_end);
        }
        self.told_to_end |= told;
        self.hub_gone |= hub_gone;
    }

    fn pause(&self) -> Option<Timespec> {
        let pause = match self.phase {
            Phase::Killing { .. } => LOOK_AGAIN,
            phase => phase.until()?.saturating_duration_since(Instant::now()),
        };
        Timespec::try_from(pause).ok()
    }

    /// The hub must see the end of the server's output when the server closes it, not when we end.
    fn let_go_of_output(&self) {
        if let Ok(nowhere) = OpenOptions::new().write(true).open("/dev/null") {
            // Without it the hub sees the end a little later.
            let _ = dup2_stdout(&nowhere);
            let _ = dup2_stderr(&nowhere);
        }
    }
}

fn code(status: WaitStatus) -> i32 {
    status
        .exit_status()
        .or_else(|| status.terminating_signal().map(|signal| 128 + signal))
        .unwrap_or(NEVER_ENDED)
}

fn empty(mut stream: &UnixStream) {
    let mut bytes = [0_u8; 64];
    while matches!(stream.read(&mut bytes), Ok(1..)) {}
}

/// Sends a signal to everything below us. Who is started meanwhile is found by searching again until nobody is new.
fn signal_all(signal: Signal) {
    let mut reached = HashSet::new();
    for _ in 0..CHASES {
        let Ok(processes) = descendants(getpid()) else {
            // Without /proc there is the group, which we are in ourselves.
            let _ = kill_current_process_group(signal);
            return;
        };
        let new: Vec<Pid> = processes.into_iter().filter(|&process| reached.insert(process)).collect();
        if new.is_empty() {
            return;
        }
        for process in new {
            // An error means that it has ended, or is not ours to end.
            let _ = kill_process(process, signal);
        }
    }
}
