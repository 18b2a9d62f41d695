//! What a language model is here: something that answers a request with a stream of events.

use std::{fmt, pin::Pin};

use futures_util::{Stream, StreamExt as _};
use serde::{Deserialize, Serialize};

use crate::{ModelError, ModelEvent, ModelReply, ModelRequest, Usage};

/// What a model says, as it says it. It ends after [`ModelEvent::Finished`] or with the first error; dropping it ends the
/// request.
pub type ModelStream<'a> = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send + 'a>>;

/// A language model.
pub trait Model: Send + Sync + fmt::Debug {
    /// The name under which its operator knows it.
    fn name(&self) -> &str;

    /// How it is best let to call tools, as configured or probed.
    fn tool_calling(&self) -> ToolCalling;

    /// What this usage costs, in millionths of the operator's currency; 0 where nothing is known of prices.
    fn cost(&self, usage: &Usage) -> u64 {
        let _ = usage;
        0
    }

    /// Asks it.
    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a>;
}

/// How a model calls tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCalling {
    /// By fields of the protocol that are made for it.
    Native,
    /// In its text: `<tool_call>{…}</tool_call>`, and whatever else models write.
    #[default]
    Text,
    /// As JSON that is held to a schema while it is written.
    Schema,
}

/// Asks and waits for the whole reply; everything on the way is shown to `see`.
pub async fn reply(
    model: &dyn Model,
    request: &ModelRequest,
    mut see: impl FnMut(&ModelEvent),
) -> Result<ModelReply, ModelError> {
    let mut stream = model.generate(request);
    let mut reply = ModelReply::default();
    while let Some(event) = stream.next().await {
        let event = event?;
        see(&event);
        reply.take(event);
    }
    Ok(reply)
}
