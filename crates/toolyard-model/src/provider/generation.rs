//! One request to a model server: sends it, retries it and streams the reply.

use std::collections::VecDeque;

use futures_util::stream;
use reqwest::{Response, header};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{
    AttemptError, ServerError, TokenEstimate,
    config::ModelServerConfig,
    connection::{Connection, read_small_body, root_cause},
    parse_retry_after,
    response_reader::{ReadError, ReplyParser, ResponseReader},
    wait_for_retry,
};
use crate::{ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelStream, Usage};

/// Limits the model names in a hint.
const MAX_LISTED_MODELS: usize = 12;

/// The protocol of a model server.
pub(crate) trait Protocol: Send + Sync {
    /// Parses replies.
    type Parser: ReplyParser + 'static;
    /// What a server was found not to support.
    type Dialect: Copy + Send + Sync + 'static;

    fn connection(&self) -> &Connection;

    /// The path of requests below the base URL.
    fn path(&self) -> &'static str;

    /// What the server was found not to support so far.
    fn dialect(&self) -> Self::Dialect;

    fn request_body(&self, request: &ModelRequest, dialect: Self::Dialect) -> Value;

    /// A parser for the reply to this request.
    fn parser(&self, request: &ModelRequest) -> Self::Parser;

    /// Adapts further requests after the server rejected `body`; returns whether to send the request again.
    fn adapt(&self, dialect: Self::Dialect, error: &ServerError, body: &Value) -> bool;
}

pub(crate) fn generate<'a, P: Protocol>(protocol: &'a P, request: &'a ModelRequest) -> ModelStream<'a> {
    let generation =
        Generation { protocol, request, events: VecDeque::new(), state: State::Idle, attempt: 0 };
    Box::pin(stream::unfold(generation, |mut generation| async move {
        let event = generation.next().await?;
        Some((event, generation))
    }))
}

struct Generation<'a, P: Protocol> {
    protocol: &'a P,
    request: &'a ModelRequest,
    events: VecDeque<ModelEvent>,
    state: State<P::Parser>,
    attempt: u32,
}

enum State<R> {
    /// The next attempt has not started.
    Idle,
    Reading(Box<ResponseReader<R>>),
    Done,
}

impl<P: Protocol> Generation<'_, P> {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(Ok(event));
            }
            let progress = match &mut self.state {
                State::Done => return None,
                State::Idle => self.start_attempt().await.map(|reader| self.state = State::Reading(reader)),
                State::Reading(reader) => {
                    match reader.read(&self.protocol.connection().config, &mut self.events).await {
                        Ok(true) => Ok(()),
                        Ok(false) => {
                            self.state = State::Done;
                            Ok(())
                        }
                        Err(error) => {
                            let has_started = reader.has_started();
                            Err(self.classify(error, has_started).await)
                        }
                    }
                }
            };
            if let Err(error) = progress {
                let usage = self.usage();
                if let Err(error) = self.prepare_retry(error).await {
                    self.state = State::Done;
                    return Some(Err(error.with_usage(usage)));
                }
            }
        }
    }

    fn usage(&self) -> Usage {
        match &self.state {
            State::Reading(reader) => {
                reader.usage(&self.protocol.connection().config.prices.unwrap_or_default())
            }
            State::Idle | State::Done => Usage::default(),
        }
    }

    /// Waits before another attempt, or returns the error.
    async fn prepare_retry(&mut self, error: AttemptError) -> Result<(), ModelError> {
        let has_started = matches!(&self.state, State::Reading(reader) if reader.has_started());
        let config = &self.protocol.connection().config;
        let max_attempts = if has_started { 0 } else { config.max_attempts };
        self.state = State::Idle;
        wait_for_retry(error, self.attempt, max_attempts, config.max_retry_delay).await
    }

    /// Sends the request and waits for the head of the response.
    async fn start_attempt(&mut self) -> Result<Box<ResponseReader<P::Parser>>, AttemptError> {
        self.attempt += 1;
        let connection = self.protocol.connection();
        let first_token_timeout = connection.config.first_token_timeout;
        loop {
            let dialect = self.protocol.dialect();
            let body = self.protocol.request_body(self.request, dialect);
            let text = body.to_string();
            let input = TokenEstimate::of(&text);
            let deadline = Instant::now() + first_token_timeout;
            let send = connection
                .post(self.protocol.path())
                .header(header::CONTENT_TYPE, "application/json")
                .body(text)
                .send();
            let response = timeout_at(deadline, send)
                .await
                .map_err(|_| {
                    AttemptError::Permanent(connection.reporter.first_token_timeout(first_token_timeout))
                })?
                .map_err(|error| AttemptError::Transient(connection.unreachable_error(&error), None))?;
            if response.status().is_success() {
                let parser = self.protocol.parser(self.request);
                return Ok(Box::new(ResponseReader::new(response, parser, input, deadline)));
            }
            let error = read_server_error(connection, response, deadline).await?;
            if !self.protocol.adapt(dialect, &error, &body) {
                return Err(self.classify_server_error(error).await);
            }
        }
    }

    async fn classify(&self, error: ReadError, has_started: bool) -> AttemptError {
        let connection = self.protocol.connection();
        let reporter = &connection.reporter;
        match error {
            ReadError::Server(error) => self.classify_server_error(error).await,
            ReadError::TooLong => AttemptError::Permanent(connection.too_long_error()),
            ReadError::Timeout => {
                let ModelServerConfig { idle_timeout, first_token_timeout, .. } = connection.config;
                AttemptError::Permanent(match has_started {
                    true => reporter.idle_timeout(idle_timeout),
                    false => reporter.first_token_timeout(first_token_timeout),
                })
            }
            ReadError::Connection(error) => {
                let message = format!("lost its connection during the reply: {}", root_cause(&error));
                AttemptError::Transient(reporter.error(ModelErrorKind::Unreachable, message), None)
            }
            ReadError::Incomplete => {
                let message = "ended its response before the reply was complete";
                AttemptError::Transient(reporter.error(ModelErrorKind::InvalidResponse, message), None)
            }
        }
    }

    async fn classify_server_error(&self, error: ServerError) -> AttemptError {
        let connection = self.protocol.connection();
        let reported = connection.reporter.server_error(&error);
        if error.is_transient() {
            return AttemptError::Transient(reported, error.retry_after);
        }
        let is_unknown_model =
            error.status == Some(404) && error.message.to_ascii_lowercase().contains("model");
        if !is_unknown_model {
            return AttemptError::Permanent(reported);
        }
        // Boxed, because this future is as large as all the others together.
        let list = Box::pin(connection.models());
        let (url, name) = (&connection.base_url, &connection.config.model);
        AttemptError::Permanent(reported.with_hint(match list.await {
            Ok(names) if !names.is_empty() => {
                let ellipsis = if names.len() > MAX_LISTED_MODELS { ", …" } else { "" };
                let names: Vec<&str> = names.iter().take(MAX_LISTED_MODELS).map(String::as_str).collect();
                format!("{url} has no model `{name}`; available: {}{ellipsis}", names.join(", "))
            }
            _ => format!("{url} has no model `{name}`; look up the names of its models"),
        }))
    }
}

async fn read_server_error(
    connection: &Connection,
    response: Response,
    deadline: Instant,
) -> Result<ServerError, AttemptError> {
    let status = response.status();
    if status.is_redirection() {
        let location = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
        let error = connection.reporter.error(ModelErrorKind::Rejected, "was redirected to another URL");
        return Err(AttemptError::Permanent(error.with_hint(match location {
            Some(location) => format!(
                "redirects are not followed; set the base URL for {}",
                connection.reporter.sanitize(location)
            ),
            None => "redirects are not followed; check the base URL".to_owned(),
        })));
    }
    let retry_after = parse_retry_after(response.headers());
    let body = timeout_at(deadline, read_small_body(response)).await.ok().flatten().unwrap_or_default();
    Ok(ServerError { retry_after, ..ServerError::from_response(status.as_u16(), &body) })
}
