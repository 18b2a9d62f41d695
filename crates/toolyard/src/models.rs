//! Language models: built from settings on first use, or added by the embedder.

mod provider;

use std::{collections::BTreeMap, fmt, sync::Arc};

use parking_lot::Mutex;
use toolyard_model::{Model, ToolCalling};

use crate::{
    SettingsError,
    models::provider::build_model,
    settings::{ModelSettings, Settings},
};

/// Looks up an environment variable.
type VariableLookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Why a model is not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelsError {
    /// The settings have no model, and the command needs one.
    ///
    /// Remedy: add one: `toolyard models add NAME --url URL --model MODEL`, such as a local Ollama at
    /// `http://127.0.0.1:11434/v1`.
    #[error("no model is configured")]
    NotConfigured,
    /// No model of the settings has this name.
    ///
    /// Remedy: use one of the names in the message, or add it: `toolyard models add NAME --url URL --model
    /// ID`.
    #[error("model `{name}` does not exist; known models: {}", .known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// Names of the models that exist.
        known: Vec<String>,
    },
    /// Several models are configured, and nothing says which to use.
    ///
    /// Remedy: pass `--model NAME`, or set `default_model = "NAME"` in `toolyard.toml`.
    #[error("several models are configured ({}), and no `default_model`", .known.join(", "))]
    NoDefault {
        /// Their names.
        known: Vec<String>,
    },
    /// The model's settings are invalid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

/// The available models. Cheap to clone.
#[derive(Clone)]
pub struct Models {
    settings: Arc<BTreeMap<String, ModelSettings>>,
    default: Option<String>,
    lookup_variable: VariableLookup,
    /// The tool-calling mode that worked best in a test, by model fingerprint.
    tested_modes: Arc<Mutex<BTreeMap<String, ToolCalling>>>,
    added_models: Vec<Arc<dyn Model>>,
}

impl Models {
    /// The models of the settings; `lookup_variable` looks up the environment variables that they reference.
    pub fn new(
        settings: &Settings,
        lookup_variable: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            settings: Arc::new(settings.models.clone()),
            default: settings.default_model.clone(),
            lookup_variable: Arc::new(lookup_variable),
            tested_modes: Arc::default(),
            added_models: Vec::new(),
        }
    }

    /// Adds a model under its own name. The first one added becomes the default.
    pub fn add(&mut self, model: Arc<dyn Model>) {
        self.added_models.push(model);
    }

    /// Records the tool-calling mode that worked best for a model.
    pub fn set_tested_mode(&self, fingerprint: impl Into<String>, mode: ToolCalling) {
        self.tested_modes.lock().insert(fingerprint.into(), mode);
    }

    /// Whether there are no models.
    pub fn is_empty(&self) -> bool {
        self.added_models.is_empty() && self.settings.is_empty()
    }

    /// All names, those of added models first.
    pub fn names(&self) -> Vec<String> {
        let added_names = self.added_models.iter().map(|model| model.name().to_owned());
        added_names.chain(self.settings.keys().cloned()).collect()
    }

    /// The settings of a configured model.
    pub fn settings(&self, name: &str) -> Option<&ModelSettings> {
        self.settings.get(name)
    }

    /// The name of the requested model, or of the default one.
    pub fn resolve_name(&self, name: Option<&str>) -> Result<String, ModelsError> {
        let known = self.names();
        match (name.or(self.default.as_deref()), known.as_slice()) {
            (_, []) => Err(ModelsError::NotConfigured),
            (Some(name), known) if known.iter().any(|one| one == name) => Ok(name.to_owned()),
            (Some(name), _) => Err(ModelsError::Unknown { name: name.to_owned(), known }),
            (None, [first, ..]) if known.len() == 1 || !self.added_models.is_empty() => Ok(first.clone()),
            (None, _) => Err(ModelsError::NoDefault { known }),
        }
    }

    /// How a configured model calls tools: as set, or as tested; `None` if neither is known.
    pub fn tool_calling(&self, settings: &ModelSettings) -> Option<ToolCalling> {
        let tested_mode = || {
            let modes = self.tested_modes.lock();
            modes.get(&settings.fingerprint()).copied()
        };
        settings.tool_calling.mode().or_else(tested_mode)
    }

    /// The model of this name, or the default one.
    pub fn get(&self, name: Option<&str>) -> Result<Arc<dyn Model>, ModelsError> {
        let name = self.resolve_name(name)?;
        if let Some(model) = self.added_models.iter().find(|model| model.name() == name) {
            return Ok(Arc::clone(model));
        }
        let unknown = || ModelsError::Unknown { name: name.clone(), known: self.names() };
        let settings = self.settings.get(&name).ok_or_else(unknown)?;
        let secrets = settings.secrets(&name, &*self.lookup_variable)?;
        Ok(build_model(&name, settings, secrets, self.tool_calling(settings))?)
    }
}

impl Default for Models {
    fn default() -> Self {
        Self::new(&Settings::default(), |_| None)
    }
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models").field("names", &self.names()).finish_non_exhaustive()
    }
}
