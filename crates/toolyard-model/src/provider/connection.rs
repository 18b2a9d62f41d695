//! The connection to a model server: its address, headers and errors.

use std::time::Duration;

use reqwest::{
    Client, RequestBuilder, Response,
    header::{ACCEPT, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::Value;
use toolyard_core::escape_unsafe;

use super::{
    ApiKeyInfo, ErrorReporter, ServerError, base_url::BaseUrl, config::ModelServerConfig,
    http_client::build_http_client,
};
use crate::{ModelError, ModelErrorKind, Usage};

const LIST_MODELS_TIMEOUT: Duration = Duration::from_secs(15);
/// Limits model lists, embeddings and error responses.
const MAX_SMALL_BODY_BYTES: usize = 4 << 20;
/// Characters of a name in a model list.
const MAX_MODEL_NAME_CHARS: usize = 200;

/// A model server and how to reach it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub config: ModelServerConfig,
    pub base_url: BaseUrl,
    pub reporter: ErrorReporter,
    client: Client,
    headers: HeaderMap,
}

impl Connection {
    /// A connection whose requests have these headers besides those of the settings. Sends no request.
    pub(crate) fn new(
        config: ModelServerConfig,
        protocol_headers: &[(&'static str, String)],
    ) -> Result<Self, ModelError> {
        let base_url = BaseUrl::parse(&config.base_url).map_err(|error| {
            config_error(&config, &format!("has an invalid base URL: {error}"))
                .with_hint("use a URL such as http://127.0.0.1:8080/v1")
        })?;
        let client = build_http_client(&config.name)?;
        let headers = request_headers(&config, protocol_headers)?;
        let api_key =
            ApiKeyInfo { source: config.api_key_source.clone(), is_configured: config.api_key.is_some() };
        let reporter = ErrorReporter::new(&config.name, base_url.to_string(), api_key, config.redactions());
        Ok(Self { config, base_url, reporter, client, headers })
    }

    pub(crate) fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(self.base_url.join(path)).headers(self.headers.clone())
    }

    /// The names of the server's models.
    pub(crate) async fn models(&self) -> Result<Vec<String>, ModelError> {
        let request = self.client.get(self.base_url.join("models")).headers(self.headers.clone());
        let fetch_list = self.fetch_small_body(request);
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

    /// Sends a request and reads its short response.
    pub(crate) async fn fetch_small_body(&self, request: RequestBuilder) -> Result<String, ModelError> {
        let response = request.send().await.map_err(|error| self.unreachable_error(&error))?;
        let status = response.status();
        let body = read_small_body(response).await;
        if !status.is_success() {
            let error = ServerError::from_response(status.as_u16(), &body.unwrap_or_default());
            return Err(self.reporter.server_error(&error));
        }
        body.ok_or_else(|| self.too_long_error())
    }

    pub(crate) fn cost(&self, usage: &Usage) -> Option<u64> {
        Some(self.config.prices?.cost(usage))
    }

    pub(crate) fn unreachable_error(&self, error: &reqwest::Error) -> ModelError {
        let url = &self.base_url;
        let message = format!("cannot be reached at {url}: {}", root_cause(error));
        self.reporter
            .error(ModelErrorKind::Unreachable, message)
            .with_hint(format!("check that a server is running at {url}"))
    }

    pub(crate) fn too_long_error(&self) -> ModelError {
        self.reporter.error(ModelErrorKind::InvalidResponse, "returned a response beyond the size limits")
    }
}

fn config_error(config: &ModelServerConfig, message: &str) -> ModelError {
    ModelError::new(&config.name, ModelErrorKind::Rejected, message)
}

fn request_headers(
    config: &ModelServerConfig,
    protocol_headers: &[(&'static str, String)],
) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    let secret_header = |value: &str, subject: &str| {
        let mut value = HeaderValue::from_str(value.trim())
            .map_err(|_| config_error(config, &format!("has {subject} with invalid characters")))?;
        value.set_sensitive(true);
        Ok(value)
    };
    for (name, value) in protocol_headers {
        headers.insert(*name, secret_header(value, "an API key")?);
    }
    for (name, value) in &config.headers {
        let name = HeaderName::try_from(name.as_str())
            .map_err(|_| config_error(config, "has a header with an invalid name"))?;
        headers.insert(name, secret_header(value.expose(), "a header value")?);
    }
    Ok(headers)
}

/// The innermost error: the outer ones only name the layers of the HTTP client.
pub(super) fn root_cause(error: &reqwest::Error) -> String {
    let mut cause = std::error::Error::source(error);
    let mut text = "connection failed".to_owned();
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    text
}

/// Reads a body; `None` if it is too long or the connection fails.
pub(super) async fn read_small_body(mut response: Response) -> Option<String> {
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
