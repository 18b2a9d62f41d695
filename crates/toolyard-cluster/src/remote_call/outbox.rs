//! [`Outbox`]: what a call that is executed here has to tell its caller in another process, and which answers it awaits.

use std::collections::{HashMap, VecDeque};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, futures::Notified, oneshot};
use toolyard_core::{CallInputError, CallInputRequest, CallProgress, RawJson};

use super::wire::{
    input::{WireAnswer, WireInputRequest},
    message::{InputNumber, OutgoingMessage, WireInput, WireLog, WireProgress},
};

/// Messages that wait to be sent. A tool that reports faster than the exchange sends loses progress first, then logs.
const MAX_QUEUED_MESSAGES: usize = 256;
const MAX_QUEUED_BYTES: usize = 1 << 20;
const FINISHED: &str = "the call that this request belongs to is finished";

/// The answer to input requests.
pub(super) type InputAnswer = Result<Vec<RawJson>, CallInputError>;

/// Collects messages in the order in which the tool reports them. It never waits, because [`toolyard_core::Caller::progress`] and
/// [`toolyard_core::Caller::log`] are synchronous.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    state: Mutex<State>,
    ready: Notify,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<QueuedMessage>,
    queued_bytes: usize,
    /// Whether the call was active and its caller was not told yet.
    has_activity: bool,
    is_closed: bool,
    last_input: u64,
    open_inputs: HashMap<u64, OpenInput>,
}

struct QueuedMessage {
    kind: QueuedKind,
    bytes: Vec<u8>,
}

/// What is dropped when the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueuedKind {
    Progress {
        is_activity: bool,
    },
    Log,
    /// Is never dropped while the call goes on. There are as many as the tool has open requests.
    Input,
}

#[derive(Debug)]
struct OpenInput {
    request_count: usize,
    answer: oneshot::Sender<InputAnswer>,
}

impl Outbox {
    /// Completes when there may be something to send.
    pub(super) fn ready(&self) -> Notified<'_> {
        self.ready.notified()
    }

    /// The next message to send.
    pub(super) fn pop(&self) -> Option<Vec<u8>> {
        let mut state = self.state();
        let message = state.queue.pop_front()?;
        state.queued_bytes -= message.bytes.len();
        Some(message.bytes)
    }

    pub(super) fn has_activity(&self) -> bool {
        self.state().has_activity
    }

    /// Whether the call was active since the last message that said so; the caller is told next.
    pub(super) fn take_activity(&self) -> bool {
        std::mem::take(&mut self.state().has_activity)
    }

    pub(super) fn record_activity(&self) {
        self.state().has_activity = true;
        self.ready.notify_one();
    }

    pub(super) fn push_progress(&self, progress: &CallProgress) {
        let mut state = self.state();
        let is_activity = state.has_activity;
        let Some(message) = WireProgress::new(progress, is_activity) else { return };
        state.has_activity = false;
        state.push(QueuedKind::Progress { is_activity }, &OutgoingMessage::Progress(message));
        self.ready.notify_one();
    }

    pub(super) fn push_log(&self, params: &RawJson) {
        let message = OutgoingMessage::Log(WireLog { params: params.clone() });
        self.state().push(QueuedKind::Log, &message);
        self.ready.notify_one();
    }

    pub(super) fn push_unsupported(&self, request: &CallInputRequest) {
        self.state().push(QueuedKind::Log, &OutgoingMessage::Unsupported(request.into()));
        self.ready.notify_one();
    }

    /// Requests input and waits for the answer. Dropping the future withdraws the request.
    pub(super) async fn request_input(&self, requests: &[CallInputRequest]) -> InputAnswer {
        let (sender, answer) = oneshot::channel();
        let number = {
            let mut state = self.state();
            if state.is_closed {
                return Err(CallInputError::Failed(FINISHED.to_owned()));
            }
            state.last_input += 1;
            let number = state.last_input;
            let open = OpenInput { request_count: requests.len(), answer: sender };
            state.open_inputs.insert(number, open);
            let requests = requests.iter().map(WireInputRequest::from).collect();
            state.push(QueuedKind::Input, &OutgoingMessage::Input(WireInput { number, requests }));
            number
        };
        self.ready.notify_one();
        let _withdrawal = InputWithdrawal { outbox: self, number };
        answer.await.unwrap_or_else(|_| Err(CallInputError::Failed(FINISHED.to_owned())))
    }

    /// Passes an answer of the caller to the request that waits for it. Answers to requests that were withdrawn are ignored.
    pub(super) fn handle_answer(&self, answer: WireAnswer) {
        let Some(open) = self.state().open_inputs.remove(&answer.number) else { return };
        let result = match answer.into_result() {
            Ok(responses) if responses.len() != open.request_count => {
                let (count, expected) = (responses.len(), open.request_count);
                Err(CallInputError::Failed(format!("{count} responses to {expected} input requests")))
            }
            result => result,
        };
        // The receiver may have been dropped meanwhile.
        let _ = open.answer.send(result);
    }

    /// Accepts no more messages, and ends the wait for answers. Progress and logs that are queued stay.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.open_inputs.clear();
        state.queue.retain(|message| message.kind != QueuedKind::Input);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn push(&mut self, kind: QueuedKind, message: &OutgoingMessage<'_>) {
        if self.is_closed {
            return;
        }
        // Numbers are finite and JSON that is passed on is valid, so this does not fail.
        let Ok(bytes) = message.encode() else { return };
        while self.is_full(bytes.len()) {
            if !self.drop_less_important(kind) {
                if kind == QueuedKind::Input {
                    break;
                }
                self.has_activity |= kind == QueuedKind::Progress { is_activity: true };
                return;
            }
        }
        self.queued_bytes += bytes.len();
        self.queue.push_back(QueuedMessage { kind, bytes });
    }

    fn is_full(&self, bytes: usize) -> bool {
        !self.queue.is_empty()
            && (self.queue.len() >= MAX_QUEUED_MESSAGES || self.queued_bytes + bytes > MAX_QUEUED_BYTES)
    }

    /// Drops the oldest of the least important messages, to make room for one of this kind. Later progress replaces earlier.
    fn drop_less_important(&mut self, kind: QueuedKind) -> bool {
        let is_progress = |message: &QueuedMessage| matches!(message.kind, QueuedKind::Progress { .. });
        let is_droppable_log =
            |message: &QueuedMessage| kind == QueuedKind::Input && message.kind == QueuedKind::Log;
        let position =
            self.queue.iter().position(is_progress).or_else(|| self.queue.iter().position(is_droppable_log));
        let Some(dropped) = position.and_then(|position| self.queue.remove(position)) else { return false };
        self.queued_bytes -= dropped.bytes.len();
        self.has_activity |= dropped.kind == QueuedKind::Progress { is_activity: true };
        true
    }
}

/// Tells the caller that input is not needed any more, if there was no answer.
struct InputWithdrawal<'a> {
    outbox: &'a Outbox,
    number: u64,
}

impl Drop for InputWithdrawal<'_> {
    fn drop(&mut self) {
        let mut state = self.outbox.state();
        if state.open_inputs.remove(&self.number).is_some() {
            let number = InputNumber { number: self.number };
            state.push(QueuedKind::Input, &OutgoingMessage::CancelInput(number));
            self.outbox.ready.notify_one();
        }
    }
}

impl std::fmt::Debug for QueuedMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}, {} bytes", self.kind, self.bytes.len())
    }
}
