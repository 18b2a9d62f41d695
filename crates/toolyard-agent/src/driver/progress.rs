//! What tools say while they carry out a step, passed on to whoever watches the run.

use std::sync::Arc;

use tokio::sync::mpsc;
use toolyard_core::{
    BoxFuture, CallAnswers, CallProgress, CallQuestion, Caller, ContentHash, RawJson, RunId, Unanswered,
    redact,
};

use crate::RunNews;

/// Longer messages are cut.
const MESSAGE: usize = 200;

/// The caller of a step's tool: tells progress, and passes questions to whoever can answer them.
#[derive(Debug)]
pub(super) struct StepCaller {
    step: String,
    conversation: u64,
    news: mpsc::Sender<RunNews>,
    person: Option<Arc<dyn Caller>>,
}

impl StepCaller {
    pub(super) fn new(
        run: &RunId,
        step: &str,
        news: mpsc::Sender<RunNews>,
        person: Option<Arc<dyn Caller>>,
    ) -> Self {
        let hash = ContentHash::of(run.as_str());
        let first: [u8; 8] = std::array::from_fn(|at| hash.as_bytes().get(at).copied().unwrap_or_default());
        Self { step: step.to_owned(), conversation: u64::from_le_bytes(first), news, person }
    }
}

impl Caller for StepCaller {
    fn capabilities(&self) -> RawJson {
        self.person.as_ref().map_or_else(RawJson::empty_object, |person| person.capabilities())
    }

    fn conversation(&self) -> u64 {
        self.person.as_ref().map_or(self.conversation, |person| person.conversation())
    }

    fn wants_progress(&self) -> bool {
        true
    }

    fn progress(&self, news: &CallProgress) {
        let share = match news.total {
            Some(total) => format!("{} of {total}", news.progress),
            None => news.progress.to_string(),
        };
        let message = news.message.as_deref().map_or(share, |message| redact(message).into_owned());
        let message: String = message.chars().take(MESSAGE).collect();
        // Whoever tells more than can be passed on is not waited for.
        let _ = self.news.try_send(RunNews::StepProgress { step: self.step.clone(), message });
    }

    fn trace(&self) -> &[(String, String)] {
        self.person.as_ref().map_or(&[], |person| person.trace())
    }

    fn ask<'a>(&'a self, questions: &'a [CallQuestion]) -> BoxFuture<'a, Result<Vec<RawJson>, Unanswered>> {
        match &self.person {
            Some(person) => person.ask(questions),
            None => Box::pin(std::future::ready(Err(Unanswered::nobody()))),
        }
    }

    fn answers(&self) -> Option<&CallAnswers> {
        None
    }
}
