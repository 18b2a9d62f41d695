//! Models behind OpenAI-compatible servers: llama.cpp, vLLM, Ollama, LM Studio, DashScope and others.
//!
//! Compatible servers agree on little more than the outline of the protocol. Every field of a response is therefore
//! optional, and fields of the request that a server rejects are omitted from then on. A request is never repeated once
//! part of its reply was passed on.

mod base_url;
mod config;
mod reasoning_tags;
mod request_body;
mod response_parser;
mod response_reader;
mod stream;
mod tool_call_assembler;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use reqwest::{
    Client, RequestBuilder, Response,
    header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue},
};
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_core::{BoxFuture, Embedder, EmbeddingError, escape_unsafe};

pub use self::config::{OpenAiConfig, ResponseLimits};
use self::{base_url::BaseUrl, request_body::Dialect};
use crate::{
    Model, ModelError, ModelErrorKind, ModelRequest, ModelStream, ToolCalling, Usage,
    provider::{ApiKeyInfo, ErrorReporter, ServerError, build_http_client},
};

const LIST_MODELS_TIMEOUT: Duration = Duration::from_secs(15);
/// A server may have to load its model first.
const EMBEDDING_TIMEOUT: Duration = Duration::from_secs(120);
/// Limits model lists, embeddings and error responses.
const MAX_SMALL_BODY_BYTES: usize = 4 << 20;
/// Characters of a name in a model list.
const MAX_MODEL_NAME_CHARS: usize = 200;

/// A model behind an OpenAI-compatible server.
#[derive(Debug)]
pub struct OpenAiModel {
    config: OpenAiConfig,
    headers: HeaderMap,
    client: Client,
    base_url: BaseUrl,
    reporter: ErrorReporter,
    /// What the server was found not to support.
    dialect: Mutex<Dialect>,
}

#[derive(Deserialize)]
struct EmbeddingList {
    data: Vec<EmbeddingEntry>,
}

#[derive(Deserialize)]
struct EmbeddingEntry {
    #[serde(default)]
    index: usize,
    embedding: Vec<f32>,
}

impl OpenAiModel {
    /// A model with these settings. Sends no request.
    pub fn new(config: OpenAiConfig) -> Result<Self, ModelError> {
        let base_url = BaseUrl::parse(&config.base_url).map_err(|error| {
            config_error(&config, &format!("has an invalid base URL: {error}"))
                .with_hint("use a URL such as http://127.0.0.1:8080/v1")
        })?;
        let client = build_http_client(&config.name)?;
        let headers = request_headers(&config)?;
        let api_key =
            ApiKeyInfo { source: config.api_key_source.clone(), is_configured: config.api_key.is_some() };
        let reporter = ErrorReporter::new(&config.name, base_url.to_string(), api_key, config.redactions());
        Ok(Self { config, headers, client, base_url, reporter, dialect: Mutex::default() })
    }

    /// The names of the server's models.
    pub async fn models(&self) -> Result<Vec<String>, ModelError> {
        let fetch_list = self.fetch_small_body(self.client.get(self.base_url.join("models")));
        let body = tokio::time::timeout(LIST_MODELS_TIMEOUT, fetch_list).await.map_err(|_| {
            let seconds = LIST_MODELS_TIMEOUT.as_secs();
            let message = format!("did not get its server's list of models within {seconds} s");
            self.reporter.error(ModelErrorKind::Timeout, message)
        })??;
        let value = serde_json::from_str(&body).unwrap_or(Value::Null);
        model_names(&value).ok_or_else(|| {
            let message = "got no list of models from its server";
            self.reporter.error(ModelErrorKind::InvalidResponse, message)
        })
    }

    /// The embeddings of texts, in their order.
    pub async fn embeddings(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let body = json!({"model": self.config.model, "input": texts});
        let request = self.client.post(self.base_url.join("embeddings")).timeout(EMBEDDING_TIMEOUT);
        let body = self.fetch_small_body(request.json(&body)).await?;
        let list: Option<EmbeddingList> = serde_json::from_str(&body).ok();
        let Some(mut list) = list.filter(|list| list.data.len() == texts.len()) else {
            let message = "got no list of embeddings from its server";
            return Err(self.reporter.error(ModelErrorKind::InvalidResponse, message));
        };
        list.data.sort_by_key(|entry| entry.index);
        Ok(list.data.into_iter().map(|entry| entry.embedding).collect())
    }

    /// Sends a request and reads its short response.
    async fn fetch_small_body(&self, request: RequestBuilder) -> Result<String, ModelError> {
        let response = request.headers(self.headers.clone()).send().await;
        let response = response.map_err(|error| self.unreachable_error(&error))?;
        let status = response.status();
        let body = read_small_body(response).await;
        if !status.is_success() {
            let error = ServerError::from_response(status.as_u16(), &body.unwrap_or_default());
            return Err(self.reporter.server_error(&error));
        }
        body.ok_or_else(|| self.too_long_error())
    }

    fn dialect(&self) -> Dialect {
        *self.dialect.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_dialect(&self, dialect: Dialect) {
        *self.dialect.lock().unwrap_or_else(PoisonError::into_inner) = dialect;
    }

    fn unreachable_error(&self, error: &reqwest::Error) -> ModelError {
        let url = &self.base_url;
        let message = format!("cannot be reached at {url}: {}", root_cause(error));
        self.reporter
            .error(ModelErrorKind::Unreachable, message)
            .with_hint(format!("check that a server is running at {url}"))
    }

    fn too_long_error(&self) -> ModelError {
        self.reporter.error(ModelErrorKind::InvalidResponse, "returned a response beyond the size limits")
    }
}

impl Model for OpenAiModel {
    fn name(&self) -> &str {
        &self.config.name
    }

    fn provider_model(&self) -> &str {
        &self.config.model
    }

    fn provider(&self) -> &str {
        "openai"
    }

    fn tool_calling(&self) -> ToolCalling {
        self.config.tool_calling
    }

    fn cost(&self, usage: &Usage) -> Option<u64> {
        Some(self.config.prices?.cost(usage))
    }

    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        stream::generate(self, request)
    }

    fn embedder(self: Arc<Self>) -> Option<Arc<dyn Embedder>> {
        Some(self)
    }
}

impl Embedder for OpenAiModel {
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbeddingError>> {
        Box::pin(
            async move { self.embeddings(texts).await.map_err(|error| EmbeddingError(error.to_string())) },
        )
    }
}

fn config_error(config: &OpenAiConfig, message: &str) -> ModelError {
    ModelError::new(&config.name, ModelErrorKind::Rejected, message)
}

fn request_headers(config: &OpenAiConfig) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    let secret_header = |value: &str, subject: &str| {
        let mut value = HeaderValue::from_str(value.trim())
            .map_err(|_| config_error(config, &format!("has {subject} with invalid characters")))?;
        value.set_sensitive(true);
        Ok(value)
    };
    if let Some(key) = &config.api_key {
        headers
            .insert(AUTHORIZATION, secret_header(&format!("Bearer {}", key.expose().trim()), "an API key")?);
    }
    for (name, value) in &config.headers {
        let name = HeaderName::try_from(name.as_str())
            .map_err(|_| config_error(config, "has a header with an invalid name"))?;
        headers.insert(name, secret_header(value.expose(), "a header value")?);
    }
    Ok(headers)
}

/// The innermost error: the outer ones only name the layers of the HTTP client.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause = std::error::Error::source(error);
    let mut text = "connection failed".to_owned();
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    text
}

/// Reads a body; `None` if it is too long or the connection fails.
async fn read_small_body(mut response: Response) -> Option<String> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.ok()? {
        if body.len() + bytes.len() > MAX_SMALL_BODY_BYTES {
            return None;
        }
        body.extend_from_slice(&bytes);
    }
    Some(String::from_utf8_lossy(&body).into_owned())
}

/// The names in a list of models, in any of the formats that servers use.
fn model_names(value: &Value) -> Option<Vec<String>> {
    let lists = [value.get("data"), value.get("models"), Some(value)];
    let list = lists.into_iter().flatten().find_map(Value::as_array)?;
    let read_name = |entry: &Value| {
        let field = ["id", "name", "model"].iter().find_map(|field| entry.get(*field)?.as_str());
        Some(escape_unsafe(entry.as_str().or(field)?).chars().take(MAX_MODEL_NAME_CHARS).collect())
    };
    Some(list.iter().filter_map(read_name).collect())
}
