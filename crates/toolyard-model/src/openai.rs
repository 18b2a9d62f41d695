//! Models behind any address that speaks as OpenAI's does: llama.cpp, vLLM, Ollama, LM Studio, DashScope and others.
//!
//! Servers agree on little more than the outline, so that nothing they send is required to be there, and what they do not
//! understand of a request is left out the next time. Nothing is asked again once a word of an answer was given out.

mod address;
pub(crate) mod answer;
mod body;
mod call_slots;
mod config;
mod exchange;
pub(crate) mod failure;
pub(crate) mod retry;
mod sse;
mod think;

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use reqwest::{
    Client,
    header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue},
    redirect::Policy,
};
use serde_json::Value;

pub use self::config::{ApiKey, OpenAiConfig, Prices, StreamLimits};
use self::{
    address::Address,
    body::Dialect,
    failure::{KeyFacts, Spokesman},
};
use crate::{Model, ModelError, ModelErrorKind, ModelRequest, ModelStream, ToolCalling, Usage};

/// How long a connection may take to come about.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long a list of models may take.
const LIST_LIMIT: Duration = Duration::from_secs(15);
/// How much of a list of models, or of a complaint, is read.
const SMALL_BODY: usize = 4 << 20;

/// A model behind an OpenAI-compatible address.
#[derive(Debug)]
pub struct OpenAiModel {
    config: OpenAiConfig,
    headers: HeaderMap,
    client: Client,
    address: Address,
    spokesman: Spokesman,
    /// What the server was found not to understand.
    dialect: Mutex<Dialect>,
}

impl OpenAiModel {
    /// A model as configured. Nobody is asked anything yet.
    pub fn new(config: OpenAiConfig) -> Result<Self, ModelError> {
        let client = http_client(&config.name)?;
        Self::with_client(config, client)
    }

    /// The same with a client that is shared with others.
    pub fn with_client(config: OpenAiConfig, client: Client) -> Result<Self, ModelError> {
        let address = Address::read(&config.base_url).map_err(|why| {
            wrong(&config, &format!("has an address that cannot be used: {why}"))
                .with_hint("give an address such as http://127.0.0.1:8080/v1")
        })?;
        let headers = headers(&config)?;
        let key = KeyFacts { source: config.key_source.clone(), is_given: config.key.is_some() };
        let spokesman = Spokesman::new(&config.name, address.to_string(), key, config.secrets());
        Ok(Self { config, headers, client, address, spokesman, dialect: Mutex::default() })
    }

    /// The names of the models that its server has.
    pub async fn models(&self) -> Result<Vec<String>, ModelError> {
        let listing = async {
            let request = self.client.get(self.address.at("models")).headers(self.headers.clone());
            let response = request.send().await.map_err(|error| self.not_reached(&error))?;
            exchange::small_body(self, response).await
        };
        let body = tokio::time::timeout(LIST_LIMIT, listing).await.map_err(|_| {
            self.spokesman.error(ModelErrorKind::Timeout, "did not list its server's models in time")
        })??;
        let value = serde_json::from_str(&body).unwrap_or(Value::Null);
        let names = model_names(&value).ok_or_else(|| {
            self.spokesman.error(ModelErrorKind::Garbled, "did not list its server's models")
        })?;
        Ok(names)
    }

    /// What it was made of.
    pub fn config(&self) -> &OpenAiConfig {
        &self.config
    }

    fn dialect(&self) -> Dialect {
        *self.dialect.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learn(&self, dialect: Dialect) {
        *self.dialect.lock().unwrap_or_else(PoisonError::into_inner) = dialect;
    }

    fn not_reached(&self, error: &reqwest::Error) -> ModelError {
        let mut reasons = Vec::new();
        let mut source = std::error::Error::source(error);
        while let Some(reason) = source {
            reasons.push(reason.to_string());
            source = reason.source();
        }
        // The last reason says it; those before it say where in the machinery it was met.
        let reason = reasons.pop().unwrap_or_else(|| "the connection failed".to_owned());
        let address = &self.address;
        self.spokesman
            .error(ModelErrorKind::Unreachable, format!("cannot be reached at {address}: {reason}"))
            .with_hint(format!("is its server running? {address} must answer"))
    }
}

impl Model for OpenAiModel {
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
        exchange::generate(self, request)
    }
}

/// A client that follows nobody elsewhere, so that keys go where they were meant to.
pub(crate) fn http_client(model: &str) -> Result<Client, ModelError> {
    Client::builder()
        .redirect(Policy::none())
        .referer(false)
        .no_proxy()
        .connect_timeout(CONNECT_LIMIT)
        .pool_idle_timeout(Duration::from_secs(30))
        .build()
        .map_err(|_| {
            let message = "cannot be asked: no encrypted connections on this machine";
            ModelError::new(model, ModelErrorKind::Refused, message)
        })
}

fn wrong(config: &OpenAiConfig, message: &str) -> ModelError {
    ModelError::new(&config.name, ModelErrorKind::Refused, message)
}

fn headers(config: &OpenAiConfig) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    let secret = |value: &str, what: &str| {
        let mut value = HeaderValue::from_str(value.trim())
            .map_err(|_| wrong(config, &format!("has a {what} with characters that cannot be sent")))?;
        value.set_sensitive(true);
        Ok(value)
    };
    if let Some(key) = &config.key {
        headers.insert(AUTHORIZATION, secret(&format!("Bearer {}", key.reveal().trim()), "key")?);
    }
    for (name, value) in &config.headers {
        let name = HeaderName::try_from(name.as_str())
            .map_err(|_| wrong(config, "has a header whose name cannot be sent"))?;
        headers.insert(name, secret(value.reveal(), "header")?);
    }
    Ok(headers)
}

/// The names in a list of models, in any of the forms that servers give it.
fn model_names(value: &Value) -> Option<Vec<String>> {
    let lists = [value.get("data"), value.get("models"), Some(value)];
    let list = lists.into_iter().flatten().find_map(Value::as_array)?;
    let name = |entry: &Value| {
        let fields = ["id", "name", "model"].iter().find_map(|field| entry.get(*field)?.as_str());
        Some(toolyard_core::shown(entry.as_str().or(fields)?).chars().take(200).collect())
    };
    Some(list.iter().filter_map(name).collect())
}
