//! Runs one program to its end within limits, and leaves nothing of it behind.

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

use crate::text::without_controls;

/// How long a program's children may hold its output open after it ended.
const GRACE: Duration = Duration::from_millis(200);
/// How much of stderr is remembered.
const STDERR_BYTES: usize = 8 << 10;
/// A program that is being written at this moment cannot be started; that passes.
const BUSY_ATTEMPTS: u32 = 10;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// What is to be run, and how far it may go.
pub(super) struct Job<'a> {
    pub(super) program: &'a Path,
    pub(super) argument: &'a str,
    pub(super) environment: &'a [(String, String)],
    pub(super) skill_folder: &'a Path,
    pub(super) working_directory: &'a Path,
    pub(super) input: Vec<u8>,
    pub(super) output_limit: usize,
    pub(super) deadline: Instant,
}

/// How a program ended.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) status: ExitStatus,
    pub(super) output: Vec<u8>,
    /// The end of stderr, without control characters.
    pub(super) last_words: String,
}

/// Why a program did not end by itself.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProcessError {
    /// It could not be started.
    #[error("the program could not be started: {0}")]
    Start(io::Error),
    /// It was stopped.
    #[error("the program wrote more than {limit} bytes and was stopped")]
    TooMuchOutput { limit: usize },
    /// It was stopped.
    #[error("the program did not end in time and was stopped")]
    DeadlinePassed,
    /// Talking to it failed.
    #[error("the program could not be followed: {0}")]
    Broken(#[from] io::Error),
    /// Nobody waits any more, or the runtime shuts down.
    #[error("the call was given up")]
    GivenUp,
}

/// Runs a program. When the returned future is dropped, the program's whole process group is killed and reaped.
pub(super) async fn run(job: Job<'_>) -> Result<Finished, ProcessError> {
    let child = start(&job).await.map_err(ProcessError::Start)?;
    let group = Group::of(&child);
    // A task of its own reaps the child even when nobody waits for the answer any more.
    let (_given_up_when_dropped, given_up) = oneshot::channel();
    let (input, limit, deadline) = (job.input, job.output_limit, job.deadline);
    let supervision = tokio::spawn(supervise(child, group, input, limit, deadline, given_up));
    supervision.await.unwrap_or(Err(ProcessError::GivenUp))
}

async fn start(job: &Job<'_>) -> io::Result<Child> {
    let mut command = Command::new(job.program);
    command
        .arg(job.argument)
        .current_dir(job.working_directory)
        .env_clear()
        .envs(job.environment.iter().map(|(name, value)| (name, value)))
        .env("TOOLYARD_SKILL_DIR", job.skill_folder)
        // Compiled files in its folder would look like a change of the skill.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
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

async fn supervise(
    mut child: Child,
    mut group: Group,
    input: Vec<u8>,
    limit: usize,
    deadline: Instant,
    given_up: oneshot::Receiver<()>,
) -> Result<Finished, ProcessError> {
    let outcome = tokio::select! {
        outcome = converse(&mut child, input, limit) => outcome,
        () = sleep_until(deadline.into()) => Err(ProcessError::DeadlinePassed),
        _ = given_up => Err(ProcessError::GivenUp),
    };
    group.kill();
    let _ = child.wait().await;
    outcome
}

/// Writes, reads and waits at the same time: no order of events can make both sides wait for each other.
async fn converse(child: &mut Child, input: Vec<u8>, limit: usize) -> Result<Finished, ProcessError> {
    let (stdin, stdout, stderr) = pipes(child)?;
    let mut output = Vec::new();
    let mut tail = Tail::default();
    let status = {
        let mut writing = pin!(write(stdin, input));
        let mut reading = pin!(async {
            tokio::try_join!(read_output(stdout, &mut output, limit), tail.fill(stderr)).map(|_| ())
        });
        let (mut written, mut read) = (false, false);
        let status = loop {
            tokio::select! {
                status = child.wait() => break status?,
                () = &mut writing, if !written => written = true,
                result = &mut reading, if !read => {
                    result?;
                    read = true;
                }
            }
        };
        if !read && let Ok(result) = timeout(GRACE, &mut reading).await {
            result?;
        }
        status
    };
    Ok(Finished { status, output, last_words: tail.into_text() })
}

fn pipes(child: &mut Child) -> io::Result<(ChildStdin, ChildStdout, ChildStderr)> {
    match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok((stdin, stdout, stderr)),
        _ => Err(io::Error::other("it has no pipes")),
    }
}

/// A program may end without reading everything; that is its own affair.
async fn write(mut stdin: ChildStdin, input: Vec<u8>) {
    let _ = stdin.write_all(&input).await;
    let _ = stdin.shutdown().await;
}

async fn read_output(
    mut stdout: impl AsyncRead + Unpin,
    output: &mut Vec<u8>,
    limit: usize,
) -> Result<(), ProcessError> {
    while stdout.read_buf(output).await? > 0 {
        if output.len() > limit {
            return Err(ProcessError::TooMuchOutput { limit });
        }
    }
    Ok(())
}

/// The end of a text of any length.
#[derive(Default)]
struct Tail(VecDeque<u8>);

impl Tail {
    async fn fill(&mut self, mut reader: impl AsyncRead + Unpin) -> Result<(), ProcessError> {
        let mut buffer = vec![0_u8; STDERR_BYTES];
        loop {
            let count = reader.read(&mut buffer).await?;
            if count == 0 {
                return Ok(());
            }
            self.0.extend(buffer.get(..count).unwrap_or_default());
            let excess = self.0.len().saturating_sub(STDERR_BYTES);
            self.0.drain(..excess);
        }
    }

    fn into_text(self) -> String {
        let bytes: Vec<u8> = self.0.into();
        without_controls(&String::from_utf8_lossy(&bytes)).trim().to_owned()
    }
}

/// A child's process group, killed at the latest when this is dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    fn kill(&mut self) {
        if let Some(group) = self.0.take() {
            // An error means that nothing of the group is left.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
