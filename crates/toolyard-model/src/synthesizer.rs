//! Merges several tool results for the hub with a model.

use std::sync::Arc;

use toolyard_core::{BoxFuture, SynthesisError, SynthesisRequest, Synthesizer};

use crate::{Model, ModelMessage, ModelRequest, collect_reply};

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
            let request = ModelRequest {
                messages: vec![ModelMessage::user(&request.prompt)],
                max_tokens: Some(MAX_SYNTHESIS_TOKENS),
                temperature: Some(0.0),
                ..ModelRequest::default()
            };
            let reply = collect_reply(self.model.as_ref(), &request, |_| {})
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
    use super::*;
    use crate::{ModelError, ModelErrorKind, ScriptedModel, ToolCalling};

    fn request() -> SynthesisRequest {
        SynthesisRequest {
            subject: "search".into(),
            inputs: Vec::new(),
            prompt: "Put these together: …".into(),
        }
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
