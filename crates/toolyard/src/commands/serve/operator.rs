//! [`OperatorSettings`]: the settings in effect of a running gateway, and what its operator changes over the HTTP API.

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;
use serde_json::{Value, json};
use toolyard::{
    core::BoxFuture,
    gateway::{AdminError, ImportReport, SettingOrigin, SettingValue, SettingsProvider, SettingsReport},
};

use crate::{cli::ServeArgs, commands::import::selected, config::CliContext, error::CliError};

/// The settings in effect. A reload replaces them.
pub(super) struct OperatorSettings {
    context: ArcSwap<CliContext>,
    /// Values of the command line, which override the settings files or are added to their lists.
    overrides: Vec<(&'static str, Value)>,
}

impl OperatorSettings {
    pub(super) fn new(context: CliContext, arguments: &ServeArgs) -> Self {
        let surface = arguments.surface.map(|surface| ("serve.surface", json!(surface)));
        let list = |key, values: &[String]| (!values.is_empty()).then(|| (key, json!(values)));
        let hosts = list("serve.allowed_hosts", &arguments.allow_host);
        let origins = list("serve.allowed_origins", &arguments.allow_origin);
        let overrides = [surface, hosts, origins].into_iter().flatten().collect();
        Self { context: ArcSwap::from_pointee(context), overrides }
    }

    /// Replaces the settings after a reload.
    pub(super) fn replace(&self, context: CliContext) {
        self.context.store(Arc::new(context));
    }
}

impl fmt::Debug for OperatorSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperatorSettings").finish_non_exhaustive()
    }
}

impl SettingsProvider for OperatorSettings {
    fn settings(&self) -> SettingsReport {
        // The same files were merged when they were loaded.
        let mut report = self.context.load().settings_report().unwrap_or_default();
        for (key, value) in &self.overrides {
            if let Some(setting) = report.values.iter_mut().find(|setting| setting.key == *key) {
                override_value(setting, value);
            }
        }
        report
    }

    fn importable_servers(&self) -> BoxFuture<'_, Result<ImportReport, AdminError>> {
        Box::pin(async move { selected::list(&self.context.load_full()).await.map_err(not_changed) })
    }

    fn import_servers<'a>(&'a self, names: &'a [String]) -> BoxFuture<'a, Result<ImportReport, AdminError>> {
        Box::pin(async move {
            let imported = selected::import(names, &self.context.load_full()).await.map_err(not_changed)?;
            imported.map_err(AdminError::UnknownServer)
        })
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that `map_err` needs")]
fn not_changed(error: CliError) -> AdminError {
    AdminError::NotChanged(error.message().to_owned())
}

/// Lists of the command line are added to those of the files; other values replace them.
fn override_value(setting: &mut SettingValue, value: &Value) {
    match (&mut setting.value, value) {
        (Value::Array(items), Value::Array(added)) => items.extend(added.iter().cloned()),
        (replaced, value) => *replaced = value.clone(),
    }
    (setting.origin, setting.file) = (SettingOrigin::CommandLine, None);
}
