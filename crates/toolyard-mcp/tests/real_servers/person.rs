//! Somebody who calls tools, hears everything about it and answers what is asked.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use toolyard_core::{BoxFuture, CallAnswers, CallProgress, CallQuestion, Caller, RawJson, Unanswered};

/// A caller that remembers what it was told and asked.
#[derive(Debug)]
pub(crate) struct Person {
    conversation: u64,
    capabilities: Value,
    calls_again: bool,
    answers: Option<CallAnswers>,
    /// How long it thinks before it answers.
    thinks: Duration,
    trace: Vec<(String, String)>,
    pub(crate) progress: Mutex<Vec<CallProgress>>,
    pub(crate) logged: Mutex<Vec<Value>>,
    /// The questions of each moment.
    pub(crate) asked: Mutex<Vec<Vec<CallQuestion>>>,
}

impl Person {
    /// Somebody who can be asked everything.
    pub(crate) fn new(conversation: u64) -> Self {
        Self {
            conversation,
            capabilities: json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}),
            calls_again: false,
            answers: None,
            thinks: Duration::ZERO,
            trace: Vec::new(),
            progress: Mutex::default(),
            logged: Mutex::default(),
            asked: Mutex::default(),
        }
    }

    pub(crate) fn offering(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    pub(crate) fn calling_again(mut self, answers: Option<CallAnswers>) -> Self {
        (self.calls_again, self.answers) = (true, answers);
        self
    }

    pub(crate) fn thinking(mut self, time: Duration) -> Self {
        self.thinks = time;
        self
    }

    pub(crate) fn traced(mut self, key: &str, value: &str) -> Self {
        self.trace.push((key.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn shared(self) -> Arc<Self> {
        Arc::new(self)
    }

    /// The methods of everything it was asked, but for folders: the official server wants to know them soon after it was
    /// introduced, whoever calls at that moment.
    pub(crate) fn methods(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let methods = asked.iter().flatten().map(|question| question.method.clone());
        methods.filter(|method| method != "roots/list").collect()
    }

    pub(crate) fn steps(&self) -> Vec<f64> {
        self.progress.lock().unwrap().iter().map(|news| news.progress).collect()
    }
}

impl Caller for Person {
    fn capabilities(&self) -> RawJson {
        RawJson::from_value(&self.capabilities)
    }

    fn conversation(&self) -> u64 {
        self.conversation
    }

    fn wants_progress(&self) -> bool {
        true
    }

    fn progress(&self, news: &CallProgress) {
        self.progress.lock().unwrap().push(news.clone());
    }

    fn log(&self, message: &RawJson) {
        self.logged.lock().unwrap().push(message.to_value());
    }

    fn log_level(&self) -> Option<&str> {
        Some("debug")
    }

    fn trace(&self) -> &[(String, String)] {
        &self.trace
    }

    fn ask<'a>(&'a self, questions: &'a [CallQuestion]) -> BoxFuture<'a, Result<Vec<RawJson>, Unanswered>> {
        self.asked.lock().unwrap().push(questions.to_vec());
        Box::pin(async move {
            tokio::time::sleep(self.thinks).await;
            Ok(questions.iter().map(|question| answer(question).into()).collect())
        })
    }

    fn calls_again(&self) -> bool {
        self.calls_again
    }

    fn answers(&self) -> Option<&CallAnswers> {
        self.answers.as_ref()
    }
}

/// What this person answers to a question.
pub(crate) fn answer(question: &CallQuestion) -> Value {
    match question.method.as_str() {
        "elicitation/create" => {
            let asked = question.params.as_ref().unwrap().to_value();
            let field = |name: &str| asked.pointer(&format!("/requestedSchema/properties/{name}")).is_some();
            let known = [("name", json!("Ada")), ("place", json!("London")), ("check", json!(true))];
            let content: BTreeMap<_, _> = known.into_iter().filter(|(name, _)| field(name)).collect();
            json!({"action": "accept", "content": content})
        }
        "sampling/createMessage" => json!({
            "role": "assistant", "model": "a-model", "stopReason": "endTurn",
            "content": {"type": "text", "text": "sampled words"},
        }),
        _ => json!({"roots": [{"uri": "file:///tmp/a-root", "name": "a root"}]}),
    }
}
