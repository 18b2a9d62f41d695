//! Answers of agents as OpenAI's APIs ask for them, whatever their format.

use bytes::Bytes;
use serde_json::{Value, json};
use toolyard_agent::{Effect, O200k, Review, RunEnd, TokenCounter as _};
use toolyard_core::{RunId, SignInLink};
use toolyard_model::{ModelErrorKind, ModelMessage, Usage};

use crate::{
    agents::{
        api::{error::ApiError, runs::state::RunTally},
        run_text::suspended_notice,
    },
    api::error_code::ErrorCode,
};

/// Characters of a word at most, where tokens are counted.
const MAX_WORD_CHARS: usize = 32;

/// What a client asks an agent, whatever API it uses.
#[derive(Debug, PartialEq)]
pub(super) struct AnswerRequest {
    /// The requested model is the name of an agent.
    pub(super) agent: String,
    pub(super) question: String,
    /// The messages before the question.
    pub(super) history: Vec<ModelMessage>,
    /// The conversation that the question belongs to.
    pub(super) conversation: Option<String>,
    pub(super) stream: bool,
    /// Tokens of the answer that the client gets at most.
    pub(super) max_tokens: Option<usize>,
    /// The temperature of the answer.
    pub(super) temperature_hundredths: Option<u8>,
}

/// The run that answers a request.
#[derive(Debug, Clone)]
pub(super) struct AnsweringRun {
    pub(super) run: RunId,
    pub(super) agent: String,
    /// Unix time in seconds.
    pub(super) created: i64,
    /// Tokens of the answer that the client gets at most.
    pub(super) max_tokens: Option<usize>,
}

/// How an answer is written: as a chat completion or as a response, whole or as server-sent events.
pub(super) trait AnswerFormat: Send + 'static {
    /// The whole answer.
    fn whole(&self, run: &AnsweringRun, answer: &FinishedAnswer) -> Value;
    /// The events that begin a stream.
    fn start(&mut self, run: &AnsweringRun) -> Vec<Bytes>;
    /// The next piece of the answer; not empty.
    fn content(&mut self, run: &AnsweringRun, text: &str) -> Vec<Bytes>;
    /// The next piece of progress and reasoning.
    fn reasoning(&mut self, run: &AnsweringRun, text: &str) -> Vec<Bytes>;
    /// The events that end a stream. The whole content was sent before.
    fn finish(&mut self, run: &AnsweringRun, outcome: Result<&FinishedAnswer, &ApiError>) -> Vec<Bytes>;
}

/// The answer of a run that is over or suspended.
#[derive(Debug)]
pub(super) struct FinishedAnswer {
    pub(super) text: String,
    /// Whether the answer is shorter than it should be, because a limit was reached.
    pub(super) is_cut: bool,
    pub(super) end: RunEnd,
    /// The receipt.
    pub(super) effects: Vec<Effect>,
    /// What a model says of the answer.
    pub(super) review: Option<Review>,
    pub(super) usage: Usage,
}

impl AnsweringRun {
    /// The answer of this run.
    pub(super) fn finish(&self, end: RunEnd, tally: &RunTally) -> Result<FinishedAnswer, ApiError> {
        let (text, is_cut) = answer_text(&self.run, &end, tally)?;
        let (text, is_cut) = match self.max_tokens.map(|most| first_tokens(&text, most)) {
            Some((first, true)) => (first.to_owned(), true),
            _ => (text, is_cut),
        };
        let (effects, review) = (tally.effects.clone(), tally.review.clone());
        Ok(FinishedAnswer { text, is_cut, end, effects, review, usage: tally.usage })
    }

    /// How the run ended, which OpenAI's fields cannot say.
    pub(super) fn toolyard_json(&self, answer: &FinishedAnswer) -> Value {
        let awaits_approval = matches!(answer.end, RunEnd::Suspended { .. });
        let partial = matches!(answer.end, RunEnd::Partial { .. });
        let mut fields = json!({"run": self.run, "awaits_approval": awaits_approval, "partial": partial,
            "effects": answer.effects});
        if let (Some(review), Some(fields)) = (&answer.review, fields.as_object_mut()) {
            fields.insert("review".to_owned(), json!(review));
        }
        fields
    }
}

/// The longest beginning of a text with at most so many tokens, and whether that is less than the whole.
pub(super) fn first_tokens(text: &str, max_tokens: usize) -> (&str, bool) {
    if O200k.count(text) <= max_tokens {
        return (text, false);
    }
    let boundaries: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let fits = |at: &&usize| O200k.count(text.get(..**at).unwrap_or_default()) <= max_tokens;
    // A part of a word may have more tokens than the word.
    let nearly = boundaries.partition_point(|at| fits(&at));
    let near = boundaries.get(..boundaries.len().min(nearly + MAX_WORD_CHARS)).unwrap_or_default();
    let end = near.iter().rev().find(fits).copied().unwrap_or_default();
    (text.get(..end).unwrap_or_default(), true)
}

/// The text for the client, and whether it is shorter than it should be.
fn answer_text(run: &RunId, end: &RunEnd, tally: &RunTally) -> Result<(String, bool), ApiError> {
    match end {
        RunEnd::Answered { answer, truncated, .. } => Ok((answer.clone(), *truncated)),
        RunEnd::Partial { answer, .. } => Ok((answer.clone(), false)),
        RunEnd::Planned => Ok((String::new(), false)),
        RunEnd::Suspended { waiting_for } => Ok((suspended_notice(run, waiting_for), false)),
        RunEnd::LimitReached { message, .. } => Ok((format!("{message} (run {run})"), true)),
        RunEnd::Failed { message, hint, model_error } => {
            // Hints name commands, files and settings of the operator. A client can follow none of them.
            tracing::warn!(%run, message = %SignInLink::redact(message), hint, "run failed");
            let message = format!("{message} (run {run})");
            Err(match model_error {
                Some(ModelErrorKind::ContextOverflow) => ApiError {
                    code: Some(ErrorCode::ContextLengthExceeded),
                    ..ApiError::bad_request(message)
                },
                Some(kind) if kind.is_outage() => {
                    ApiError::model_unavailable(message, !tally.calls.may_have_effect)
                }
                _ => ApiError::failed(ErrorCode::RunFailed, message),
            })
        }
        RunEnd::Cancelled => {
            Err(ApiError::failed(ErrorCode::RunCancelled, format!("run {run} was cancelled")))
        }
        other => Err(ApiError::failed(ErrorCode::RunFailed, format!("{other} (run {run})"))),
    }
}
