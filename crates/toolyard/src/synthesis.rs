//! The default model as the hub's synthesizer.

use std::sync::{Arc, OnceLock};

use toolyard_core::{BoxFuture, SynthesisError, SynthesisRequest, Synthesizer};
use toolyard_model::ModelSynthesizer;

use crate::{Models, settings::SynthesisSetting};

/// What combines the outputs of several sources; `None` if that is switched off or no model is configured.
pub(crate) fn synthesizer(setting: SynthesisSetting, models: &Models) -> Option<Arc<dyn Synthesizer>> {
    if setting == SynthesisSetting::Merge || models.is_empty() {
        return None;
    }
    Some(Arc::new(DefaultModelSynthesizer { models: models.clone(), model: OnceLock::new() }))
}

/// Builds the default model when it is first needed: most processes never combine outputs, and an HTTP client costs
/// start-up time.
#[derive(Debug)]
struct DefaultModelSynthesizer {
    models: Models,
    model: OnceLock<ModelSynthesizer>,
}

impl DefaultModelSynthesizer {
    fn model(&self) -> Result<&ModelSynthesizer, SynthesisError> {
        if let Some(model) = self.model.get() {
            return Ok(model);
        }
        let model = self.models.get(None).map_err(|error| SynthesisError(error.to_string()))?;
        Ok(self.model.get_or_init(|| ModelSynthesizer::new(model)))
    }
}

impl Synthesizer for DefaultModelSynthesizer {
    fn synthesize<'a>(
        &'a self,
        request: &'a SynthesisRequest,
    ) -> BoxFuture<'a, Result<String, SynthesisError>> {
        Box::pin(async move { self.model()?.synthesize(request).await })
    }
}
