//! A model for tests and demonstrations, with scripted replies.

use std::{collections::VecDeque, fmt};

use futures_util::stream;
use parking_lot::Mutex;

use crate::{
    FinishReason, Model, ModelError, ModelEvent, ModelReply, ModelRequest, ModelStream, ToolCallDelta,
    ToolCalling,
};

type Script = Box<dyn FnMut(&ModelRequest) -> Result<ModelReply, ModelError> + Send>;

/// A model with scripted replies. Its name is `scripted`.
pub struct ScriptedModel {
    tool_calling: ToolCalling,
    script: Mutex<Script>,
    requests: Mutex<Vec<ModelRequest>>,
}

impl ScriptedModel {
    /// A model whose replies `script` computes from the requests.
    pub fn new(
        tool_calling: ToolCalling,
        script: impl FnMut(&ModelRequest) -> Result<ModelReply, ModelError> + Send + 'static,
    ) -> Self {
        Self { tool_calling, script: Mutex::new(Box::new(script)), requests: Mutex::default() }
    }

    /// A model that replies with these texts in order, and repeats the last one.
    pub fn with_replies(
        tool_calling: ToolCalling,
        texts: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let mut texts: VecDeque<String> = texts.into_iter().map(Into::into).collect();
        Self::new(tool_calling, move |_| {
            let text = if texts.len() > 1 { texts.pop_front() } else { texts.front().cloned() };
            Ok(ModelReply { text: text.unwrap_or_default(), ..ModelReply::default() })
        })
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().clone()
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedModel").field("tool_calling", &self.tool_calling).finish_non_exhaustive()
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        "scripted"
    }

    fn tool_calling(&self) -> ToolCalling {
        self.tool_calling
    }

    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        self.requests.lock().push(request.clone());
        let outcome = (self.script.lock())(request);
        let events = match outcome {
            Err(error) => vec![Err(error)],
            Ok(reply) => into_events(reply).into_iter().map(Ok).collect(),
        };
        Box::pin(stream::iter(events))
    }
}

/// The events of a streamed reply, with the text word by word.
fn into_events(reply: ModelReply) -> Vec<ModelEvent> {
    let mut events = Vec::new();
    if !reply.reasoning.is_empty() {
        events.push(ModelEvent::Reasoning(reply.reasoning));
    }
    events.extend(reply.text.split_inclusive(' ').map(|word| ModelEvent::Text(word.to_owned())));
    let has_calls = !reply.calls.is_empty();
    events.extend(reply.calls.into_iter().enumerate().map(|(index, call)| {
        let (id, name) = (Some(call.id), Some(call.name));
        ModelEvent::ToolCall(ToolCallDelta { index, id, name, arguments: call.arguments })
    }));
    events.push(ModelEvent::Usage(reply.usage));
    events.push(ModelEvent::Finished(match reply.finish_reason {
        FinishReason::Stop if has_calls => FinishReason::ToolCalls,
        reason => reason,
    }));
    events
}
