//! Models behind OpenAI-compatible servers: llama.cpp, vLLM, Ollama, LM Studio, DashScope and others.
//!
//! Compatible servers agree on little more than the outline of the protocol. Every field of a response is therefore
//! optional, and fields of the request that a server rejects are omitted from then on. A request is never repeated once
//! part of its reply was passed on.

mod embeddings;
mod reasoning_tags;
mod request_body;
mod response_parser;
mod tool_call_assembler;

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use toolyard_core::Embedder;

use self::{
    request_body::{Dialect, request_body},
    response_parser::ResponseParser,
};
use crate::{
    Model, ModelError, ModelRequest, ModelServerConfig, ModelStream, ToolCalling, Usage,
    provider::{Connection, Protocol, ServerError, generate},
};

pub(crate) use self::response_parser::{count, parse_finish_reason};

/// A model behind an OpenAI-compatible server.
#[derive(Debug)]
pub struct OpenAiModel {
    connection: Connection,
    /// What the server was found not to support.
    dialect: Mutex<Dialect>,
}

impl OpenAiModel {
    /// A model with these settings. Sends no request.
    pub fn new(config: ModelServerConfig) -> Result<Self, ModelError> {
        let key = config.api_key.as_ref().map(|key| format!("Bearer {}", key.expose().trim()));
        let headers: Vec<_> = key.into_iter().map(|key| ("authorization", key)).collect();
        Ok(Self { connection: Connection::new(config, &headers)?, dialect: Mutex::default() })
    }

    /// The names of the server's models.
    pub async fn models(&self) -> Result<Vec<String>, ModelError> {
        self.connection.models().await
    }
}

impl Protocol for OpenAiModel {
    type Parser = ResponseParser;
    type Dialect = Dialect;

    fn connection(&self) -> &Connection {
        &self.connection
    }

    fn path(&self) -> &'static str {
        "chat/completions"
    }

    fn dialect(&self) -> Dialect {
        *self.dialect.lock()
    }

    fn request_body(&self, request: &ModelRequest, dialect: Dialect) -> Value {
        request_body(&self.connection.config, request, dialect)
    }

    fn parser(&self, _request: &ModelRequest) -> ResponseParser {
        ResponseParser::default()
    }

    fn adapt(&self, dialect: Dialect, error: &ServerError, body: &Value) -> bool {
        let adapted = dialect.adapt(&error.message, body).filter(|_| error.status == Some(400));
        if let Some(adapted) = adapted {
            *self.dialect.lock() = adapted;
        }
        adapted.is_some()
    }
}

impl Model for OpenAiModel {
    fn name(&self) -> &str {
        &self.connection.config.name
    }

    fn provider_model(&self) -> &str {
        &self.connection.config.model
    }

    fn provider(&self) -> &str {
        "openai"
    }

    fn tool_calling(&self) -> ToolCalling {
        self.connection.config.tool_calling
    }

    fn cost(&self, usage: &Usage) -> Option<u64> {
        self.connection.cost(usage)
    }

    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        generate(self, request)
    }

    fn embedder(self: Arc<Self>) -> Option<Arc<dyn Embedder>> {
        Some(self)
    }
}
