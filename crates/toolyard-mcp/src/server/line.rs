//! The line between a call that goes on and the client that made it: what the call says, and what it asks.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
};

use bytes::Bytes;
use tokio::sync::oneshot;
use toolyard_core::{BoxFuture, CallAnswers, CallProgress, CallQuestion, Caller, RawJson, Unanswered};

use super::{
    answer::has_field,
    log_level::LogLevel,
    questions::Questions,
    speaker::{Era, Speaker, fields, text_field},
    state::Marked,
};
use crate::wire::{JsonObject, notification, request};

/// The code that says that a client does not offer what it would have to be asked.
pub(super) const MISSING_CAPABILITY: i64 = -32021;

/// Where a question of the legacy era says what it is called.
const QUESTION_KEY: &str = "toolyard/key";
/// No more bytes than this wait to be sent about one call, unless one message alone is larger.
const MAX_WAITING: usize = 4 << 20;

/// One call's connection with its caller.
pub(super) struct Line {
    pub(super) speaker: Arc<Speaker>,
    pub(super) questions: Arc<Questions>,
    /// What was answered to the questions of a try before this one, where the tool itself remembers nothing.
    pub(super) answers: Option<CallAnswers>,
    /// Whether anything but the answer can be sent.
    pub(super) can_say: bool,
    /// Whether the request is one that may ask.
    pub(super) can_ask: bool,
    /// How many messages may wait.
    pub(super) queued: usize,
    /// The request that the call was made by, where it may have to be known again.
    pub(super) request: Option<Marked>,
    /// The trace that the request is part of.
    pub(super) trace: Vec<(String, String)>,
    state: Mutex<State>,
}

/// What may change while a call goes on.
#[derive(Default)]
struct State {
    said: VecDeque<Bytes>,
    /// How much of it there is.
    bytes: usize,
    asked: Vec<Asked>,
    driver: Option<Waker>,
    cancelled: bool,
    hears: Hears,
    /// Answers that came before their questions, each for one question.
    given: Vec<(String, RawJson)>,
    missing: Option<&'static str>,
}

/// What a client wants to hear of a call.
#[derive(Debug, Clone, Default)]
pub(super) struct Hears {
    /// Under which token it wants to hear of progress.
    pub(super) progress: Option<RawJson>,
    /// From which level on it wants to see log messages.
    pub(super) log: Option<LogLevel>,
}

/// Questions of one moment that wait for their answers, in the modern era.
struct Asked {
    questions: Vec<Shown>,
    answered: oneshot::Sender<Vec<RawJson>>,
}

/// A question under the key it is shown with, and its answer once there is one.
type Shown = (String, CallQuestion, Option<RawJson>);

impl Line {
    pub(super) fn new(speaker: Arc<Speaker>, questions: Arc<Questions>, hears: Hears) -> Self {
        let state = Mutex::new(State { hears, ..State::default() });
        let (can_say, can_ask, queued) = (true, true, 1_024);
        Self {
            speaker,
            questions,
            answers: None,
            can_say,
            can_ask,
            queued,
            request: None,
            trace: Vec::new(),
            state,
        }
    }

    /// The next thing that was said, if there is one.
    pub(super) fn next_said(&self) -> Option<Bytes> {
        let mut state = self.state();
        let said = state.said.pop_front()?;
        state.bytes -= said.len();
        Some(said)
    }

    /// Whoever drives the call is woken when something is said, asked or cancelled.
    pub(super) fn watch(&self, context: &Context<'_>) {
        let mut state = self.state();
        match &mut state.driver {
            Some(waker) if waker.will_wake(context.waker()) => {}
            driver => *driver = Some(context.waker().clone()),
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.state().cancelled
    }

    /// Nobody wants the answer any more.
    pub(super) fn cancel(&self) {
        let mut state = self.state();
        state.cancelled = true;
        wake(state);
    }

    /// What the caller wants to hear from now on.
    pub(super) fn set_hears(&self, hears: Hears) {
        self.state().hears = hears;
    }

    /// Brings answers of the caller by the keys of their questions: to those that wait, and to those that will be asked.
    pub(super) fn give(&self, responses: &RawJson) {
        let mut given = Vec::new();
        // What was read before a fault counts.
        let _ = fields(responses.get(), |key, value| {
            given.push((key.to_owned(), responses.part(value)));
            Ok(())
        });
        self.answer(|key, question| {
            let at = given.iter().position(|(given, answer)| given == key && fits(question, answer))?;
            Some(given.swap_remove(at).1)
        });
        self.state().given = given;
    }

    /// The capability that the call needed and the client does not have.
    pub(super) fn missing(&self) -> Option<&'static str> {
        self.state().missing
    }

    /// How often something was asked that still waits.
    pub(super) fn times_asked(&self) -> usize {
        self.state().asked.len()
    }

    /// The questions that wait, by their keys.
    pub(super) fn open_questions(&self) -> Vec<(String, CallQuestion)> {
        let state = self.state();
        let all = state.asked.iter().flat_map(|asked| &asked.questions);
        all.filter(|(.., answer)| answer.is_none())
            .map(|(key, question, _)| (key.clone(), question.clone()))
            .collect()
    }

    /// Brings answers; questions all of whose moment is answered wait no longer.
    fn answer(&self, mut find: impl FnMut(&str, &CallQuestion) -> Option<RawJson>) {
        let mut state = self.state();
        for (key, question, answer) in state.asked.iter_mut().flat_map(|asked| &mut asked.questions) {
            if answer.is_none() {
                *answer = find(key, question);
            }
        }
        let (waiting, answered): (Vec<_>, Vec<_>) = std::mem::take(&mut state.asked)
            .into_iter()
            .partition(|asked| asked.questions.iter().any(|(.., answer)| answer.is_none()));
        state.asked = waiting;
        drop(state);
        for asked in answered {
            // Whoever does not wait any more does not need to know.
            let _ =
                asked.answered.send(asked.questions.into_iter().filter_map(|(.., answer)| answer).collect());
        }
    }

    /// Says something to the client; false if it cannot hear it, or too much waits to be sent already.
    pub(super) fn say(&self, message: Vec<u8>) -> bool {
        let mut state = self.state();
        let has_room = state.said.is_empty() || state.bytes + message.len() <= MAX_WAITING;
        let has_room = self.can_say && has_room && state.said.len() < self.queued;
        if has_room {
            state.bytes += message.len();
            state.said.push_back(message.into());
            wake(state);
        }
        has_room
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// That the client can be asked all of this.
    fn check(&self, questions: &[CallQuestion]) -> Result<(), Unanswered> {
        if !self.can_ask {
            return Err(Unanswered::nobody());
        }
        let offers = self.speaker.offers;
        let missing =
            questions.iter().find_map(|question| offers.missing(&question.method, question.params.as_ref()));
        let Some(missing) = missing else { return Ok(()) };
        self.state().missing = Some(missing);
        let message = format!("the client offers nothing to answer this with; it would take {missing}");
        Err(match self.speaker.era() {
            Era::Modern => Unanswered { code: MISSING_CAPABILITY, message },
            Era::Legacy => Unanswered { code: -32601, message },
        })
    }

    /// Asks by requests of our own, whose answers come as messages of the client.
    async fn ask_by_requests(&self, questions: &[CallQuestion]) -> Result<Vec<RawJson>, Unanswered> {
        if !self.can_say {
            return Err(Unanswered::nobody());
        }
        let mut waiting = Vec::with_capacity(questions.len());
        for question in questions {
            let open = self.questions.open(self.speaker.conversation);
            let params = keyed(question);
            if !self.say(request(open.id, &question.method, &params)) {
                return Err(Unanswered {
                    code: -32603,
                    message: "too much waits to be sent to the client".to_owned(),
                });
            }
            waiting.push(open);
        }
        let mut answers = Vec::with_capacity(waiting.len());
        for open in waiting {
            answers.push(open.answer().await?);
        }
        Ok(answers)
    }

    /// Asks by answering the request with the questions.
    async fn ask_by_result(&self, questions: &[CallQuestion]) -> Result<Vec<RawJson>, Unanswered> {
        if questions.is_empty() {
            return Ok(Vec::new());
        }
        let (answered, receiver) = oneshot::channel();
        {
            let mut state = self.state();
            let mut shown: Vec<Shown> = Vec::with_capacity(questions.len());
            for question in questions {
                let waiting = state.asked.iter().flat_map(|asked| &asked.questions).chain(&shown);
                let taken: Vec<&str> = waiting.map(|(key, ..)| key.as_str()).collect();
                let key = free_key(&question.key, &taken);
                let given =
                    state.given.iter().position(|(given, answer)| *given == key && fits(question, answer));
                let answer = given.map(|at| state.given.swap_remove(at).1);
                shown.push((key, question.clone(), answer));
            }
            if shown.iter().all(|(.., answer)| answer.is_some()) {
                return Ok(shown.into_iter().filter_map(|(.., answer)| answer).collect());
            }
            state.asked.push(Asked { questions: shown, answered });
            wake(state);
        }
        receiver.await.map_err(|_| Unanswered { code: -32603, message: "nobody answered".to_owned() })
    }
}

/// A question's parameters. The legacy era has no place for the key; where somebody between us and the client has one to
/// give it (a hub with clients of the modern era), it finds it here.
fn keyed(question: &CallQuestion) -> JsonObject {
    let empty = RawJson::empty_object();
    let params = question.params.as_ref().unwrap_or(&empty);
    let object = JsonObject::of(params);
    if has_field(params, "_meta") {
        return object;
    }
    object.with_object("_meta", &JsonObject::new().with_text(QUESTION_KEY, &question.key))
}

/// A key that no other question has.
fn free_key(wanted: &str, taken: &[&str]) -> String {
    let mut key = wanted.to_owned();
    let mut number = 1_u64;
    while taken.contains(&key.as_str()) {
        number += 1;
        key = format!("{wanted}_{number}");
    }
    key
}

/// Whether an answer has the form that its question asks for.
fn fits(question: &CallQuestion, answer: &RawJson) -> bool {
    match question.method.as_str() {
        "elicitation/create" => text_field(answer.get(), "action").is_some(),
        "sampling/createMessage" => has_field(answer, "content"),
        "roots/list" => has_field(answer, "roots"),
        _ => answer.get().starts_with('{'),
    }
}

fn wake(mut state: MutexGuard<'_, State>) {
    let driver = state.driver.take();
    // Waking runs code of others, which may want the lock.
    drop(state);
    if let Some(driver) = driver {
        driver.wake();
    }
}

impl Caller for Line {
    fn capabilities(&self) -> RawJson {
        self.speaker.capabilities.clone().unwrap_or_else(|| self.speaker.offers.to_json())
    }

    fn conversation(&self) -> u64 {
        self.speaker.conversation
    }

    fn wants_progress(&self) -> bool {
        self.can_say && self.state().hears.progress.is_some()
    }

    fn progress(&self, news: &CallProgress) {
        let Some(token) = self.state().hears.progress.clone() else { return };
        let mut params = JsonObject::new()
            .with_raw("progressToken", &token)
            .with_value("progress", &serde_json::json!(news.progress));
        if let Some(total) = news.total {
            params = params.with_value("total", &serde_json::json!(total));
        }
        // The first revision did not know words about progress.
        if let Some(message) = news.message.as_ref().filter(|_| self.speaker.speaks("2025-03-26")) {
            params = params.with_text("message", message);
        }
        self.say(notification("notifications/progress", &params));
    }

    fn log(&self, message: &RawJson) {
        let Some(wanted) = self.state().hears.log else { return };
        let level = text_field(message.get(), "level").and_then(|level| LogLevel::named(&level));
        if level.is_some_and(|level| level >= wanted) {
            self.say(notification("notifications/message", &JsonObject::of(message)));
        }
    }

    fn ask<'a>(&'a self, questions: &'a [CallQuestion]) -> BoxFuture<'a, Result<Vec<RawJson>, Unanswered>> {
        if let Err(unanswered) = self.check(questions) {
            return Box::pin(std::future::ready(Err(unanswered)));
        }
        match self.speaker.era() {
            Era::Legacy => Box::pin(self.ask_by_requests(questions)),
            Era::Modern => Box::pin(self.ask_by_result(questions)),
        }
    }

    fn lacks(&self, question: &CallQuestion) {
        // What it takes note of is all that is wanted.
        let _ = self.check(std::slice::from_ref(question));
    }

    fn log_level(&self) -> Option<&str> {
        self.state().hears.log.map(LogLevel::name)
    }

    fn trace(&self) -> &[(String, String)] {
        &self.trace
    }

    fn calls_again(&self) -> bool {
        self.can_ask && self.speaker.era() == Era::Modern
    }

    fn answers(&self) -> Option<&CallAnswers> {
        self.answers.as_ref()
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Line").field("speaker", &self.speaker).finish_non_exhaustive()
    }
}
