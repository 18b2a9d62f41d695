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
    /// The modes that worked best.
    #[serde(default)]
    best: BTreeMap<String, ToolCalling>,
}

fn file(context: &CliContext) -> PathBuf {
    context.data_folder.join("models.json")
}

impl ToolCallingCache {
    /// Reads the cache; an unreadable one counts as empty.
    pub(crate) fn read(context: &CliContext) -> Self {
        files::read_cache(&file(context))
    }

    /// Records the mode of a model and writes the cache.
    pub(crate) fn record(
        &mut self,
        fingerprint: String,
        mode: ToolCalling,
        context: &CliContext,
    ) -> Result<(), CliError> {
        self.best.insert(fingerprint, mode);
        files::write_json(&file(context), self, files::Access::Default)
    }
}

/// The models of the settings, with their cached modes.
pub(crate) fn load_models(context: &CliContext) -> Models {
    let models = Models::new(&context.settings, |name| std::env::var(name).ok());
    for (fingerprint, mode) in ToolCallingCache::read(context).best {
        models.set_tested_mode(fingerprint, mode);
    }
    models
}
