//! An answer whose run is active. Dropping it, as when the client disconnects, cancels the run.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use serde_json::Value;
use tokio::sync::mpsc;
use toolyard_agent::{AgentError, CancelToken, RunEnd, RunUpdate};
use toolyard_core::text::ChunkSanitizer;

use super::answer::{AnswerFormat, AnsweringRun, FinishedAnswer, first_tokens};
use crate::{
    agents::{
        api::{error::ApiError, runs::state::RunTally},
        run_observer::RunMessage,
        run_text::progress_line,
    },
    api::error_code::ErrorCode,
};

/// Text of up to this length may be what a model says before its tool calls, which is not part of the answer.
const MAX_PREAMBLE_CHARS: usize = 240;

#[derive(Debug)]
pub(super) struct PendingAnswer {
    pub(super) messages: mpsc::UnboundedReceiver<RunMessage>,
    pub(super) cancel: CancelToken,
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        // Has no effect on a run that is over.
        self.cancel.cancel();
    }
}

impl PendingAnswer {
    pub(super) async fn wait(mut self, run: &AnsweringRun) -> Result<FinishedAnswer, ApiError> {
        let mut tally = RunTally::default();
        while let Some(message) = self.messages.recv().await {
            match message {
                RunMessage::Update(update) => tally.add(&update),
                // Not forwarded: the client has no way to answer them.
                RunMessage::ApprovalRequest(..) | RunMessage::InputRequest(..) => {}
                RunMessage::Ended(ended) => return run.finish(ended?, &tally),
            }
        }
        Err(ApiError::failed(
            ErrorCode::RunInterrupted,
            format!("run {} stopped before it finished", run.run),
        ))
    }

    /// The answer as server-sent events.
    pub(super) fn into_events(
        self,
        run: AnsweringRun,
        format: impl AnswerFormat,
    ) -> impl Stream<Item = Bytes> + Send {
        let stream = AnswerStream::new(run, format);
        stream::unfold((self, stream), |(mut pending, mut stream)| async move {
            loop {
                if let Some(event) = stream.ready.pop_front() {
                    return Some((event, (pending, stream)));
                }
                if stream.is_over {
                    return None;
                }
                match pending.messages.recv().await {
                    Some(RunMessage::Update(update)) => stream.push_update(&update),
                    Some(RunMessage::ApprovalRequest(..) | RunMessage::InputRequest(..)) => {}
                    Some(RunMessage::Ended(ended)) => stream.finish(ended),
                    None => stream.is_over = true,
                }
            }
        })
    }
}

/// The answer of a run that is over, as server-sent events.
pub(super) fn finished_events(
    run: AnsweringRun,
    format: impl AnswerFormat,
    tally: RunTally,
    end: RunEnd,
) -> impl Stream<Item = Bytes> + Send {
    let mut stream = AnswerStream { tally, ..AnswerStream::new(run, format) };
    stream.finish(Ok(end));
    stream::iter(stream.ready)
}

/// Turns updates of a run into events of a streamed answer.
#[derive(Debug)]
struct AnswerStream<F> {
    run: AnsweringRun,
    format: F,
    tally: RunTally,
    /// What was sent of the current answer.
    sent_answer: String,
    /// Text that tool calls may follow. It is held back because content cannot be retracted.
    tentative: String,
    /// The content that the client got, if it set a limit of tokens.
    limited_content: String,
    /// Whether the limit of tokens was reached.
    is_cut: bool,
    content: ChunkSanitizer,
    reasoning: ChunkSanitizer,
    ready: VecDeque<Bytes>,
    is_over: bool,
}

impl<F: AnswerFormat> AnswerStream<F> {
    fn new(run: AnsweringRun, mut format: F) -> Self {
        let ready = format.start(&run).into();
        Self {
            run,
            format,
            tally: RunTally::default(),
            sent_answer: String::new(),
            tentative: String::new(),
            limited_content: String::new(),
            is_cut: false,
            content: ChunkSanitizer::default(),
            reasoning: ChunkSanitizer::default(),
            ready,
            is_over: false,
        }
    }

    fn push_update(&mut self, update: &RunUpdate) {
        self.tally.add(update);
        if let RunUpdate::AnswerDelta { text, tentative } = update {
            self.tentative.push_str(text);
            if !tentative
                || !self.sent_answer.is_empty()
                || self.tentative.chars().count() > MAX_PREAMBLE_CHARS
            {
                let text = std::mem::take(&mut self.tentative);
                self.push_content(&text);
            }
        } else if *update == RunUpdate::AnswerDiscarded {
            let preamble = std::mem::take(&mut self.tentative);
            if !preamble.is_empty() {
                self.push_reasoning(&preamble);
            }
            // What was sent cannot be retracted; the next answer starts a new paragraph.
            if !std::mem::take(&mut self.sent_answer).is_empty() {
                self.ready.extend(self.format.content(&self.run, "\n\n"));
            }
        } else if let Some(line) = progress_line(update) {
            self.push_reasoning(&line);
        }
    }

    fn finish(&mut self, ended: Result<RunEnd, AgentError>) {
        self.is_over = true;
        // The limit of tokens holds for all that was streamed, and is applied to it.
        let unlimited = AnsweringRun { max_tokens: None, ..self.run.clone() };
        let answer = ended.map_err(ApiError::from).and_then(|end| unlimited.finish(end, &self.tally));
        let answer = answer.map(|mut answer| {
            self.push_rest(&answer.text);
            answer.is_cut |= self.is_cut;
            answer
        });
        self.ready.extend(self.format.finish(&self.run, answer.as_ref()));
    }

    /// Sends the part of the final text that was not sent yet.
    fn push_rest(&mut self, text: &str) {
        let sent = self.sent_answer.trim();
        if sent == text.trim() {
            return;
        }
        match text.trim_start().strip_prefix(sent) {
            Some(rest) => self.push_content(rest),
            // The final text differs from what was sent.
            None => self.push_content(&format!("\n\n{text}")),
        }
    }

    fn push_content(&mut self, text: &str) {
        if !text.is_empty() {
            self.sent_answer.push_str(text);
            let Some(text) = self.within_limit(text) else { return };
            // The client gets it without unsafe characters; the final text is compared with what the model sent.
            let text = self.content.sanitize(&text);
            self.ready.extend(self.format.content(&self.run, &text));
        }
    }

    /// As much of a text as the client's limit of tokens permits; `None` after the limit.
    fn within_limit(&mut self, text: &str) -> Option<String> {
        let Some(max_tokens) = self.run.max_tokens else { return Some(text.to_owned()) };
        if self.is_cut {
            return None;
        }
        let sent = self.limited_content.len();
        self.limited_content.push_str(text);
        let (permitted, is_cut) = first_tokens(&self.limited_content, max_tokens);
        self.is_cut = is_cut;
        permitted.get(sent..).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    fn push_reasoning(&mut self, text: &str) {
        let text = self.reasoning.sanitize(text);
        self.ready.extend(self.format.reasoning(&self.run, &text));
    }
}

/// A server-sent event without a name.
pub(super) fn data_event(value: &Value) -> Bytes {
    Bytes::from(format!("data: {value}\n\n"))
}

#[cfg(test)]
#[path = "answer_stream_tests.rs"]
mod tests;
