//! Lets a model put several answers together for the hub.

use std::sync::Arc;

use toolyard_core::{BoxFuture, SynthesisError, SynthesisRequest, Synthesizer};

use crate::{Model, ModelMessage, ModelRequest, reply};

/// A synthesis is a few paragraphs; a model that does not end is ended.
const LONGEST: u32 = 1_024;

/// Lets a model put several answers together. How long it may take is the hub's business.
#[derive(Debug, Clone)]
pub struct ModelSynthesizer {
    model: Arc<dyn Model>,
}

impl ModelSynthesizer {
    /// Asks this model.
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
            let asked = ModelRequest {
                messages: vec![ModelMessage::user(&request.prompt)],
                max_tokens: Some(LONGEST),
                temperature: Some(0.0),
                ..ModelRequest::default()
            };
            let said = reply(self.model.as_ref(), &asked, |_| {})
                .await
                .map_err(|error| SynthesisError(error.to_string()))?;
            // Calls would be noise here, and nobody makes them.
            let text = said.text.trim();
            if text.is_empty() {
                return Err(SynthesisError(format!("model {} said nothing", self.model.name())));
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
            pieces: Vec::new(),
            prompt: "Put these together: …".into(),
        }
    }

    #[tokio::test]
    async fn the_model_is_given_the_hubs_prompt_and_its_text_is_the_synthesis() {
        let model = Arc::new(ScriptedModel::saying(ToolCalling::Text, ["\n Both agree. \n"]));
        let synthesizer = ModelSynthesizer::new(Arc::clone(&model) as Arc<dyn Model>);
        assert_eq!(synthesizer.synthesize(&request()).await.unwrap(), "Both agree.");
        assert_eq!(model.requests()[0].messages, [ModelMessage::user("Put these together: …")]);
    }

    #[tokio::test]
    async fn silence_and_failure_are_errors() {
        let silent = ModelSynthesizer::new(Arc::new(ScriptedModel::saying(ToolCalling::Text, [" "])));
        assert!(silent.synthesize(&request()).await.unwrap_err().to_string().contains("said nothing"));
        let broken = ScriptedModel::new(ToolCalling::Text, |_| {
            Err(ModelError::new("scripted", ModelErrorKind::Busy, "is busy"))
        });
        let broken = ModelSynthesizer::new(Arc::new(broken));
        assert!(
            broken.synthesize(&request()).await.unwrap_err().to_string().ends_with("model scripted is busy")
        );
    }
}
