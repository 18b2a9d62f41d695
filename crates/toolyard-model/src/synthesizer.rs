//! Merges several tool results for the hub with a model.

use std::sync::Arc;

use toolyard_core::{BoxFuture, SynthesisError, SynthesisRequest, Synthesizer};

use crate::{Model, ModelMessage, ModelRequest, collect_observed_reply};

/// Enough for a few paragraphs.
const MAX_SYNTHESIS_TOKENS: u32 = 1_024;

/// A [`Synthesizer`] backed by a model. The hub limits its duration.
#[derive(Debug, Clone)]
pub struct ModelSynthesizer {
    model: Arc<dyn Model>,
}

impl ModelSynthesizer {
    /// Uses this model.
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self { model }
    }
}

impl Synthesizer for ModelSynthesizer {
    fn synthesize<'a>(
        &'a self,
        request: &'a SynthesisRequest,
    ) -> BoxFuture<'a, Result<String, SynthesisError>> {
        Box::pin(async move {
            let SynthesisRequest { prompt, span, telemetry, .. } = request;
            let request = ModelRequest {
                messages: vec![ModelMessage::user(prompt)],
                max_tokens: Some(MAX_SYNTHESIS_TOKENS),
                temperature: Some(0.0),
                ..ModelRequest::default()
            };
            let model = self.model.as_ref();
            let reply = collect_observed_reply(model, &request, telemetry.as_ref(), *span, |_| {})
                .await
                .map_err(|error| SynthesisError(error.to_string()))?;
            // Tool calls in the reply are ignored.
            let text = reply.text.trim();
            if text.is_empty() {
                return Err(SynthesisError(format!("model `{}` returned an empty reply", self.model.name())));
            }
            Ok(text.to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use toolyard_core::telemetry::{OperationKind, RecordingTelemetry, SpanContext};

    use super::*;
    use crate::{ModelError, ModelErrorKind, ScriptedModel, ToolCalling};

    fn request() -> SynthesisRequest {
        SynthesisRequest {
            subject: "search".into(),
            inputs: Vec::new(),
            prompt: "Put these together: …".into(),
            span: None,
            telemetry: None,
        }
    }

    #[tokio::test]
    async fn a_synthesis_is_reported_as_a_model_call_of_the_tool_call() {
        let recorder = Arc::new(RecordingTelemetry::default());
        let parent = SpanContext::root();
        let request =
            SynthesisRequest { span: Some(parent), telemetry: Some(Arc::clone(&recorder) as _), ..request() };
        let model = Arc::new(ScriptedModel::with_replies(ToolCalling::Text, ["Both agree."]));
        ModelSynthesizer::new(model).synthesize(&request).await.unwrap();
        let [operation] = recorder.take().try_into().unwrap();
        assert_eq!(operation.span.unwrap().parent, Some(parent));
        assert!(matches!(operation.kind, OperationKind::ModelCall { .. }), "{operation:?}");
    }

    #[tokio::test]
    async fn the_models_reply_to_the_prompt_is_the_synthesis() {
        let model = Arc::new(ScriptedModel::with_replies(ToolCalling::Text, ["\n Both agree. \n"]));
        let synthesizer = ModelSynthesizer::new(Arc::clone(&model) as Arc<dyn Model>);
        assert_eq!(synthesizer.synthesize(&request()).await.unwrap(), "Both agree.");
        assert_eq!(model.requests()[0].messages, [ModelMessage::user("Put these together: …")]);
    }

    #[tokio::test]
    async fn an_empty_reply_and_a_failure_are_errors() {
        let silent = ModelSynthesizer::new(Arc::new(ScriptedModel::with_replies(ToolCalling::Text, [" "])));
        assert!(silent.synthesize(&request()).await.unwrap_err().to_string().contains("empty reply"));
        let broken = ScriptedModel::new(ToolCalling::Text, |_| {
            Err(ModelError::new("scripted", ModelErrorKind::Busy, "is busy"))
        });
        let broken = ModelSynthesizer::new(Arc::new(broken));
        assert!(
            broken
                .synthesize(&request())
                .await
                .unwrap_err()
                .to_string()
                .ends_with("model `scripted` is busy")
        );
    }
}
