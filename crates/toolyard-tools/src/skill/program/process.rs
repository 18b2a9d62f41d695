//! Runs one program to completion within limits, and kills its whole process group afterwards.

use std::{
    collections::VecDeque,
    io,
    path::Path,
    pin::pin,
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    sync::oneshot,
    time::{sleep, sleep_until, timeout},
};
use toolyard_core::{busy_executable_delay, sanitize};

/// How long descendants may hold the output pipes open after the program exited.
const OUTPUT_GRACE: Duration = Duration::from_millis(200);
/// The size of the end of stderr that is kept for error messages.
const STDERR_TAIL_BYTES: usize = 8 << 10;

/// The variable in which every program finds the folder of its skill. Programs that it starts inherit it.
pub const SKILL_FOLDER_VARIABLE: &str = "TOOLYARD_SKILL_DIR";

/// One run of a program: its input, environment and limits.
pub(super) struct ProcessSpec<'a> {
    pub(super) program: &'a Path,
    pub(super) argument: &'a str,
    pub(super) environment: &'a [(String, String)],
    /// Passed to the program as `TOOLYARD_SKILL_DIR`.
    pub(super) skill_folder: &'a Path,
    pub(super) working_directory: &'a Path,
    pub(super) input: Vec<u8>,
    pub(super) max_output_bytes: usize,
    pub(super) deadline: Instant,
}

#[derive(Debug)]
pub(super) struct ProcessOutput {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    /// The end of stderr, sanitized.
    pub(super) stderr_tail: String,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ProcessError {
    /// The operating system could not start a program of a skill.
    ///
    /// Remedy: check its first line (`#!/usr/bin/env python3`), that the interpreter is installed and that the file is
    /// executable.
    #[error("failed to start the program: {0}")]
    Start(io::Error),
    /// A program of a skill printed more than is accepted.
    ///
    /// Remedy: print less, or write to a file and print its path.
    #[error("the program wrote more than {max_output_bytes} bytes and was killed")]
    TooMuchOutput { max_output_bytes: usize },
    /// A program of a skill did not end before the deadline of the call.
    ///
    /// Remedy: raise `--timeout` or `[call] timeout`, or make the program faster.
    #[error("the program did not exit in time and was killed")]
    DeadlineExceeded,
    /// Writing to or reading from a program of a skill failed.
    ///
    /// Remedy: let the program read all of its standard input before it ends.
    #[error("failed to communicate with the program: {0}")]
    Io(#[from] io::Error),
    /// The caller stopped waiting, or the process shuts down; the program was killed.
    ///
    /// Remedy: call the tool again if it had no effect yet.
    #[error("the call was cancelled")]
    Cancelled,
}

/// Runs a program. When the returned future is dropped, the program's process group is killed and reaped.
pub(super) async fn run_process(spec: ProcessSpec<'_>) -> Result<ProcessOutput, ProcessError> {
    let child = start(&spec).await.map_err(ProcessError::Start)?;
    let group = ProcessGroup::of(&child);
    // A separate task reaps the child even if this future is dropped.
    let (_cancel_on_drop, cancelled) = oneshot::channel();
    let (input, max_output_bytes, deadline) = (spec.input, spec.max_output_bytes, spec.deadline);
    let supervisor = tokio::spawn(supervise(child, group, input, max_output_bytes, deadline, cancelled));
    supervisor.await.unwrap_or(Err(ProcessError::Cancelled))
}

async fn start(spec: &ProcessSpec<'_>) -> io::Result<Child> {
    let mut command = Command::new(spec.program);
    command
        .arg(spec.argument)
        .current_dir(spec.working_directory)
        .env_clear()
        .envs(spec.environment.iter().map(|(name, value)| (name, value)))
        .env(SKILL_FOLDER_VARIABLE, spec.skill_folder)
        // Compiled files in the folder would count as a change of the skill.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
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

async fn supervise(
    mut child: Child,
    mut group: ProcessGroup,
    input: Vec<u8>,
    max_output_bytes: usize,
    deadline: Instant,
    cancelled: oneshot::Receiver<()>,
) -> Result<ProcessOutput, ProcessError> {
    let outcome = tokio::select! {
        outcome = communicate(&mut child, input, max_output_bytes) => outcome,
        () = sleep_until(deadline.into()) => Err(ProcessError::DeadlineExceeded),
        _ = cancelled => Err(ProcessError::Cancelled),
    };
    group.kill();
    let _ = child.wait().await;
    outcome
}

/// Writes, reads and waits concurrently, so that neither side can block the other.
async fn communicate(
    child: &mut Child,
    input: Vec<u8>,
    max_output_bytes: usize,
) -> Result<ProcessOutput, ProcessError> {
    let (stdin, stdout, stderr) = take_pipes(child)?;
    let mut output = Vec::new();
    let mut tail = StderrTail::default();
    let status = {
        let mut writing = pin!(write_input(stdin, input));
        let mut reading = pin!(async {
            tokio::try_join!(read_output(stdout, &mut output, max_output_bytes), tail.fill(stderr))
                .map(|_| ())
        });
        let (mut is_written, mut is_read) = (false, false);
        let status = loop {
            tokio::select! {
                status = child.wait() => break status?,
                () = &mut writing, if !is_written => is_written = true,
                result = &mut reading, if !is_read => {
                    result?;
                    is_read = true;
                }
            }
        };
        if !is_read && let Ok(result) = timeout(OUTPUT_GRACE, &mut reading).await {
            result?;
        }
        status
    };
    Ok(ProcessOutput { status, stdout: output, stderr_tail: tail.into_text() })
}

fn take_pipes(child: &mut Child) -> io::Result<(ChildStdin, ChildStdout, ChildStderr)> {
    match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok((stdin, stdout, stderr)),
        _ => Err(io::Error::other("the child has no pipes")),
    }
}

/// Writes the input; a program may exit without reading it all.
async fn write_input(mut stdin: ChildStdin, input: Vec<u8>) {
    let _ = stdin.write_all(&input).await;
    let _ = stdin.shutdown().await;
}

async fn read_output(
    mut stdout: impl AsyncRead + Unpin,
    output: &mut Vec<u8>,
    max_output_bytes: usize,
) -> Result<(), ProcessError> {
    while stdout.read_buf(output).await? > 0 {
        if output.len() > max_output_bytes {
            return Err(ProcessError::TooMuchOutput { max_output_bytes });
        }
    }
    Ok(())
}

/// The last [`STDERR_TAIL_BYTES`] of stderr.
#[derive(Default)]
struct StderrTail(VecDeque<u8>);

impl StderrTail {
    async fn fill(&mut self, mut reader: impl AsyncRead + Unpin) -> Result<(), ProcessError> {
        let mut buffer = vec![0_u8; STDERR_TAIL_BYTES];
        loop {
            let count = reader.read(&mut buffer).await?;
            if count == 0 {
                return Ok(());
            }
            self.0.extend(buffer.get(..count).unwrap_or_default());
            let excess = self.0.len().saturating_sub(STDERR_TAIL_BYTES);
            self.0.drain(..excess);
        }
    }

    fn into_text(self) -> String {
        let bytes: Vec<u8> = self.0.into();
        sanitize(&String::from_utf8_lossy(&bytes)).0.trim().to_owned()
    }
}

/// A child's process group, killed on drop.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    fn kill(&mut self) {
        if let Some(group) = self.0.take() {
            // Fails only if no process of the group is left.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
