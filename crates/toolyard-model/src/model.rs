//! The trait [`Model`] and how a model calls tools.

use std::{fmt, pin::Pin, sync::Arc};

use futures_util::{Stream, StreamExt as _};
use serde::{Deserialize, Serialize};
use toolyard_core::Embedder;

use crate::{ModelError, ModelEvent, ModelReply, ModelRequest, Usage};

/// The events of one reply. The stream ends after [`ModelEvent::Finished`] or the first error. Dropping it cancels the
/// request.
pub type ModelStream<'a> = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send + 'a>>;

/// A language model.
pub trait Model: Send + Sync + fmt::Debug {
    /// The name of the model in the operator's settings.
    fn name(&self) -> &str;

    /// The name of the model at its provider.
    fn provider_model(&self) -> &str {
        self.name()
    }

    /// The provider or protocol, such as `openai`.
    fn provider(&self) -> &str {
        "unknown"
    }

    /// How the model calls tools, as configured or probed.
    fn tool_calling(&self) -> ToolCalling;

    /// The cost of this usage in millionths of the operator's currency; `None` if no prices are known.
    fn cost(&self, usage: &Usage) -> Option<u64> {
        let _ = usage;
        None
    }

    /// Starts a reply to the request.
    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a>;

    /// The model as what computes embeddings; `None` if it does not.
    fn embedder(self: Arc<Self>) -> Option<Arc<dyn Embedder>> {
        None
    }
}

/// A shared model, so that a program may keep a handle to the one it passes on.
impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn provider_model(&self) -> &str {
        (**self).provider_model()
    }

    fn provider(&self) -> &str {
        (**self).provider()
    }

    fn tool_calling(&self) -> ToolCalling {
        (**self).tool_calling()
    }

    fn cost(&self, usage: &Usage) -> Option<u64> {
        (**self).cost(usage)
    }

    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        (**self).generate(request)
    }

    fn embedder(self: Arc<Self>) -> Option<Arc<dyn Embedder>> {
        Self::clone(&self).embedder()
    }
}

/// How a model calls tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCalling {
    /// Through the tool-call fields of the provider's protocol.
    Native,
    /// In its text: `<tool_call>{…}</tool_call>`, see [`tool_call_parser`](crate::tool_call_parser).
    #[default]
    Text,
    /// As JSON that the server constrains to a schema.
    Schema,
}

/// Waits for the whole reply and passes each event to `on_event` as it arrives.
pub async fn collect_reply(
    model: &dyn Model,
    request: &ModelRequest,
    mut on_event: impl FnMut(&ModelEvent),
) -> Result<ModelReply, ModelError> {
    let mut stream = model.generate(request);
    let mut reply = ModelReply::default();
    while let Some(event) = stream.next().await {
        let event = event?;
        on_event(&event);
        reply.apply(event);
    }
    Ok(reply)
}
