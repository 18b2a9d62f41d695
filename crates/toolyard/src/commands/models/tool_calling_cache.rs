//! The tool-calling modes that `toolyard models test` found to work best, cached in a file.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};
use toolyard::Models;
use toolyard_model::ToolCalling;

use crate::{
    config::{CliContext, files},
    error::CliError,
};

/// Tool-calling modes by model fingerprint.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ToolCallingCache {
    #[serde(default)]
    best: BTreeMap<String, ToolCalling>,
}

fn file(context: &CliContext) -> PathBuf {
    context.data_folder.join("models.json")
}

impl ToolCallingCache {
    /// Reads the cache; an unreadable one counts as empty.
    pub(crate) fn read(context: &CliContext) -> Self {
        let text = std::fs::read_to_string(file(context)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Records the mode of a model and writes the cache.
    pub(crate) fn record(
        &mut self,
        fingerprint: String,
        calling: ToolCalling,
        context: &CliContext,
    ) -> Result<(), CliError> {
        self.best.insert(fingerprint, calling);
        let (file, text) = (file(context), serde_json::to_string_pretty(self).unwrap_or_default());
        files::write(&file, &format!("{text}\n"), files::Access::Default)
            .map_err(|error| CliError::file("write", &file, error))
    }
}

/// The models of the settings, with their cached modes.
pub(crate) fn models(context: &CliContext) -> Models {
    let models = Models::new(&context.settings, |name| std::env::var(name).ok());
    for (fingerprint, calling) in ToolCallingCache::read(context).best {
        models.set_tested_mode(fingerprint, calling);
    }
    models
}
