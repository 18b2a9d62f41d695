//! One request to an OpenAI-compatible server and its answer, attempt by attempt.

use std::{collections::VecDeque, pin::pin, time::Duration};

use futures_util::stream;
use jiff::Timestamp;
use reqwest::{Response, header::HeaderMap};
use tokio::time::{Instant, timeout_at};

use super::{
    OpenAiModel, SMALL_BODY,
    answer::{AnswerReader, Estimate},
    body::body,
    failure::Complaint,
    retry,
    sse::{Part, SseReader, TooLong},
};
use crate::{ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelStream, Usage};

/// How long the figures may come after the answer.
const GRACE: Duration = Duration::from_secs(3);
/// How many names of models an error lists.
const LISTED: usize = 12;

/// Asks and gives out the answer as it comes.
pub(super) fn generate<'a>(model: &'a OpenAiModel, request: &'a ModelRequest) -> ModelStream<'a> {
    let exchange = Exchange { model, request, events: VecDeque::new(), state: State::Fresh, attempt: 0 };
    Box::pin(stream::unfold(exchange, |mut exchange| async move {
        let event = exchange.next().await?;
        Some((event, exchange))
    }))
}

struct Exchange<'a> {
    model: &'a OpenAiModel,
    request: &'a ModelRequest,
    events: VecDeque<ModelEvent>,
    state: State,
    attempt: u32,
}

enum State {
    Fresh,
    Reading(Box<Reading>),
    Over,
}

/// An answer that is being read.
struct Reading {
    response: Response,
    form: Form,
    answer: AnswerReader,
    read: Estimate,
    deadline: Instant,
    total: usize,
    has_begun: bool,
}

/// How an answer comes. Servers are not believed about it: the first bytes tell.
enum Form {
    Unknown(Vec<u8>),
    Stream(SseReader),
    Whole(Vec<u8>),
}

/// Why an attempt did not succeed.
enum Failure {
    /// Another attempt may help, unless something was said already.
    Passing(ModelError, Option<Duration>),
    Final(ModelError),
}

impl Exchange<'_> {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(Ok(event));
            }
            let outcome = match &mut self.state {
                State::Over => return None,
                State::Fresh => self.begin().await.map(|reading| self.state = State::Reading(reading)),
                State::Reading(reading) => match reading.more(self.model, &mut self.events).await {
                    Ok(true) => Ok(()),
                    Ok(false) => {
                        self.state = State::Over;
                        Ok(())
                    }
                    Err(failure) => Err(failure),
                },
            };
            if let Err(failure) = outcome {
                let used = self.used();
                if let Err(error) = self.after(failure).await {
                    self.state = State::Over;
                    return Some(Err(error.having_used(used)));
                }
            }
        }
    }

    /// What the answer that is being read cost so far.
    fn used(&self) -> Usage {
        match &self.state {
            State::Reading(reading) => {
                reading.answer.used(reading.read, |usage| self.model.config.prices.cost(usage))
            }
            State::Fresh | State::Over => Usage::default(),
        }
    }

    /// Waits before another attempt, or gives up.
    async fn after(&mut self, failure: Failure) -> Result<(), ModelError> {
        let has_begun = matches!(&self.state, State::Reading(reading) if reading.has_begun);
        let (error, wanted) = match failure {
            Failure::Final(error) => return Err(error),
            Failure::Passing(error, wanted) => (error, wanted),
        };
        if has_begun || self.attempt >= self.model.config.attempts.max(1) {
            return Err(error);
        }
        let longest = self.model.config.longest_pause;
        let Some(pause) = retry::pause(self.attempt, wanted, longest, fastrand::f64()) else {
            return Err(error);
        };
        tracing::debug!(model = %self.model.config.name, attempt = self.attempt, ?pause, %error, "asking again");
        self.state = State::Fresh;
        tokio::time::sleep(pause).await;
        Ok(())
    }

    /// Sends the request and waits for the head of the answer.
    async fn begin(&mut self) -> Result<Box<Reading>, Failure> {
        self.attempt += 1;
        loop {
            let dialect = self.model.dialect();
            let body = body(&self.model.config, self.request, dialect);
            let text = body.to_string();
            let read = Estimate::of(&text);
            let deadline = Instant::now() + self.model.config.first_token_timeout;
            let sending = self
                .model
                .client
                .post(self.model.address.at("chat/completions"))
                .headers(self.model.headers.clone())
                .header(reqwest::header::CONTENT_TYPE, "application/json")
                .body(text)
                .send();
            let response = timeout_at(deadline, sending)
                .await
                .map_err(|_| Failure::Final(too_slow(self.model, false)))?
                .map_err(|error| Failure::Passing(self.model.not_reached(&error), None))?;
            if response.status().is_success() {
                return Ok(Box::new(Reading::new(response, read, deadline)));
            }
            let complaint = complaint_of(self.model, response, deadline).await?;
            match dialect.after(&complaint.message, &body).filter(|_| complaint.status == Some(400)) {
                Some(next) => self.model.learn(next),
                None => return Err(failure_of(self.model, complaint).await),
            }
        }
    }
}

impl Reading {
    fn new(response: Response, read: Estimate, deadline: Instant) -> Self {
        let form = Form::Unknown(Vec::new());
        Self { response, form, answer: AnswerReader::default(), read, deadline, total: 0, has_begun: false }
    }

    /// Reads more; false once the answer is complete.
    async fn more(
        &mut self,
        model: &OpenAiModel,
        events: &mut VecDeque<ModelEvent>,
    ) -> Result<bool, Failure> {
        let chunk = match timeout_at(self.deadline, self.response.chunk()).await {
            Err(_) if self.answer.is_finished() => None,
            Err(_) => return Err(Failure::Final(too_slow(model, self.has_begun))),
            // The answer is there; that its end is untidy changes nothing.
            Ok(Err(_)) if self.answer.is_finished() => None,
            Ok(Err(error)) => return Err(Failure::Passing(broke_off(model, &error), None)),
            Ok(Ok(chunk)) => chunk,
        };
        let mut fresh = Vec::new();
        let ended = chunk.is_none();
        let taken = match chunk {
            Some(bytes) => self.take(&bytes, model, &mut fresh),
            None => self.finish(&mut fresh),
        };
        if !fresh.is_empty() {
            self.has_begun = true;
            self.deadline = Instant::now() + model.config.between_tokens_timeout;
        }
        events.extend(fresh);
        match taken {
            Ok(()) => {}
            Err(Trouble::TooLong) => return Err(Failure::Final(too_long(model))),
            Err(Trouble::Complaint(complaint)) => return Err(failure_of(model, complaint).await),
        }
        if self.answer.is_finished() {
            self.deadline = self.deadline.min(Instant::now() + GRACE);
        }
        if !ended && !self.answer.is_done() {
            return Ok(true);
        }
        if !self.answer.is_finished() {
            let error = model.spokesman.error(ModelErrorKind::Garbled, "ended in the middle of its answer");
            return Err(Failure::Passing(error, None));
        }
        events.extend(self.answer.finish(self.read, |usage| model.config.prices.cost(usage)));
        Ok(false)
    }

    fn take(
        &mut self,
        bytes: &[u8],
        model: &OpenAiModel,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Trouble> {
        self.total = self.total.saturating_add(bytes.len());
        if self.total > model.config.limits.total_bytes {
            return Err(Trouble::TooLong);
        }
        if let Form::Unknown(start) = &mut self.form {
            start.extend_from_slice(bytes);
            let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
            let Some(first) = text.first() else { return Ok(()) };
            let start = text.to_vec();
            if matches!(first, b'{' | b'[' | b'<') {
                self.form = Form::Whole(start);
                return Ok(());
            }
            self.form = Form::Stream(SseReader::new(model.config.limits));
            return self.take_stream(&start, events);
        }
        if let Form::Whole(body) = &mut self.form {
            body.extend_from_slice(bytes);
            return Ok(());
        }
        self.take_stream(bytes, events)
    }

    fn take_stream(&mut self, bytes: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), Trouble> {
        let mut parts = Vec::new();
        let Form::Stream(reader) = &mut self.form else { return Ok(()) };
        let within = reader.push(bytes, &mut parts);
        self.take_parts(parts, events)?;
        Ok(within?)
    }

    fn take_parts(&mut self, parts: Vec<Part>, events: &mut Vec<ModelEvent>) -> Result<(), Trouble> {
        for part in parts {
            match part {
                Part::Data(data) => self.answer.take(&data, events)?,
                Part::Error(data) => return Err(Complaint::in_stream(&data).into()),
            }
        }
        Ok(())
    }

    /// The body is over.
    fn finish(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), Trouble> {
        match &mut self.form {
            Form::Unknown(_) => Ok(()),
            Form::Stream(reader) => {
                let mut parts = Vec::new();
                reader.finish(&mut parts);
                self.take_parts(parts, events)
            }
            Form::Whole(body) => {
                let body = String::from_utf8_lossy(body).into_owned();
                if let Ok(value) = serde_json::from_str(&body) {
                    self.answer.take_whole(&value, events)?;
                    return Ok(());
                }
                if body.starts_with('<') {
                    return Err(Complaint::garbled("a web page").into());
                }
                // Objects line by line, as some servers stream them.
                Ok(self.answer.take(&body, events)?)
            }
        }
    }
}

enum Trouble {
    TooLong,
    Complaint(Complaint),
}

impl From<TooLong> for Trouble {
    fn from(_: TooLong) -> Self {
        Self::TooLong
    }
}

impl From<Complaint> for Trouble {
    fn from(complaint: Complaint) -> Self {
        Self::Complaint(complaint)
    }
}

async fn failure_of(model: &OpenAiModel, complaint: Complaint) -> Failure {
    let error = model.spokesman.complain(&complaint);
    if complaint.is_passing() {
        return Failure::Passing(error, complaint.retry_after);
    }
    let is_missing =
        complaint.status == Some(404) && complaint.message.to_ascii_lowercase().contains("model");
    if !is_missing {
        return Failure::Final(error);
    }
    // Boxed, because asking for the list is as large a future as all the rest.
    let listing = Box::pin(model.models());
    let wanted = &model.config.model;
    Failure::Final(error.with_hint(match listing.await {
        Ok(names) if !names.is_empty() => {
            let more = if names.len() > LISTED { ", …" } else { "" };
            let names: Vec<&str> = names.iter().take(LISTED).map(String::as_str).collect();
            format!("{} has no {wanted}; it has {}{more}", model.address, names.join(", "))
        }
        _ => format!("{} has no {wanted}; look up how it calls its models", model.address),
    }))
}

/// What an answer that is no success says.
async fn complaint_of(
    model: &OpenAiModel,
    response: Response,
    deadline: Instant,
) -> Result<Complaint, Failure> {
    let status = response.status();
    let header = |name: &str| text_header(response.headers(), name);
    let wait = retry::retry_after(
        header("retry-after").as_deref(),
        header("retry-after-ms").as_deref(),
        Timestamp::now(),
    );
    if status.is_redirection() {
        let error = model.spokesman.error(ModelErrorKind::Refused, "answered that it is somewhere else");
        return Err(Failure::Final(error.with_hint(match header("location") {
            Some(place) => format!("it names {}", model.spokesman.harmless(&place)),
            None => "look up its address".to_owned(),
        })));
    }
    let reading = limited(response);
    let body = timeout_at(deadline, pin!(reading)).await.ok().flatten().unwrap_or_default();
    let mut complaint = Complaint::in_body(status.as_u16(), &body);
    complaint.retry_after = wait;
    Ok(complaint)
}

fn text_header(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}

/// A body that is known to be small; none if it is not, or breaks off.
async fn limited(mut response: Response) -> Option<String> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.ok()? {
        if body.len() + bytes.len() > SMALL_BODY {
            return None;
        }
        body.extend_from_slice(&bytes);
    }
    Some(String::from_utf8_lossy(&body).into_owned())
}

/// The body of an answer that is a success, and the complaint otherwise.
pub(super) async fn small_body(model: &OpenAiModel, response: Response) -> Result<String, ModelError> {
    let status = response.status();
    let body = limited(response).await;
    if !status.is_success() {
        let complaint = Complaint::in_body(status.as_u16(), &body.unwrap_or_default());
        return Err(model.spokesman.complain(&complaint));
    }
    body.ok_or_else(|| too_long(model))
}

fn too_slow(model: &OpenAiModel, has_begun: bool) -> ModelError {
    let config = &model.config;
    let (message, limit) = if has_begun {
        ("fell silent in the middle of its answer for", config.between_tokens_timeout)
    } else {
        ("did not begin to answer within", config.first_token_timeout)
    };
    model
        .spokesman
        .error(ModelErrorKind::Timeout, format!("{message} {} s", limit.as_secs_f32()))
        .with_hint("a slow machine or a long prompt needs a longer limit")
}

fn too_long(model: &OpenAiModel) -> ModelError {
    model.spokesman.error(ModelErrorKind::Garbled, "said more than is read of any answer")
}

fn broke_off(model: &OpenAiModel, error: &reqwest::Error) -> ModelError {
    let reached = model.not_reached(error);
    let reason = reached.message.rsplit(": ").next().unwrap_or_default().to_owned();
    model
        .spokesman
        .error(ModelErrorKind::Unreachable, format!("broke off in the middle of its answer: {reason}"))
}
