//! Whoever made a call, as far as a tool can tell or ask it something while the call goes on.

use std::fmt;

use crate::{BoxFuture, RawJson, SourceId};

/// Whoever made a call. Nothing of it has to be there: a caller that hears and answers nothing is still a caller.
pub trait Caller: Send + Sync + fmt::Debug {
    /// What can be asked of it, as the JSON object of MCP's client capabilities.
    fn capabilities(&self) -> RawJson {
        RawJson::empty_object()
    }

    /// Which conversation it belongs to; calls of one client have the same.
    fn conversation(&self) -> u64;

    /// Whether it wants to hear how far the call has got.
    fn wants_progress(&self) -> bool {
        false
    }

    /// Tells how far the call has got. Whoever does not listen misses nothing else.
    fn progress(&self, news: &CallProgress) {
        let _ = news;
    }

    /// Passes on what the tool writes into its log: the parameters of MCP's `notifications/message` as they came.
    fn log(&self, message: &RawJson) {
        let _ = message;
    }

    /// From which level on it wants to hear the tool's log, in MCP's words; none if it did not say.
    fn log_level(&self) -> Option<&str> {
        None
    }

    /// The trace it is part of, for whoever carries the call out: `traceparent`, `tracestate` and `baggage` as it sent them.
    fn trace(&self) -> &[(String, String)] {
        &[]
    }

    /// Asks the questions of one moment, all together, and brings their answers in the same order.
    fn ask<'a>(&'a self, questions: &'a [CallQuestion]) -> BoxFuture<'a, Result<Vec<RawJson>, Unanswered>> {
        let _ = questions;
        Box::pin(std::future::ready(Err(Unanswered::nobody())))
    }

    /// It would have been asked this, and was not: it does not offer what that takes.
    fn lacks(&self, question: &CallQuestion) {
        let _ = question;
    }

    /// Whether it takes a tool's questions as the answer to the call ([`crate::ToolOutput::asks`]) and calls again with
    /// what [`Caller::answers`] gives, so that nothing has to wait here meanwhile.
    fn calls_again(&self) -> bool {
        false
    }

    /// What it answered to the questions of an earlier call that this one continues.
    fn answers(&self) -> Option<&CallAnswers> {
        None
    }
}

/// How far a call has got.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallProgress {
    /// How far it is.
    pub progress: f64,
    /// How far it will go, if that is known.
    pub total: Option<f64>,
    /// What it is doing.
    pub message: Option<String>,
}

/// Something that must be known before a tool goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct CallQuestion {
    /// What the tool calls the question; unique within one moment.
    pub key: String,
    /// Who asks.
    pub source: SourceId,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// The question as it came.
    pub params: Option<RawJson>,
}

/// What a caller answered to the questions of an earlier call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallAnswers {
    /// The answers by the keys of the questions, as they came: a JSON object.
    pub responses: RawJson,
    /// What the tool wants to be reminded of, as it said it.
    pub state: Option<String>,
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unanswered {
    /// The JSON-RPC code that says so.
    pub code: i64,
    /// Why.
    pub message: String,
}

impl Unanswered {
    /// Nobody is there to ask.
    pub fn nobody() -> Self {
        Self { code: -32601, message: "nobody is there to ask".to_owned() }
    }
}
