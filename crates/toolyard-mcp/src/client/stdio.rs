//! A server that is a program of ours: messages are lines on its standard input and output.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncWriteExt, BufWriter},
    process::{ChildStdin, ChildStdout},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    task::JoinHandle,
    time::{sleep, timeout},
};
use toolyard_core::BoxFuture;

use super::{
    Exchange, LastWords, Outgoing, Sent, Transport, TransportError,
    guard::{GRACE, GuardProgram},
    process::{Pipes, ServerProcess},
};
use crate::wire::{Line, LineError, Lines, Message, WireError, WireLimits};

/// How many bytes may wait for a server that does not read.
const QUEUE_BYTES: u32 = 1 << 20;
/// What a waiting message costs besides its bytes.
const QUEUED_OVERHEAD: usize = 64;
/// How many bytes are written at once.
const WRITE_BYTES: usize = 8 << 10;
/// How long what was said before the end may still be on its way.
const DRAIN: Duration = Duration::from_millis(250);
/// How long a server may take to end after it closed its input or output.
const PIPE_CLOSED: Duration = Duration::from_millis(500);
/// How many lines in a row may be no message before the server is not taken for one any more.
const UNREADABLE_IN_A_ROW: u32 = 1_000;
/// How much of a line that is no message is remembered.
const NOTED_CHARACTERS: usize = 400;

/// How a server is started. Everything it may see of the world is here.
#[derive(Clone)]
#[non_exhaustive]
pub struct StdioLaunch {
    /// A program in `PATH` of the environment below, or a path (relative to the working directory).
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its whole environment; [`super::environment::allowed`] makes one.
    pub environment: Vec<(String, String)>,
    /// Where it runs; ours if none is given.
    pub working_directory: Option<PathBuf>,
    /// Who makes sure that nothing of it survives us. Without one, processes that leave the server's group survive, and
    /// everything does when we are killed.
    pub guard: Option<GuardProgram>,
    /// How long it may take to end by itself once its input is closed.
    pub grace: Duration,
    /// Where its last words go.
    pub last_words: Arc<LastWords>,
}

impl StdioLaunch {
    /// A command with an empty environment and no guardian.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            args: Vec::new(),
            environment: Vec::new(),
            working_directory: None,
            guard: None,
            grace: GRACE,
            last_words: Arc::default(),
        }
    }
}

impl fmt::Debug for StdioLaunch {
    /// Arguments and values of the environment may be secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.environment.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("StdioLaunch")
            .field("command", &self.command)
            .field("environment", &names)
            .field("working_directory", &self.working_directory)
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}

/// A connection to a server that is a program of ours. When it is dropped without having been closed, the server goes
/// the same way down, only that nobody waits for it.
pub struct StdioTransport {
    exchange: Arc<Exchange>,
    queue: mpsc::UnboundedSender<Queued>,
    /// Bytes that may still be queued.
    room: Arc<Semaphore>,
    last_words: Arc<LastWords>,
    stop: watch::Sender<bool>,
    gone: watch::Receiver<bool>,
}

/// A message on its way to the server, and the room it takes.
struct Queued {
    body: Vec<u8>,
    _room: OwnedSemaphorePermit,
}

/// Starts a server and connects to it. What it says goes to the exchange.
pub async fn connect(
    launch: StdioLaunch,
    exchange: Arc<Exchange>,
    limits: WireLimits,
) -> Result<StdioTransport, TransportError> {
    let (process, pipes) = ServerProcess::start(&launch).await?;
    let (queue, queued) = mpsc::unbounded_channel();
    let (stop, stopped) = watch::channel(false);
    let (gone_sender, gone) = watch::channel(false);
    let room = Arc::new(Semaphore::new(QUEUE_BYTES as usize));
    let last_words = launch.last_words;
    let conversation = Conversation {
        process,
        exchange: Arc::clone(&exchange),
        room: Arc::clone(&room),
        last_words: Arc::clone(&last_words),
        limits,
    };
    tokio::spawn(async move {
        conversation.lead(pipes, queued, stopped).await;
        gone_sender.send_replace(true);
    });
    Ok(StdioTransport { exchange, queue, room, last_words, stop, gone })
}

impl StdioTransport {
    fn why_closed(&self) -> TransportError {
        self.exchange.closed().unwrap_or_else(input_closed)
    }

    async fn enqueue(&self, message: Outgoing) -> Result<Sent, TransportError> {
        let body = on_one_line(message.body);
        let cost = u32::try_from(body.len() + QUEUED_OVERHEAD).unwrap_or(QUEUE_BYTES).min(QUEUE_BYTES);
        let room = Arc::clone(&self.room).acquire_many_owned(cost).await.map_err(|_| self.why_closed())?;
        self.queue.send(Queued { body, _room: room }).map(|()| Sent::Taken).map_err(|_| self.why_closed())
    }
}

impl Transport for StdioTransport {
    fn send(&self, message: Outgoing) -> BoxFuture<'_, Result<Sent, TransportError>> {
        Box::pin(self.enqueue(message))
    }

    fn forget(&self, _id: u64) -> bool {
        false
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.exchange.close(&TransportError::Closed);
            self.stop.send_replace(true);
            // An error means that the runtime shuts down, and takes everything with it.
            let _ = self.gone.clone().wait_for(|gone| *gone).await;
        })
    }

    fn last_words(&self) -> Option<String> {
        Some(self.last_words.text())
    }
}

impl fmt::Debug for StdioTransport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StdioTransport")
            .field("gone", &*self.gone.borrow())
            .field("room", &self.room.available_permits())
            .field("last_words", &self.last_words)
            .finish_non_exhaustive()
    }
}

/// Everything between a server's start and the moment when nothing of it is left.
struct Conversation {
    process: ServerProcess,
    exchange: Arc<Exchange>,
    room: Arc<Semaphore>,
    last_words: Arc<LastWords>,
    limits: WireLimits,
}

impl Conversation {
    async fn lead(
        mut self,
        pipes: Pipes,
        queued: mpsc::UnboundedReceiver<Queued>,
        stopped: watch::Receiver<bool>,
    ) {
        let mut writer = tokio::spawn(write(pipes.stdin, queued));
        let last_words = Arc::clone(&self.last_words);
        let mut listener = tokio::spawn(async move { last_words.fill(pipes.stderr).await });
        let error = self.follow(pipes.stdout, stopped, &mut writer, &mut listener).await;
        self.exchange.close(&error);
        self.room.close();
        writer.abort();
        if !writer.is_finished() {
            // Only when the writer is gone is the server's input closed.
            let _ = writer.await;
        }
        self.process.end().await;
        drained(&mut listener).await;
        listener.abort();
    }

    /// Follows the server until there is a reason to part from it.
    async fn follow(
        &mut self,
        stdout: ChildStdout,
        mut stopped: watch::Receiver<bool>,
        writer: &mut JoinHandle<()>,
        listener: &mut JoinHandle<()>,
    ) -> TransportError {
        let exchange = Arc::clone(&self.exchange);
        let last_words = Arc::clone(&self.last_words);
        let mut reading = std::pin::pin!(read(stdout, self.limits, &exchange, &last_words));
        let status = tokio::select! {
            () = asked_to_stop(&mut stopped) => return TransportError::Closed,
            () = input_stays_closed(writer) => return input_closed(),
            outcome = &mut reading => match outcome {
                Err(error) => return error,
                Ok(()) => timeout(PIPE_CLOSED, self.process.ended()).await.ok(),
            },
            status = self.process.ended() => match timeout(DRAIN, &mut reading).await {
                Ok(Err(error)) => return error,
                Ok(Ok(())) | Err(_) => Some(status),
            },
        };
        let Some(status) = status else {
            return TransportError::Broken("it closed its standard output, but did not end".to_owned());
        };
        // What it said at the very end matters most.
        drained(listener).await;
        TransportError::Ended { status, last_words: self.last_words.text() }
    }
}

/// Waits until the transport is closed, or dropped.
async fn asked_to_stop(stopped: &mut watch::Receiver<bool>) {
    // An error means that the other end is gone.
    let _ = stopped.wait_for(|stop| *stop).await;
}

/// Waits until nothing can be written any more. A server that is about to end shows that otherwise, and soon.
async fn input_stays_closed(writer: &mut JoinHandle<()>) {
    let _ = writer.await;
    sleep(PIPE_CLOSED).await;
}

fn input_closed() -> TransportError {
    TransportError::Broken("it closed its standard input".to_owned())
}

/// Waits for what the server said last; someone may hold its stderr open for ever.
async fn drained(listener: &mut JoinHandle<()>) {
    if !listener.is_finished() {
        let _ = timeout(DRAIN, listener).await;
    }
}

/// Hands everything the server says to the exchange, up to the end of its output.
async fn read(
    stdout: ChildStdout,
    limits: WireLimits,
    exchange: &Exchange,
    last_words: &LastWords,
) -> Result<(), TransportError> {
    let mut lines = Lines::new(stdout, &limits);
    let mut unreadable = 0;
    loop {
        let messages = match lines.next().await {
            Ok(None) => return Ok(()),
            Ok(Some(Line::Json(text))) => Message::read(text, &limits),
            // The server ended in the middle of it, or forgot the line end; what is whole counts.
            Ok(Some(Line::Unfinished(text))) => Ok(Message::read(text, &limits).unwrap_or_default()),
            Ok(Some(Line::Noise(text))) => {
                last_words.note(&noted("stdout: ", &text));
                continue;
            }
            Err(LineError::Wire(error)) => Err(error),
            Err(LineError::Broken(error)) => return Err(TransportError::Broken(error.to_string())),
        };
        match messages {
            Ok(messages) => {
                unreadable = 0;
                messages.into_iter().for_each(|message| exchange.deliver(message));
            }
            Err(error @ (WireError::TooLong { .. } | WireError::TooDeep { .. })) => return Err(error.into()),
            Err(error) => {
                unreadable += 1;
                last_words.note(&noted("stdout was not understood: ", &error.to_string()));
                if unreadable >= UNREADABLE_IN_A_ROW {
                    return Err(error.into());
                }
            }
        }
    }
}

/// Writes what is queued, as long as the server's input is open.
async fn write(stdin: ChildStdin, mut queued: mpsc::UnboundedReceiver<Queued>) {
    let mut stdin = BufWriter::with_capacity(WRITE_BYTES, stdin);
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

/// A line end within JSON can only be white space between its parts; another one may stand there as well.
fn on_one_line(mut body: Vec<u8>) -> Vec<u8> {
    let mut start = 0;
    while let Some(found) = body.get(start..).and_then(|rest| memchr::memchr2(b'\n', b'\r', rest)) {
        if let Some(byte) = body.get_mut(start + found) {
            *byte = b' ';
        }
        start += found + 1;
    }
    body
}

fn noted(prefix: &str, text: &str) -> String {
    let mut line = prefix.to_owned();
    line.extend(text.chars().take(NOTED_CHARACTERS));
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
            let line = on_one_line(text.clone().into_bytes());
            prop_assert!(memchr::memchr2(b'\n', b'\r', &line).is_none());
            let (before, after) =
                (serde_json::from_str::<serde_json::Value>(&text), serde_json::from_slice::<serde_json::Value>(&line));
            if let Ok(before) = before {
                prop_assert_eq!(before, after.unwrap());
            }
        }
    }

    #[test]
    fn secrets_of_a_launch_are_not_shown() {
        let mut launch = StdioLaunch::new("npx");
        launch.environment = vec![("TOKEN".to_owned(), "hunter2".to_owned())];
        launch.args = vec!["--token=hunter2".to_owned()];
        let shown = format!("{launch:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
    }
}
