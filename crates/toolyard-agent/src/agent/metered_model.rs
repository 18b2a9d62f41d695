//! [`MeteredModel`]: the model of an agent where something else than the agent calls it, on account of the same quotas.

use std::{future::ready, sync::Arc};

use futures_util::{StreamExt as _, stream};
use toolyard_core::CallerIdentity;
use toolyard_model::{
    Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelStream, ToolCalling, Usage,
};

use super::{AgentParts, model_quota::UncountedReply};

/// The model of an agent. Each request is refused if the quotas of the caller and of the agent are used up, and counted by them.
pub(crate) struct MeteredModel {
    parts: Arc<AgentParts>,
    identity: Option<Arc<CallerIdentity>>,
}

impl MeteredModel {
    pub(crate) fn new(parts: &Arc<AgentParts>, identity: Option<Arc<CallerIdentity>>) -> Self {
        Self { parts: Arc::clone(parts), identity }
    }

    fn metered<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        let uncounted = UncountedReply::new(&self.parts, self.identity.as_deref(), request);
        let state = Some((uncounted, self.parts.model.generate(request)));
        Box::pin(stream::unfold(state, |state| async move {
            let (mut uncounted, mut events) = state?;
            match events.next().await {
                Some(Ok(event)) => {
                    uncounted.reply.apply(event.clone());
                    Some((Ok(event), Some((uncounted, events))))
                }
                Some(Err(error)) => uncounted.finish(Err(error)).await.err().map(|error| (Err(error), None)),
                None => {
                    let counted = uncounted.finish(Ok(())).await.ok()?;
                    // With the tokens that were counted here, if the server did not report them.
                    Some((Ok(ModelEvent::Usage(counted.usage)), None))
                }
            }
        }))
    }
}

impl std::fmt::Debug for MeteredModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("MeteredModel").field(&self.parts.model).finish()
    }
}

impl Model for MeteredModel {
    fn name(&self) -> &str {
        self.parts.model.name()
    }

    fn provider_model(&self) -> &str {
        self.parts.model.provider_model()
    }

    fn provider(&self) -> &str {
        self.parts.model.provider()
    }

    fn tool_calling(&self) -> ToolCalling {
        self.parts.model.tool_calling()
    }

    fn cost(&self, usage: &Usage) -> Option<u64> {
        self.parts.model.cost(usage)
    }

    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        let admitted = async move {
            match self.parts.admit_model_use(self.identity.as_deref()).await {
                Ok(()) => self.metered(request),
                Err(exceeded) => {
                    let message = format!("was not called: {exceeded}");
                    let error = ModelError::new(self.name(), ModelErrorKind::Busy, message);
                    Box::pin(stream::once(ready(Err(error)))) as ModelStream<'a>
                }
            }
        };
        Box::pin(stream::once(admitted).flatten())
    }
}
