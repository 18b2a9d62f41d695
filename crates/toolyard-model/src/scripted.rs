//! A model that says what it was told to, for tests and demonstrations.

use std::sync::{Mutex, PoisonError};

use futures_util::stream;

use crate::{
    FinishReason, Model, ModelError, ModelEvent, ModelReply, ModelRequest, ModelStream, ToolCalling,
};

/// What a scripted model says to a request.
pub type Script = Box<dyn FnMut(&ModelRequest) -> Result<ModelReply, ModelError> + Send>;

/// A model that says what it was told to.
pub struct ScriptedModel {
    name: String,
    calling: ToolCalling,
    script: Mutex<Script>,
    requests: Mutex<Vec<ModelRequest>>,
}

impl ScriptedModel {
    /// A model that answers with whatever this makes of a request.
    pub fn new(
        calling: ToolCalling,
        script: impl FnMut(&ModelRequest) -> Result<ModelReply, ModelError> + Send + 'static,
    ) -> Self {
        Self {
            name: "scripted".to_owned(),
            calling,
            script: Mutex::new(Box::new(script)),
            requests: Mutex::default(),
        }
    }

    /// A model that says these texts one after the other, and the last one for ever.
    pub fn saying(calling: ToolCalling, texts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut texts: std::collections::VecDeque<String> = texts.into_iter().map(Into::into).collect();
        Self::new(calling, move |_| {
            let text = if texts.len() > 1 { texts.pop_front() } else { texts.front().cloned() };
            Ok(ModelReply { text: text.unwrap_or_default(), ..ModelReply::default() })
        })
    }

    /// Everything it was asked so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl std::fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptedModel").field("calling", &self.calling).finish_non_exhaustive()
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn tool_calling(&self) -> ToolCalling {
        self.calling
    }

    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        let said = (self.script.lock().unwrap_or_else(PoisonError::into_inner))(request);
        let events = match said {
            Err(error) => vec![Err(error)],
            Ok(reply) => pieces(reply).into_iter().map(Ok).collect(),
        };
        Box::pin(stream::iter(events))
    }
}

/// A reply as it would be streamed: texts word by word.
fn pieces(reply: ModelReply) -> Vec<ModelEvent> {
    let mut events = Vec::new();
    if !reply.reasoning.is_empty() {
        events.push(ModelEvent::Reasoning(reply.reasoning));
    }
    events.extend(reply.text.split_inclusive(' ').map(|word| ModelEvent::Text(word.to_owned())));
    for (index, call) in reply.calls.into_iter().enumerate() {
        events.push(ModelEvent::ToolCall(crate::ToolCallDelta {
            index,
            id: Some(call.id),
            name: Some(call.name),
            arguments: call.arguments,
        }));
    }
    events.push(ModelEvent::Usage(reply.usage));
    let is_called = matches!(reply.finish, FinishReason::Stop)
        && events.iter().any(|event| matches!(event, ModelEvent::ToolCall(_)));
    events.push(ModelEvent::Finished(if is_called { FinishReason::ToolCalls } else { reply.finish }));
    events
}
