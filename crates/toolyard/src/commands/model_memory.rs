//! How models were found to call tools best, remembered in a small file.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};
use toolyard::Models;
use toolyard_model::ToolCalling;

use crate::{
    failure::{Code, Failure},
    files,
    folders::Workplace,
};

/// What is remembered, by fingerprints of models' settings.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Memory {
    #[serde(default)]
    best: BTreeMap<String, ToolCalling>,
}

fn file(workplace: &Workplace) -> PathBuf {
    workplace.data_folder.join("models.json")
}

impl Memory {
    /// What is remembered; what cannot be read is found out anew.
    pub(super) fn read(workplace: &Workplace) -> Self {
        let text = std::fs::read_to_string(file(workplace)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Remembers what was found.
    pub(super) fn remember(
        &mut self,
        fingerprint: String,
        calling: ToolCalling,
        workplace: &Workplace,
    ) -> Result<(), Failure> {
        self.best.insert(fingerprint, calling);
        let (file, text) = (file(workplace), serde_json::to_string_pretty(self).unwrap_or_default());
        files::write(&file, &format!("{text}\n"), files::Readers::Usual).map_err(|error| {
            Failure::new(Code::Failed, format!("failed to write {}: {error}", file.display()))
        })
    }
}

/// The models of the settings, with what is remembered of them.
pub(super) fn models(workplace: &Workplace) -> Models {
    let models = Models::new(&workplace.settings, |name| std::env::var(name).ok());
    for (fingerprint, calling) in Memory::read(workplace).best {
        models.note_best(fingerprint, calling);
    }
    models
}
