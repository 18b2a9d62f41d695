//! The OpenAI-compatible client against servers that answer well, badly, slowly, or not at all.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod answers;
mod failures;
mod hostile;
mod server;
mod timing;

use toolyard_model::{ModelError, ModelMessage, ModelReply, ModelRequest, OpenAiConfig, OpenAiModel, reply};

use self::server::Server;

fn config(server: &Server) -> OpenAiConfig {
    OpenAiConfig::new("local", format!("http://{}/v1", server.address), "qwen")
}

fn request() -> ModelRequest {
    ModelRequest { messages: vec![ModelMessage::user("hello")], ..ModelRequest::default() }
}

async fn ask_with(config: OpenAiConfig) -> Result<ModelReply, ModelError> {
    reply(&OpenAiModel::new(config).unwrap(), &request(), |_| {}).await
}

async fn ask(server: &Server) -> Result<ModelReply, ModelError> {
    ask_with(config(server)).await
}
