//! The OpenAI-compatible client with servers that reply in many formats, fail, misbehave or are slow.

mod failures;
mod hostile;
mod replies;
pub(crate) mod server;
mod timing;

use toolyard_model::{
    ModelError, ModelMessage, ModelReply, ModelRequest, ModelServerConfig, OpenAiModel, collect_reply,
};

use self::server::Server;

fn config(server: &Server) -> ModelServerConfig {
    ModelServerConfig::new("local", format!("http://{}/v1", server.address), "qwen")
}

fn request() -> ModelRequest {
    ModelRequest { messages: vec![ModelMessage::user("hello")], ..ModelRequest::default() }
}

async fn send_with(config: ModelServerConfig) -> Result<ModelReply, ModelError> {
    collect_reply(&OpenAiModel::new(config).unwrap(), &request(), |_| {}).await
}

async fn send(server: &Server) -> Result<ModelReply, ModelError> {
    send_with(config(server)).await
}
