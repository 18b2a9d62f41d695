//! The stdio transport: messages are lines on the standard input and output of a child process.

use std::{fmt, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncWriteExt, BufWriter},
    process::{ChildStdin, ChildStdout},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    task::JoinHandle,
    time::{sleep, timeout},
};
use toolyard_core::{BoxFuture, text::join_json_lines};
use toolyard_mcp::{Line, LineError, LineReader, Message, WireError, WireLimits};

use crate::transport::{
    error::TransportError,
    message::{OutgoingMessage, SendOutcome, Transport},
    requests::pending::PendingRequests,
    stdio::{
        launch::StdioLaunch,
        process::{Pipes, ServerProcess},
        stderr_tail::StderrTail,
    },
};

/// Bytes that may be queued for a server that does not read.
const MAX_QUEUED_BYTES: u32 = 1 << 20;
/// What a queued message costs besides its bytes.
const QUEUED_MESSAGE_OVERHEAD_BYTES: usize = 64;
const WRITE_BUFFER_BYTES: usize = 8 << 10;
/// How long output that was written before the exit may take to arrive.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);
/// An older line on stderr says nothing about an exit.
const MAX_EXIT_REASON_AGE: Duration = Duration::from_secs(5);
/// How long a server may run on after it closed its input or output.
const PIPE_CLOSED_GRACE: Duration = Duration::from_millis(500);
/// Consecutive invalid messages after which the connection is closed.
const MAX_CONSECUTIVE_INVALID_LINES: u32 = 1_000;
const MAX_LOGGED_LINE_CHARS: usize = 400;

/// A connection to a server that runs as a child process. Dropping it shuts the server down in the background.
pub struct StdioTransport {
    requests: Arc<PendingRequests>,
    queue: mpsc::UnboundedSender<QueuedMessage>,
    /// Bytes that may still be queued.
    queue_capacity: Arc<Semaphore>,
    stderr_tail: Arc<StderrTail>,
    /// Set to true to end the connection.
    stop: watch::Sender<bool>,
    /// Becomes true when no process of the server is left.
    ended: watch::Receiver<bool>,
}

/// A message on its way to the server, and its share of the queue's capacity.
struct QueuedMessage {
    body: Vec<u8>,
    _capacity: OwnedSemaphorePermit,
}

impl StdioTransport {
    /// Starts a server and connects to it. The messages of the server go to `requests`.
    pub async fn connect(
        launch: StdioLaunch,
        requests: Arc<PendingRequests>,
        limits: WireLimits,
    ) -> Result<Self, TransportError> {
        let running = launch.processes.add();
        let (process, pipes) = ServerProcess::start(&launch).await?;
        let (queue, queued) = mpsc::unbounded_channel();
        let (stop, stopped) = watch::channel(false);
        let (ended_sender, ended) = watch::channel(false);
        let queue_capacity = Arc::new(Semaphore::new(MAX_QUEUED_BYTES as usize));
        let stderr_tail = launch.stderr_tail;
        let connection = ProcessConnection {
            process,
            requests: Arc::clone(&requests),
            queue_capacity: Arc::clone(&queue_capacity),
            stderr_tail: Arc::clone(&stderr_tail),
            limits,
        };
        tokio::spawn(async move {
            connection.run(pipes, queued, stopped).await;
            drop(running);
            ended_sender.send_replace(true);
        });
        Ok(Self { requests, queue, queue_capacity, stderr_tail, stop, ended })
    }

    fn closed_error(&self) -> TransportError {
        self.requests.closed().unwrap_or_else(input_closed_error)
    }

    async fn enqueue(&self, message: OutgoingMessage) -> Result<SendOutcome, TransportError> {
        let mut body = message.body;
        join_json_lines(&mut body);
        let cost = u32::try_from(body.len() + QUEUED_MESSAGE_OVERHEAD_BYTES).unwrap_or(MAX_QUEUED_BYTES);
        let capacity = Arc::clone(&self.queue_capacity).acquire_many_owned(cost.min(MAX_QUEUED_BYTES)).await;
        let message = QueuedMessage { body, _capacity: capacity.map_err(|_| self.closed_error())? };
        self.queue.send(message).map(|()| SendOutcome::Accepted).map_err(|_| self.closed_error())
    }
}

impl Transport for StdioTransport {
    fn send(&self, message: OutgoingMessage) -> BoxFuture<'_, Result<SendOutcome, TransportError>> {
        Box::pin(self.enqueue(message))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.requests.close(&TransportError::Closed);
            self.stop.send_replace(true);
            // An error means that the runtime is shutting down.
            let _ = self.ended.clone().wait_for(|ended| *ended).await;
        })
    }

    fn stderr_tail(&self) -> Option<String> {
        Some(self.stderr_tail.text())
    }
}

impl fmt::Debug for StdioTransport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StdioTransport")
            .field("ended", &*self.ended.borrow())
            .field("queue_capacity", &self.queue_capacity.available_permits())
            .field("stderr_tail", &self.stderr_tail)
            .finish_non_exhaustive()
    }
}

/// The task that owns a server process from its start until no process of it is left.
struct ProcessConnection {
    process: ServerProcess,
    requests: Arc<PendingRequests>,
    queue_capacity: Arc<Semaphore>,
    stderr_tail: Arc<StderrTail>,
    limits: WireLimits,
}

impl ProcessConnection {
    async fn run(
        mut self,
        pipes: Pipes,
        queued: mpsc::UnboundedReceiver<QueuedMessage>,
        stopped: watch::Receiver<bool>,
    ) {
        let mut writer = tokio::spawn(write_messages(pipes.stdin, queued));
        let stderr_tail = Arc::clone(&self.stderr_tail);
        let mut stderr_reader = tokio::spawn(async move { stderr_tail.read_from(pipes.stderr).await });
        let error = self.run_until_closed(pipes.stdout, stopped, &mut writer, &mut stderr_reader).await;
        self.requests.close(&error);
        self.queue_capacity.close();
        writer.abort();
        if !writer.is_finished() {
            // The server's input is closed only when the writer is gone.
            let _ = writer.await;
        }
        self.process.shut_down().await;
        drain(&mut stderr_reader).await;
        stderr_reader.abort();
    }

    /// Reads messages until the connection ends, and returns why it did.
    async fn run_until_closed(
        &mut self,
        stdout: ChildStdout,
        mut stopped: watch::Receiver<bool>,
        writer: &mut JoinHandle<()>,
        stderr_reader: &mut JoinHandle<()>,
    ) -> TransportError {
        let requests = Arc::clone(&self.requests);
        let stderr_tail = Arc::clone(&self.stderr_tail);
        let mut reading = std::pin::pin!(read_messages(stdout, self.limits, &requests, &stderr_tail));
        let status = tokio::select! {
            () = wait_for_stop(&mut stopped) => return TransportError::Closed,
            () = wait_for_closed_input(writer) => return input_closed_error(),
            outcome = &mut reading => match outcome {
                Err(error) => return error,
                Ok(()) => timeout(PIPE_CLOSED_GRACE, self.process.exited()).await.ok(),
            },
            status = self.process.exited() => match timeout(DRAIN_TIMEOUT, &mut reading).await {
                Ok(Err(error)) => return error,
                Ok(Ok(())) | Err(_) => Some(status),
            },
        };
        let Some(status) = status else {
            let reason = "the server closed its standard output without exiting";
            return TransportError::ConnectionLost(reason.to_owned());
        };
        // The last lines usually say why the server exited, unless they are old.
        drain(stderr_reader).await;
        TransportError::Exited { status, stderr: self.stderr_tail.text_since(MAX_EXIT_REASON_AGE) }
    }
}

/// Waits until the transport is closed or dropped.
async fn wait_for_stop(stopped: &mut watch::Receiver<bool>) {
    // An error means that the transport is dropped.
    let _ = stopped.wait_for(|stop| *stop).await;
}

/// Waits until the server has closed its input, and a little longer: if it is exiting, its exit is noticed first and is
/// the better error.
async fn wait_for_closed_input(writer: &mut JoinHandle<()>) {
    let _ = writer.await;
    sleep(PIPE_CLOSED_GRACE).await;
}

fn input_closed_error() -> TransportError {
    TransportError::ConnectionLost("the server closed its standard input".to_owned())
}

/// Waits for the rest of stderr, but not for ever: another process may hold it open.
async fn drain(stderr_reader: &mut JoinHandle<()>) {
    if !stderr_reader.is_finished() {
        let _ = timeout(DRAIN_TIMEOUT, stderr_reader).await;
    }
}

/// Delivers the messages of the server until its output ends.
async fn read_messages(
    stdout: ChildStdout,
    limits: WireLimits,
    requests: &PendingRequests,
    stderr_tail: &StderrTail,
) -> Result<(), TransportError> {
    let mut lines = LineReader::new(stdout, &limits);
    let mut consecutive_invalid = 0;
    loop {
        let messages = match lines.next().await {
            Ok(None) => return Ok(()),
            Ok(Some(Line::Json(text))) => Message::read(text, &limits),
            // The last line without a line feed counts if it is complete.
            Ok(Some(Line::Unterminated(text))) => Ok(Message::read(text, &limits).unwrap_or_default()),
            Ok(Some(Line::Noise(text))) => {
                stderr_tail.push_line(&log_line("stdout: ", &text));
                continue;
            }
            Err(LineError::Wire(error)) => Err(error),
            Err(LineError::Io(error)) => return Err(TransportError::ConnectionLost(error.to_string())),
        };
        match messages {
            Ok(messages) => {
                consecutive_invalid = 0;
                messages.into_iter().for_each(|message| requests.deliver(message));
            }
            Err(error @ (WireError::TooLong { .. } | WireError::TooDeep { .. })) => return Err(error.into()),
            Err(error) => {
                consecutive_invalid += 1;
                stderr_tail.push_line(&log_line("stdout: invalid message: ", &error.to_string()));
                if consecutive_invalid >= MAX_CONSECUTIVE_INVALID_LINES {
                    return Err(error.into());
                }
            }
        }
    }
}

/// Writes queued messages until the server's input is closed.
async fn write_messages(stdin: ChildStdin, mut queued: mpsc::UnboundedReceiver<QueuedMessage>) {
    let mut stdin = BufWriter::with_capacity(WRITE_BUFFER_BYTES, stdin);
    while let Some(message) = queued.recv().await {
        let mut next = Some(message);
        while let Some(message) = next {
            if stdin.write_all(&message.body).await.is_err() || stdin.write_all(b"\n").await.is_err() {
                return;
            }
            next = queued.try_recv().ok();
        }
        if stdin.flush().await.is_err() {
            return;
        }
    }
}

fn log_line(prefix: &str, text: &str) -> String {
    let mut line = prefix.to_owned();
    line.extend(text.chars().take(MAX_LOGGED_LINE_CHARS));
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn a_body_becomes_one_line_and_stays_the_same_json(text in "[a\\[\\]{},:\"0-9\r\n ]{0,60}") {
            let mut line = text.clone().into_bytes();
            join_json_lines(&mut line);
            prop_assert!(memchr::memchr2(b'\n', b'\r', &line).is_none());
            let (before, after) =
                (serde_json::from_str::<serde_json::Value>(&text), serde_json::from_slice::<serde_json::Value>(&line));
            if let Ok(before) = before {
                prop_assert_eq!(before, after.unwrap());
            }
        }
    }
}
