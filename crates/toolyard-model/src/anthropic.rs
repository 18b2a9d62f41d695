//! Models behind servers with Anthropic's Messages API.
//!
//! The API has no counterpart of a response schema: the model is made to call one tool whose input the schema describes, and
//! that input becomes the text of the reply.

mod request_body;
mod response_parser;

use parking_lot::Mutex;
use serde_json::Value;

use self::{
    request_body::{Dialect, request_body},
    response_parser::ResponseParser,
};
use crate::{
    Model, ModelError, ModelRequest, ModelServerConfig, ModelStream, ToolCalling, Usage,
    provider::{Connection, Protocol, ServerError, generate},
};

/// The base URL of Anthropic's own server.
pub const ANTHROPIC_URL: &str = "https://api.anthropic.com/v1";

/// The version of the API, which every request names.
const VERSION: &str = "2023-06-01";
/// The tool whose input is a reply that follows a schema, and the only field of that input.
const REPLY_TOOL: &str = "reply";

/// A model behind a server with Anthropic's Messages API.
#[derive(Debug)]
pub struct AnthropicModel {
    connection: Connection,
    /// What the model was found not to support.
    dialect: Mutex<Dialect>,
}

impl AnthropicModel {
    /// A model with these settings. Sends no request.
    pub fn new(config: ModelServerConfig) -> Result<Self, ModelError> {
        let mut headers = vec![("anthropic-version", VERSION.to_owned())];
        headers.extend(config.api_key.as_ref().map(|key| ("x-api-key", key.expose().to_owned())));
        Ok(Self { connection: Connection::new(config, &headers)?, dialect: Mutex::default() })
    }
}

impl Protocol for AnthropicModel {
    type Parser = ResponseParser;
    type Dialect = Dialect;

    fn connection(&self) -> &Connection {
        &self.connection
    }

    fn path(&self) -> &'static str {
        "messages"
    }

    fn dialect(&self) -> Dialect {
        *self.dialect.lock()
    }

    fn request_body(&self, request: &ModelRequest, dialect: Dialect) -> Value {
        request_body(&self.connection.config, request, dialect)
    }

    fn parser(&self, request: &ModelRequest) -> ResponseParser {
        ResponseParser::new(request.schema.is_some())
    }

    fn adapt(&self, dialect: Dialect, error: &ServerError, body: &Value) -> bool {
        let adapted = dialect.adapt(&error.message, body).filter(|_| error.status == Some(400));
        if let Some(adapted) = adapted {
            *self.dialect.lock() = adapted;
        }
        adapted.is_some()
    }
}

impl Model for AnthropicModel {
    fn name(&self) -> &str {
        &self.connection.config.name
    }

    fn provider_model(&self) -> &str {
        &self.connection.config.model
    }

    fn provider(&self) -> &str {
        "anthropic"
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
}
