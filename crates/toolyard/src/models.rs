//! The models of a yard: described in settings, made when they are needed; or made by somebody and given.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use toolyard_model::{Model, ToolCalling};

use crate::{
    SettingsError,
    model_making::made,
    settings::{ModelSettings, Settings},
};

/// Looks a variable up.
type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Why there is no model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelsError {
    /// None is described.
    #[error("no model is configured")]
    None,
    /// None has this name.
    #[error("model `{name}` does not exist; there are {}", .known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// Those that exist.
        known: Vec<String>,
    },
    /// Nobody said which.
    #[error("there are several models ({}) and no `default_model`", .known.join(", "))]
    Several {
        /// Those that exist.
        known: Vec<String>,
    },
    /// It is described wrongly.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

/// The models of a yard. Cheap to clone.
#[derive(Clone)]
pub struct Models {
    described: Arc<BTreeMap<String, ModelSettings>>,
    default: Option<String>,
    variables: Variables,
    /// How models were found to call tools best, by their fingerprints.
    found_best: Arc<Mutex<BTreeMap<String, ToolCalling>>>,
    given: Vec<Arc<dyn Model>>,
}

impl Models {
    /// The models that settings describe; `variables` looks up what they refer to.
    pub fn new(
        settings: &Settings,
        variables: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            described: Arc::new(settings.models.clone()),
            default: settings.default_model.clone(),
            variables: Arc::new(variables),
            found_best: Arc::default(),
            given: Vec::new(),
        }
    }

    /// One more, under its own name. The first one given is used where nobody names one.
    pub fn give(&mut self, model: Arc<dyn Model>) {
        self.given.push(model);
    }

    /// How a model was found to call tools best.
    pub fn note_best(&self, fingerprint: impl Into<String>, calling: ToolCalling) {
        self.found_best.lock().unwrap_or_else(PoisonError::into_inner).insert(fingerprint.into(), calling);
    }

    /// Whether there is any.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty() && self.described.is_empty()
    }

    /// All names, the given ones first.
    pub fn names(&self) -> Vec<String> {
        let given = self.given.iter().map(|model| model.name().to_owned());
        given.chain(self.described.keys().cloned()).collect()
    }

    /// The settings of one that is described.
    pub fn described(&self, name: &str) -> Option<&ModelSettings> {
        self.described.get(name)
    }

    /// The name that is meant where somebody names one or none.
    pub fn meant(&self, name: Option<&str>) -> Result<String, ModelsError> {
        let known = self.names();
        match (name.or(self.default.as_deref()), known.as_slice()) {
            (_, []) => Err(ModelsError::None),
            (Some(name), known) if known.iter().any(|one| one == name) => Ok(name.to_owned()),
            (Some(name), _) => Err(ModelsError::Unknown { name: name.to_owned(), known }),
            (None, [first, ..]) if known.len() == 1 || !self.given.is_empty() => Ok(first.clone()),
            (None, _) => Err(ModelsError::Several { known }),
        }
    }

    /// How a model that is described calls tools: as its settings say, or as it was found best; none where neither is known.
    pub fn tool_calling(&self, settings: &ModelSettings) -> Option<ToolCalling> {
        let found = || {
            let found = self.found_best.lock().unwrap_or_else(PoisonError::into_inner);
            found.get(&settings.fingerprint()).copied()
        };
        settings.tool_calling.chosen().or_else(found)
    }

    /// The model of this name, or the one that is used where nobody names one.
    pub fn get(&self, name: Option<&str>) -> Result<Arc<dyn Model>, ModelsError> {
        let name = self.meant(name)?;
        if let Some(model) = self.given.iter().find(|model| model.name() == name) {
            return Ok(Arc::clone(model));
        }
        let unknown = || ModelsError::Unknown { name: name.clone(), known: self.names() };
        let settings = self.described.get(&name).ok_or_else(unknown)?;
        let secrets = settings.secrets(&name, &*self.variables)?;
        Ok(made(&name, settings, secrets, self.tool_calling(settings))?)
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
