//! Models of other providers through the crate genai: Anthropic, OpenAI Responses, Gemini, DeepSeek and others.
//!
//! API keys come from the configuration only, never from the environment. A request is never repeated once part of its
//! reply was passed on.

mod config;
mod mapping;

use std::{collections::VecDeque, fmt};

use futures_util::{StreamExt as _, stream};
use genai::{
    Client, ModelIden, ServiceTarget,
    adapter::AdapterKind,
    chat::ChatStream,
    resolver::{AuthData, Endpoint},
};
use tokio::time::{Instant, timeout_at};

pub use self::config::GenAiConfig;
use crate::{
    Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelStream, SecretString, ToolCalling,
    Usage,
    provider::{ApiKeyInfo, AttemptError, ErrorReporter, TokenEstimate, build_http_client, wait_for_retry},
};

/// A model behind the crate genai.
pub struct GenAiModel {
    config: GenAiConfig,
    adapter: AdapterKind,
    client: Client,
    reporter: ErrorReporter,
}

impl GenAiModel {
    /// A model with these settings. Sends no request.
    pub fn new(config: GenAiConfig) -> Result<Self, ModelError> {
        let adapter =
            AdapterKind::from_lower_str(&config.provider.to_ascii_lowercase()).ok_or_else(|| {
                let message = format!("has an unknown provider: {}", config.provider);
                let known: Vec<&str> = AdapterKind::all().iter().map(AdapterKind::as_lower_str).collect();
                ModelError::new(&config.name, ModelErrorKind::Rejected, message)
                    .with_hint(format!("known providers: {}", known.join(", ")))
            })?;
        let api_key =
            ApiKeyInfo { source: config.api_key_source.clone(), is_configured: config.api_key.is_some() };
        let secrets = config.api_key.iter().flat_map(SecretString::redactions).collect();
        let reporter = ErrorReporter::new(&config.name, config.provider.clone(), api_key, secrets);
        let client = build_client(&config)?;
        Ok(Self { config, adapter, client, reporter })
    }

    async fn send(&self, request: &ModelRequest) -> Result<ChatStream, genai::Error> {
        let options = mapping::chat_options(&self.config, request);
        let model = ModelIden::new(self.adapter, self.config.model.clone());
        let response =
            self.client.exec_chat_stream(model, mapping::chat_request(request), Some(&options)).await?;
        Ok(response.stream)
    }
}

fn build_client(config: &GenAiConfig) -> Result<Client, ModelError> {
    // An empty key, because genai would otherwise take one from the environment.
    let key = config.api_key.as_ref().map_or("", SecretString::expose).trim().to_owned();
    // genai joins relative paths to the base URL, which must therefore end with a slash.
    let base_url = config.base_url.as_ref().map(|url| format!("{}/", url.trim_end_matches('/')));
    Client::builder()
        .with_reqwest(build_http_client(&config.name)?)
        .with_auth_resolver_fn(move |_: ModelIden| Ok(Some(AuthData::Key(key))))
        .with_service_target_resolver_fn(move |target: ServiceTarget| {
            let endpoint = base_url.map_or(target.endpoint, Endpoint::from_owned);
            Ok(ServiceTarget { endpoint, ..target })
        })
        .build()
        .map_err(|_| {
            ModelError::new(&config.name, ModelErrorKind::Rejected, "has settings that cannot be used")
        })
}

impl fmt::Debug for GenAiModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GenAiModel").field(&self.config).finish()
    }
}

impl Model for GenAiModel {
    fn name(&self) -> &str {
        &self.config.name
    }

    fn provider_model(&self) -> &str {
        &self.config.model
    }

    fn provider(&self) -> &str {
        &self.config.provider
    }

    fn tool_calling(&self) -> ToolCalling {
        self.config.tool_calling
    }

    fn cost(&self, usage: &Usage) -> Option<u64> {
        Some(self.config.prices?.cost(usage))
    }

    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        let generation =
            Generation { model: self, request, attempt: 0, state: State::Idle, events: VecDeque::new() };
        Box::pin(stream::unfold(generation, |mut generation| async move {
            let event = generation.next().await?;
            Some((event, generation))
        }))
    }
}

struct Generation<'a> {
    model: &'a GenAiModel,
    request: &'a ModelRequest,
    attempt: u32,
    state: State,
    events: VecDeque<ModelEvent>,
}

enum State {
    /// The next attempt has not started.
    Idle,
    Reading {
        stream: Box<ChatStream>,
        deadline: Instant,
        has_started: bool,
        output: TokenEstimate,
    },
    Done,
}

impl Generation<'_> {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(Ok(event));
            }
            let progress = match self.state {
                State::Done => return None,
                State::Idle => self.start_attempt().await,
                State::Reading { .. } => self.read().await,
            };
            if let Err(error) = progress {
                let usage = self.partial_usage();
                if let Err(error) = self.prepare_retry(error).await {
                    self.state = State::Done;
                    return Some(Err(error.with_usage(usage)));
                }
            }
        }
    }

    /// The estimated usage of a reply that failed: providers report usage at the end only.
    fn partial_usage(&self) -> Usage {
        let State::Reading { output, .. } = &self.state else { return Usage::default() };
        if output.tokens() == 0 {
            return Usage::default();
        }
        let input =
            self.request.messages.iter().map(|message| TokenEstimate::of(&message.text).tokens()).sum();
        let usage = Usage { input, output: output.tokens(), ..Usage::default() };
        Usage { cost_micros: self.model.cost(&usage).unwrap_or_default(), ..usage }
    }

    async fn start_attempt(&mut self) -> Result<(), AttemptError> {
        self.attempt += 1;
        let deadline = Instant::now() + self.model.config.first_token_timeout;
        let stream = timeout_at(deadline, self.model.send(self.request))
            .await
            .map_err(|_| self.timeout_error())?
            .map_err(|error| mapping::attempt_error(&error, &self.model.reporter))?;
        let output = TokenEstimate::default();
        self.state = State::Reading { stream: Box::new(stream), deadline, has_started: false, output };
        Ok(())
    }

    async fn read(&mut self) -> Result<(), AttemptError> {
        let State::Reading { stream, deadline, has_started, output } = &mut self.state else {
            return Ok(());
        };
        let item = timeout_at(*deadline, stream.next()).await;
        let event = match item {
            Err(_) => return Err(self.timeout_error()),
            Ok(None) => {
                let message = "ended its response before the reply was complete";
                let error = self.model.reporter.error(ModelErrorKind::InvalidResponse, message);
                return Err(AttemptError::Transient(error, None));
            }
            Ok(Some(Err(error))) => return Err(mapping::attempt_error(&error, &self.model.reporter)),
            Ok(Some(Ok(event))) => event,
        };
        if mapping::is_activity(&event) {
            *has_started = true;
            *deadline = Instant::now() + self.model.config.idle_timeout;
        }
        let (events, is_last) = mapping::model_events(event, &self.model.config.prices.unwrap_or_default());
        events.iter().for_each(|event| output.add(event));
        self.events.extend(events);
        if is_last {
            self.state = State::Done;
        }
        Ok(())
    }

    /// Waits before another attempt, or returns the error.
    async fn prepare_retry(&mut self, error: AttemptError) -> Result<(), ModelError> {
        let has_started = matches!(self.state, State::Reading { has_started: true, .. });
        let config = &self.model.config;
        let max_attempts = if has_started { 0 } else { config.max_attempts };
        self.state = State::Idle;
        wait_for_retry(error, self.attempt, max_attempts, config.max_retry_delay).await
    }

    fn timeout_error(&self) -> AttemptError {
        let GenAiModel { config, reporter, .. } = self.model;
        let has_started = matches!(self.state, State::Reading { has_started: true, .. });
        AttemptError::Permanent(match has_started {
            true => reporter.idle_timeout(config.idle_timeout),
            false => reporter.first_token_timeout(config.first_token_timeout),
        })
    }
}

#[cfg(test)]
#[path = "genai/tests.rs"]
mod tests;
