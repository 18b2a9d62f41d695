//! Models of other makers through the crate genai: Anthropic, OpenAI Responses, Gemini, DeepSeek and others.
//!
//! What they say becomes our events; keys come from the configuration and never from the environment; whoever is busy is
//! asked again as long as nothing was said.

mod mapping;

use std::{collections::VecDeque, fmt, time::Duration};

use futures_util::{StreamExt as _, stream};
use genai::{
    Client, ModelIden, ServiceTarget,
    adapter::AdapterKind,
    chat::ChatStream,
    resolver::{AuthData, Endpoint},
};
use tokio::time::{Instant, timeout_at};

use crate::{
    ApiKey, Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelStream, Prices, ToolCalling,
    Usage,
    openai::{
        answer::Estimate,
        failure::{KeyFacts, Spokesman},
        http_client, retry,
    },
};

/// What an operator says about a model of another maker. Only the first three are needed.
#[derive(Clone, PartialEq)]
pub struct GenAiConfig {
    /// The name under which the operator knows the model.
    pub name: String,
    /// Whose protocol it speaks: `anthropic`, `openai_resp`, `gemini`, `deepseek`, …
    pub provider: String,
    /// The name under which its maker knows it.
    pub model: String,
    /// The key.
    pub key: Option<ApiKey>,
    /// Where the key comes from, so that an error can name it.
    pub key_source: Option<String>,
    /// Where it answers, if not at its maker's.
    pub base_url: Option<String>,
    /// How it is let to call tools.
    pub tool_calling: ToolCalling,
    /// How long it may take to begin.
    pub first_token_timeout: Duration,
    /// How long it may be silent once it began.
    pub between_tokens_timeout: Duration,
    /// How often a request is sent at most while its maker is busy.
    pub attempts: u32,
    /// No pause before another attempt is longer.
    pub longest_pause: Duration,
    /// What it costs.
    pub prices: Prices,
    /// It ends after so many tokens where a request does not say.
    pub max_tokens: Option<u32>,
}

impl GenAiConfig {
    /// A model of which nothing is said but whose it is.
    pub fn new(name: impl Into<String>, provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            provider: provider.into(),
            model: model.into(),
            key: None,
            key_source: None,
            base_url: None,
            tool_calling: ToolCalling::Native,
            first_token_timeout: Duration::from_secs(120),
            between_tokens_timeout: Duration::from_secs(60),
            attempts: 4,
            longest_pause: Duration::from_secs(60),
            prices: Prices::default(),
            max_tokens: None,
        }
    }
}

impl fmt::Debug for GenAiConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GenAiConfig")
            .field("name", &self.name)
            .field("provider", &self.provider)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// A model of another maker.
pub struct GenAiModel {
    config: GenAiConfig,
    kind: AdapterKind,
    client: Client,
    spokesman: Spokesman,
}

impl GenAiModel {
    /// A model as configured. Nobody is asked anything yet.
    pub fn new(config: GenAiConfig) -> Result<Self, ModelError> {
        let kind = AdapterKind::from_lower_str(&config.provider.to_ascii_lowercase()).ok_or_else(|| {
            let message = format!("is of a provider that is not known: {}", config.provider);
            let known: Vec<&str> = AdapterKind::all().iter().map(AdapterKind::as_lower_str).collect();
            ModelError::new(&config.name, ModelErrorKind::Refused, message)
                .with_hint(format!("known are {}", known.join(", ")))
        })?;
        let key = KeyFacts { source: config.key_source.clone(), is_given: config.key.is_some() };
        let secrets = config.key.iter().flat_map(ApiKey::spellings).collect();
        let spokesman = Spokesman::new(&config.name, config.provider.clone(), key, secrets);
        let client = client(&config)?;
        Ok(Self { config, kind, client, spokesman })
    }

    async fn ask(&self, request: &ModelRequest) -> Result<ChatStream, genai::Error> {
        let options = mapping::options(&self.config, request);
        let asked = ModelIden::new(self.kind, self.config.model.clone());
        let answer = self.client.exec_chat_stream(asked, mapping::request(request), Some(&options)).await?;
        Ok(answer.stream)
    }
}

/// A client that knows the key and the address, and looks for neither anywhere else.
fn client(config: &GenAiConfig) -> Result<Client, ModelError> {
    let key = config.key.as_ref().map(|key| AuthData::Key(key.reveal().trim().to_owned()));
    // Without a key, an empty one: otherwise it is looked for in the environment.
    let key = key.unwrap_or_else(|| AuthData::Key(String::new()));
    // Addresses are joined with what follows them, so that their last slash matters.
    let place = config.base_url.as_ref().map(|url| format!("{}/", url.trim_end_matches('/')));
    Client::builder()
        .with_reqwest(http_client(&config.name)?)
        .with_auth_resolver_fn(move |_: ModelIden| Ok(Some(key)))
        .with_service_target_resolver_fn(move |target: ServiceTarget| {
            let endpoint = place.map_or(target.endpoint, Endpoint::from_owned);
            Ok(ServiceTarget { endpoint, ..target })
        })
        .build()
        .map_err(|_| ModelError::new(&config.name, ModelErrorKind::Refused, "cannot be asked as configured"))
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

    fn tool_calling(&self) -> ToolCalling {
        self.config.tool_calling
    }

    fn cost(&self, usage: &Usage) -> u64 {
        self.config.prices.cost(usage)
    }

    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        let talk = Talk { model: self, request, attempt: 0, state: State::Fresh, events: VecDeque::new() };
        Box::pin(stream::unfold(talk, |mut talk| async move {
            let event = talk.next().await?;
            Some((event, talk))
        }))
    }
}

struct Talk<'a> {
    model: &'a GenAiModel,
    request: &'a ModelRequest,
    attempt: u32,
    state: State,
    events: VecDeque<ModelEvent>,
}

enum State {
    Fresh,
    Listening { stream: Box<ChatStream>, deadline: Instant, has_begun: bool, heard: Estimate },
    Over,
}

/// Why there is no answer, and when another attempt may help.
struct Failure {
    error: ModelError,
    again: Option<Option<Duration>>,
}

impl Talk<'_> {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(Ok(event));
            }
            let outcome = match self.state {
                State::Over => return None,
                State::Fresh => self.begin().await,
                State::Listening { .. } => self.listen().await,
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

    /// What an answer cost that goes no further, by what was heard of it: what its maker counted is told at its end only.
    fn used(&self) -> Usage {
        let State::Listening { heard, .. } = &self.state else { return Usage::default() };
        if heard.tokens() == 0 {
            return Usage::default();
        }
        let read = self.request.messages.iter().map(|message| Estimate::of(&message.text).tokens()).sum();
        let usage = Usage { input: read, output: heard.tokens(), ..Usage::default() };
        Usage { cost_micros: self.model.config.prices.cost(&usage), ..usage }
    }

    async fn begin(&mut self) -> Result<(), Failure> {
        self.attempt += 1;
        let deadline = Instant::now() + self.model.config.first_token_timeout;
        let asked = timeout_at(deadline, self.model.ask(self.request)).await;
        let stream = asked.map_err(|_| self.too_slow(false))?.map_err(|error| self.failure(&error))?;
        let heard = Estimate::default();
        self.state = State::Listening { stream: Box::new(stream), deadline, has_begun: false, heard };
        Ok(())
    }

    async fn listen(&mut self) -> Result<(), Failure> {
        let State::Listening { stream, deadline, has_begun, heard: estimate } = &mut self.state else {
            return Ok(());
        };
        let heard = timeout_at(*deadline, stream.next()).await;
        let begun = *has_begun;
        let event = match heard {
            Err(_) => return Err(self.too_slow(begun)),
            Ok(None) => {
                let error =
                    self.model.spokesman.error(ModelErrorKind::Garbled, "ended in the middle of its answer");
                return Err(Failure { error, again: Some(None) });
            }
            Ok(Some(Err(error))) => return Err(self.failure(&error)),
            Ok(Some(Ok(event))) => event,
        };
        if mapping::is_sign_of_life(&event) {
            *has_begun = true;
            *deadline = Instant::now() + self.model.config.between_tokens_timeout;
        }
        let (fresh, is_last) = mapping::events(event, |usage| self.model.config.prices.cost(usage));
        fresh.iter().for_each(|event| estimate.add(event));
        self.events.extend(fresh);
        if is_last {
            self.state = State::Over;
        }
        Ok(())
    }

    /// Waits before another attempt, or gives up.
    async fn after(&mut self, failure: Failure) -> Result<(), ModelError> {
        let begun = matches!(self.state, State::Listening { has_begun: true, .. });
        let config = &self.model.config;
        let pause = failure
            .again
            .filter(|_| !begun && self.attempt < config.attempts.max(1))
            .and_then(|wanted| retry::pause(self.attempt, wanted, config.longest_pause, fastrand::f64()));
        let Some(pause) = pause else { return Err(failure.error) };
        tracing::debug!(model = %config.name, attempt = self.attempt, ?pause, "asking again");
        self.state = State::Fresh;
        tokio::time::sleep(pause).await;
        Ok(())
    }

    fn failure(&self, error: &genai::Error) -> Failure {
        let (error, again) = mapping::failure(error, &self.model.spokesman);
        Failure { error, again }
    }

    fn too_slow(&self, has_begun: bool) -> Failure {
        let message = if has_begun {
            "fell silent in the middle of its answer"
        } else {
            "did not begin to answer in time"
        };
        Failure { error: self.model.spokesman.error(ModelErrorKind::Timeout, message), again: None }
    }
}

#[cfg(test)]
#[path = "genai/tests.rs"]
mod tests;
