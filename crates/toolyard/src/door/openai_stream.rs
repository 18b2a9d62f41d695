//! A chat completion while it is made: a run that is driven for one client, and cancelled when the client is gone.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolyard_agent::{AgentError, CancelToken, RunEnd, RunNews};
use toolyard_model::Usage;

use super::{
    ears::Heard,
    openai::{Answering, add_usage, finished, thought},
    page_answer::Refused,
};

/// Longer words than these are hardly only what a model says before its calls.
const LONGEST_PREAMBLE: usize = 240;

/// A run that is cancelled when nobody waits for it any more.
#[derive(Debug)]
pub(super) struct Waited {
    pub(super) hearing: mpsc::UnboundedReceiver<Heard>,
    pub(super) stop: CancelToken,
}

impl Drop for Waited {
    fn drop(&mut self) {
        // A run that is over hears nothing of it.
        self.stop.cancel();
    }
}

impl Waited {
    /// The whole answer.
    pub(super) async fn whole(mut self, answering: &Answering) -> Result<Value, Refused> {
        let mut usage = Usage::default();
        while let Some(heard) = self.hearing.recv().await {
            match heard {
                Heard::News(news) => add_usage(&mut usage, &news),
                // Nobody is asked here.
                Heard::Asks(..) | Heard::ToolAsks(..) => {}
                Heard::Ended(ended) => {
                    return answering.whole(&ended?, usage);
                }
            }
        }
        Err(Refused::failed("run_left_as_it_is", format!("run {} was left as it is", answering.run)))
    }

    /// The answer as events.
    pub(super) fn events(
        self,
        answering: Answering,
        include_usage: bool,
    ) -> impl stream::Stream<Item = Bytes> + Send {
        let chunks = Chunks::new(answering, include_usage);
        stream::unfold((self, chunks), |(mut waited, mut chunks)| async move {
            loop {
                if let Some(event) = chunks.ready.pop_front() {
                    return Some((event, (waited, chunks)));
                }
                if chunks.is_over {
                    return None;
                }
                match waited.hearing.recv().await {
                    Some(Heard::News(news)) => chunks.take(&news),
                    Some(Heard::Asks(..) | Heard::ToolAsks(..)) => {}
                    Some(Heard::Ended(ended)) => chunks.end(ended),
                    None => chunks.is_over = true,
                }
            }
        })
    }
}

/// The answer of a run that is over, as events.
pub(super) fn told_again(
    answering: Answering,
    include_usage: bool,
    usage: Usage,
    end: RunEnd,
) -> impl stream::Stream<Item = Bytes> + Send {
    let mut chunks = Chunks { usage, ..Chunks::new(answering, include_usage) };
    chunks.end(Ok(end));
    stream::iter(chunks.ready)
}

/// Makes pieces of an answer out of news.
#[derive(Debug)]
pub(super) struct Chunks {
    answering: Answering,
    include_usage: bool,
    usage: Usage,
    /// What was said of the answer.
    said: String,
    /// Words that calls may follow: they are no content yet, because content cannot be taken back.
    held: String,
    ready: VecDeque<Bytes>,
    is_over: bool,
}

impl Chunks {
    pub(super) fn new(answering: Answering, include_usage: bool) -> Self {
        let mut chunks = Self {
            answering,
            include_usage,
            usage: Usage::default(),
            said: String::new(),
            held: String::new(),
            ready: VecDeque::new(),
            is_over: false,
        };
        chunks.push(&json!({"role": "assistant", "content": ""}), None);
        chunks
    }

    pub(super) fn take(&mut self, news: &RunNews) {
        add_usage(&mut self.usage, news);
        if let RunNews::AnswerDelta { text, tentative } = news {
            self.held.push_str(text);
            if !tentative || !self.said.is_empty() || self.held.chars().count() > LONGEST_PREAMBLE {
                let text = std::mem::take(&mut self.held);
                self.say(&text);
            }
        } else if *news == RunNews::AnswerDropped {
            let held = std::mem::take(&mut self.held);
            if !held.is_empty() {
                self.push(&json!({"reasoning_content": held}), None);
            }
            // What was said cannot be taken back; what follows begins a paragraph of its own.
            if !std::mem::take(&mut self.said).is_empty() {
                self.push(&json!({"content": "\n\n"}), None);
            }
        } else if let Some(text) = thought(news) {
            self.push(&json!({"reasoning_content": text}), None);
        }
    }

    pub(super) fn end(&mut self, ended: Result<RunEnd, AgentError>) {
        self.is_over = true;
        let finished = ended.map_err(Refused::from).and_then(|end| finished(&self.answering.run, &end));
        match finished {
            Ok((text, reason)) => {
                self.complete(&text);
                self.push(&json!({}), Some(reason));
                if self.include_usage {
                    self.ready.push_back(event(&self.answering.usage_chunk(self.usage)));
                }
            }
            Err(refused) => self.ready.push_back(event(&refused.value())),
        }
        self.ready.push_back(Bytes::from_static(b"data: [DONE]\n\n"));
    }

    /// Says what was not said yet of the final text.
    fn complete(&mut self, text: &str) {
        let said = self.said.trim();
        if said == text.trim() {
            return;
        }
        match text.trim_start().strip_prefix(said) {
            Some(rest) => self.say(rest),
            // What was said so far is not what came of it in the end.
            None => self.say(&format!("\n\n{text}")),
        }
    }

    fn say(&mut self, text: &str) {
        if !text.is_empty() {
            self.said.push_str(text);
            self.push(&json!({"content": text}), None);
        }
    }

    fn push(&mut self, delta: &Value, reason: Option<&str>) {
        self.ready.push_back(event(&self.answering.chunk(delta, reason)));
    }
}

fn event(value: &Value) -> Bytes {
    Bytes::from(format!("data: {value}\n\n"))
}

#[cfg(test)]
#[path = "openai_stream_tests.rs"]
mod tests;
