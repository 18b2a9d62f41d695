//! A completion whose run is active. Dropping it, as when the client disconnects, cancels the run.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolyard_agent::{AgentError, CancelToken, RunEnd, RunUpdate};
use toolyard_core::text::ChunkSanitizer;
use toolyard_model::Usage;

use super::{
    completion::{CompletionBuilder, completion_text, first_tokens},
    error::ApiError,
    run_state::add_usage,
};
use crate::agents::{run_observer::RunMessage, run_text::progress_line};

/// Text of up to this length may be what a model says before its tool calls, which is not part of the answer.
const MAX_PREAMBLE_CHARS: usize = 240;

#[derive(Debug)]
pub(super) struct PendingCompletion {
    pub(super) messages: mpsc::UnboundedReceiver<RunMessage>,
    pub(super) cancel: CancelToken,
}

impl Drop for PendingCompletion {
    fn drop(&mut self) {
        // Has no effect on a run that is over.
        self.cancel.cancel();
    }
}

impl PendingCompletion {
    pub(super) async fn wait(mut self, builder: &CompletionBuilder) -> Result<Value, ApiError> {
        let mut usage = Usage::default();
        while let Some(message) = self.messages.recv().await {
            match message {
                RunMessage::Update(update) => add_usage(&mut usage, &update),
                // Not forwarded: the client has no way to answer them.
                RunMessage::ApprovalRequest(..) | RunMessage::InputRequest(..) => {}
                RunMessage::Ended(ended) => return builder.completion(&ended?, usage),
            }
        }
        Err(ApiError::failed("run_interrupted", format!("run {} stopped before it finished", builder.run)))
    }

    /// The completion as server-sent events.
    pub(super) fn into_events(
        self,
        builder: CompletionBuilder,
        include_usage: bool,
    ) -> impl Stream<Item = Bytes> + Send {
        let chunks = CompletionChunks::new(builder, include_usage);
        stream::unfold((self, chunks), |(mut completion, mut chunks)| async move {
            loop {
                if let Some(event) = chunks.ready.pop_front() {
                    return Some((event, (completion, chunks)));
                }
                if chunks.is_over {
                    return None;
                }
                match completion.messages.recv().await {
                    Some(RunMessage::Update(update)) => chunks.push_update(&update),
                    Some(RunMessage::ApprovalRequest(..) | RunMessage::InputRequest(..)) => {}
                    Some(RunMessage::Ended(ended)) => chunks.finish(ended),
                    None => chunks.is_over = true,
                }
            }
        })
    }
}

/// The completion of a run that is over, as server-sent events.
pub(super) fn finished_events(
    builder: CompletionBuilder,
    include_usage: bool,
    usage: Usage,
    end: RunEnd,
) -> impl Stream<Item = Bytes> + Send {
    let mut chunks = CompletionChunks { usage, ..CompletionChunks::new(builder, include_usage) };
    chunks.finish(Ok(end));
    stream::iter(chunks.ready)
}

/// Turns updates of a run into chunks of a completion.
#[derive(Debug)]
struct CompletionChunks {
    builder: CompletionBuilder,
    include_usage: bool,
    usage: Usage,
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

impl CompletionChunks {
    fn new(builder: CompletionBuilder, include_usage: bool) -> Self {
        let mut chunks = Self {
            limited_content: String::new(),
            is_cut: false,
            builder,
            include_usage,
            usage: Usage::default(),
            sent_answer: String::new(),
            tentative: String::new(),
            content: ChunkSanitizer::default(),
            reasoning: ChunkSanitizer::default(),
            ready: VecDeque::new(),
            is_over: false,
        };
        chunks.push(&json!({"role": "assistant", "content": ""}), None);
        chunks
    }

    fn push_update(&mut self, update: &RunUpdate) {
        add_usage(&mut self.usage, update);
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
                self.push(&json!({"content": "\n\n"}), None);
            }
        } else if let Some(line) = progress_line(update) {
            self.push_reasoning(&line);
        }
    }

    fn finish(&mut self, ended: Result<RunEnd, AgentError>) {
        self.is_over = true;
        let text = ended
            .map_err(ApiError::from)
            .and_then(|end| Ok((completion_text(&self.builder.run, &end)?, end)));
        match text {
            Ok(((text, finish_reason), end)) => {
                self.push_rest(&text);
                let finish_reason = if self.is_cut { "length" } else { finish_reason };
                self.ready.push_back(event(&self.builder.last_chunk(&end, finish_reason)));
                if self.include_usage {
                    self.ready.push_back(event(&self.builder.usage_chunk(self.usage)));
                }
            }
            Err(error) => self.ready.push_back(event(&error.to_json())),
        }
        self.ready.push_back(Bytes::from_static(b"data: [DONE]\n\n"));
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
            self.push(&json!({"content": text}), None);
        }
    }

    /// As much of a text as the client's limit of tokens permits; `None` after the limit.
    fn within_limit(&mut self, text: &str) -> Option<String> {
        let Some(max_tokens) = self.builder.max_tokens else { return Some(text.to_owned()) };
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
        self.push(&json!({"reasoning_content": text}), None);
    }

    fn push(&mut self, delta: &Value, finish_reason: Option<&str>) {
        self.ready.push_back(event(&self.builder.chunk(delta, finish_reason)));
    }
}

fn event(value: &Value) -> Bytes {
    Bytes::from(format!("data: {value}\n\n"))
}

#[cfg(test)]
#[path = "completion_stream_tests.rs"]
mod tests;
