//! [`SettingsDocument`]: the settings that a command edits, in the operator's file or in the store.

use std::{fmt, path::PathBuf};

use serde_json::{Value, json};
use toolyard::settings::SettingsLayer;
use toolyard_core::StoredSettings as _;

use super::{CliContext, decisions::current_user, operator_file};
use crate::error::CliError;

/// Where settings are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SettingsPlace {
    /// The operator's file.
    File(PathBuf),
    /// The store, with the number of the version; 0 if nothing was ever stored.
    Store { version: i64 },
}

impl fmt::Display for SettingsPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => file.display().fmt(f),
            Self::Store { version } => write!(f, "settings in the store, version {version}"),
        }
    }
}

impl SettingsPlace {
    /// Adds it to the data that a command prints.
    pub(crate) fn describe(&self, data: &mut Value) {
        match self {
            Self::File(file) => data["file"] = json!(file),
            Self::Store { version } => data["version"] = json!(version),
        }
    }
}

/// Settings as text, and where they are.
#[derive(Debug)]
pub(crate) struct SettingsDocument {
    pub(crate) place: SettingsPlace,
    pub(crate) text: String,
}

impl SettingsDocument {
    /// The operator's file, or the settings in the store; empty if there are none.
    pub(crate) async fn read(is_stored: bool, context: &CliContext) -> Result<Self, CliError> {
        if !is_stored {
            let (file, text) = operator_file::read(context)?;
            return Ok(Self { place: SettingsPlace::File(file), text });
        }
        let latest = context.require_operator_store()?.latest_settings().await.map_err(CliError::store)?;
        let (version, text) = latest.map_or((0, String::new()), |latest| (latest.number, latest.text));
        Ok(Self { place: SettingsPlace::Store { version }, text })
    }

    /// Replaces the text, and records the change, such as `server x added`, in the audit log. Running gateways take it over. Returns
    /// where the new text is.
    pub(crate) async fn replace(
        self,
        text: &str,
        change: &str,
        context: &CliContext,
    ) -> Result<SettingsPlace, CliError> {
        self.replace_by(&current_user(), text, change, context).await
    }

    /// Like [`Self::replace`], for somebody else than the user of this command.
    pub(crate) async fn replace_by(
        self,
        changed_by: &str,
        text: &str,
        change: &str,
        context: &CliContext,
    ) -> Result<SettingsPlace, CliError> {
        let version = match self.place {
            SettingsPlace::File(file) => {
                operator_file::write_by(changed_by, &file, text, change, context).await?;
                return Ok(SettingsPlace::File(file));
            }
            SettingsPlace::Store { version } => version,
        };
        SettingsLayer::parse_stored(text, version.saturating_add(1))?;
        let store = context.require_operator_store()?;
        let added = store.add_settings_version(version, text, change, changed_by).await;
        match added.map_err(CliError::store)? {
            Some(version) => Ok(SettingsPlace::Store { version }),
            None => Err(CliError::failed("somebody else changed the settings in the store meanwhile")
                .with_hint("try again; see what changed: toolyard settings history")),
        }
    }
}
