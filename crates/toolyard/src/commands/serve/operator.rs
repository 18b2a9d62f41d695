//! [`OperatorSettings`]: the settings in effect of a running gateway, and what its operator changes over the HTTP API.

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use toolyard_core::{AuditedDecision, BoxFuture, ContentHash};
use toolyard_gateway::{
    AdminError, ImportReport, NewServer, ServerChange, SettingOrigin, SettingValue, SettingsProvider,
    SettingsReport,
};

use crate::{
    cli::ServeArgs,
    commands::{
        import::import_for_api::{self, ImportError},
        servers::operator_changes,
    },
    config::{CliContext, record_decision_by},
    error::CliError,
};

/// The settings in effect. A reload replaces them.
pub(super) struct OperatorSettings {
    loaded: ArcSwap<LoadedSettings>,
    /// The settings of the start, of which some stay in effect.
    initial: SettingsReport,
    /// Held while the settings are changed: of two changes at once, the second must see the file that the first one wrote.
    change: Arc<Mutex<()>>,
    /// Values of the command line, which override the settings files or are added to their lists.
    overrides: Vec<(&'static str, Value)>,
}

/// What was read last.
struct LoadedSettings {
    context: CliContext,
    /// What differs from the start and takes effect after a restart, as [`ReloadReport::needs_restart`](toolyard::ReloadReport)
    /// has it.
    needs_restart: Vec<&'static str>,
}

impl OperatorSettings {
    pub(super) fn new(context: CliContext, arguments: &ServeArgs) -> Result<Self, CliError> {
        let initial = context.settings_report()?;
        let surface = arguments.surface.map(|surface| ("serve.surface", json!(surface)));
        let list = |key, values: &[String]| (!values.is_empty()).then(|| (key, json!(values)));
        let hosts = list("serve.allowed_hosts", &arguments.allow_host);
        let origins = list("serve.allowed_origins", &arguments.allow_origin);
        let overrides = [surface, hosts, origins].into_iter().flatten().collect();
        let loaded = ArcSwap::from_pointee(LoadedSettings { context, needs_restart: Vec::new() });
        Ok(Self { loaded, initial, change: Arc::default(), overrides })
    }

    /// Replaces the settings after a reload.
    pub(super) fn replace(&self, context: CliContext, needs_restart: Vec<&'static str>) {
        self.loaded.store(Arc::new(LoadedSettings { context, needs_restart }));
    }
}

impl fmt::Debug for OperatorSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperatorSettings").finish_non_exhaustive()
    }
}

impl SettingsProvider for OperatorSettings {
    fn settings(&self) -> Result<SettingsReport, AdminError> {
        let loaded = self.loaded.load();
        let report = loaded.context.settings_report();
        let mut report = report.map_err(|error| unreadable(&error.into()))?;
        restore_initial(&mut report, &self.initial, &loaded.needs_restart);
        for (key, value) in &self.overrides {
            if let Some(setting) = report.values.iter_mut().find(|setting| setting.key == *key) {
                override_value(setting, value);
            }
        }
        Ok(report)
    }

    fn importable_servers(&self) -> BoxFuture<'_, Result<ImportReport, AdminError>> {
        let loaded = self.loaded.load_full();
        Box::pin(async move {
            let listed =
                on_blocking_thread(async move { import_for_api::list(&loaded.context).await }).await?;
            listed.map_err(|error| unreadable(&error))
        })
    }

    fn import_servers<'a>(
        &'a self,
        names: &'a [String],
        by: &'a str,
    ) -> BoxFuture<'a, Result<ImportReport, AdminError>> {
        Box::pin(async move {
            let turn = Arc::clone(&self.change).lock_owned().await;
            let loaded = self.loaded.load_full();
            let (names, by) = (names.to_vec(), by.to_owned());
            let import = async move {
                // Until the work is done, also if nobody waits for it any more.
                let _turn = turn;
                import_for_api::import(&names, &by, &loaded.context).await
            };
            on_blocking_thread(import).await?.map_err(|error| match error {
                ImportError::Unknown(name) => AdminError::UnknownServer(name),
                ImportError::Existing(name) => AdminError::ServerExists(name),
                ImportError::Conflicting(name) => AdminError::ServerConflicts(name),
                ImportError::Failed(error) => not_changed(&error),
            })
        })
    }

    fn add_server<'a>(&'a self, server: &'a NewServer, by: &'a str) -> BoxFuture<'a, Result<(), AdminError>> {
        Box::pin(async move {
            let turn = Arc::clone(&self.change).lock_owned().await;
            let loaded = self.loaded.load_full();
            if loaded.context.servers.iter().any(|existing| *existing.id.as_str() == *server.name) {
                return Err(AdminError::ServerExists(server.name.clone()));
            }
            let (server, by) = (server.clone(), by.to_owned());
            let add = async move {
                let _turn = turn;
                operator_changes::add(server, &by, &loaded.context).await
            };
            on_blocking_thread(add).await?.map_err(|error| not_changed(&error))
        })
    }

    fn change_server<'a>(
        &'a self,
        name: &'a str,
        change: ServerChange,
        by: &'a str,
    ) -> BoxFuture<'a, Result<(), AdminError>> {
        Box::pin(async move {
            let turn = Arc::clone(&self.change).lock_owned().await;
            let loaded = self.loaded.load_full();
            let (name, by) = (name.to_owned(), by.to_owned());
            let change = async move {
                let _turn = turn;
                operator_changes::change(&name, change, &by, &loaded.context).await
            };
            on_blocking_thread(change).await?.map_err(|error| not_changed(&error))
        })
    }

    fn record_approval<'a>(
        &'a self,
        tool: &'a str,
        definition: ContentHash,
        by: &'a str,
    ) -> BoxFuture<'a, Result<(), AdminError>> {
        Box::pin(async move {
            let loaded = self.loaded.load_full();
            let decision = AuditedDecision::ApproveDefinition;
            let recorded = record_decision_by(by, decision, tool, definition, &loaded.context).await;
            recorded.map_err(|error| not_changed(&error))
        })
    }
}

fn not_changed(error: &CliError) -> AdminError {
    AdminError::NotChanged { message: error.message().to_owned(), hint: error.hint().map(str::to_owned) }
}

/// Runs work with files on a thread where it may block.
async fn on_blocking_thread<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, AdminError> {
    let runtime = tokio::runtime::Handle::current();
    let done = tokio::task::spawn_blocking(move || runtime.block_on(work)).await;
    done.map_err(|error| AdminError::NotChanged { message: error.to_string(), hint: None })
}

fn unreadable(error: &CliError) -> AdminError {
    AdminError::Unreadable { message: error.message().to_owned(), hint: error.hint().map(str::to_owned) }
}

/// Shows the values of the start for settings that take effect after a restart.
fn restore_initial(report: &mut SettingsReport, initial: &SettingsReport, needs_restart: &[&str]) {
    let waits = |key: &str| needs_restart.iter().any(|name| is_part_of(key, name));
    let find = |values: &[SettingValue], key: &str| values.iter().find(|value| value.key == key).cloned();
    for setting in report.values.iter_mut().filter(|setting| waits(&setting.key)) {
        let before = find(&initial.values, &setting.key);
        // A default may differ by other settings, so that the value is the same and yet another after a restart.
        let is_named = needs_restart.contains(&setting.key.as_str());
        if !is_named && before.as_ref().is_some_and(|before| before == setting) {
            continue;
        }
        let unset = SettingValue {
            value: Value::Null,
            origin: SettingOrigin::Default,
            file: None,
            ..setting.clone()
        };
        *setting = SettingValue { takes_effect_after_restart: true, ..before.unwrap_or(unset) };
    }
    for before in initial.values.iter().filter(|before| waits(&before.key)) {
        if find(&report.values, &before.key).is_none() {
            report.values.push(SettingValue { takes_effect_after_restart: true, ..before.clone() });
        }
    }
    report.values.sort_by(|one, other| one.key.cmp(&other.key));
}

/// Whether a key is the named one, or in the named table.
fn is_part_of(key: &str, name: &str) -> bool {
    key.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Lists of the command line are added to those of the files; other values replace them.
fn override_value(setting: &mut SettingValue, value: &Value) {
    match (&mut setting.value, value) {
        (Value::Array(items), Value::Array(added)) => items.extend(added.iter().cloned()),
        (replaced, value) => *replaced = value.clone(),
    }
    (setting.origin, setting.file) = (SettingOrigin::CommandLine, None);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(values: &[(&str, Value)]) -> SettingsReport {
        let value = |(key, value): &(&str, Value)| SettingValue {
            key: (*key).to_owned(),
            value: value.clone(),
            origin: SettingOrigin::File,
            file: Some("toolyard.toml".to_owned()),
            secret: false,
            takes_effect_after_restart: false,
        };
        SettingsReport { files: Vec::new(), values: values.iter().map(value).collect() }
    }

    #[test]
    fn settings_that_wait_for_a_restart_are_shown_as_they_are_in_effect() {
        let initial = report(&[
            ("serve.drain", json!("1s")),
            ("telemetry.metrics", json!("open")),
            ("telemetry.metrics_token", json!("${A}")),
            ("telemetry.capture_content", json!(true)),
        ]);
        let mut shown = report(&[
            ("serve.drain", json!("3s")),
            ("telemetry.metrics", json!("off")),
            ("telemetry.otlp_endpoint", json!("${B}")),
            ("telemetry.capture_content", json!(true)),
        ]);
        restore_initial(&mut shown, &initial, &["telemetry"]);
        let shown: Vec<_> = shown
            .values
            .iter()
            .map(|value| (value.key.as_str(), value.value.clone(), value.takes_effect_after_restart))
            .collect();
        let expected = [
            ("serve.drain", json!("3s"), false),
            ("telemetry.capture_content", json!(true), false),
            ("telemetry.metrics", json!("open"), true),
            ("telemetry.metrics_token", json!("${A}"), true),
            ("telemetry.otlp_endpoint", Value::Null, true),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn names_of_settings_are_keys_or_tables() {
        assert!(is_part_of("store", "store") && is_part_of("telemetry.metrics", "telemetry"));
        assert!(!is_part_of("store_x", "store") && !is_part_of("telemetry", "telemetry.metrics"));
    }
}
