//! Settings in the store: read as the lowest layer of settings, followed by running gateways.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use toolyard::{Settings, settings::SettingsLayer};
use toolyard_core::StoredSettings as _;
use toolyard_store::Store;

use crate::error::CliError;

/// How often a running gateway asks for a new version.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// A version that could not be applied is tried again after this time: the reason may have been another one.
const RETRY_INTERVAL: Duration = Duration::from_mins(1);

/// The settings in the store that are in effect.
#[derive(Debug, Default)]
pub(super) struct StoredLayer {
    pub(super) layer: SettingsLayer,
    /// 0 if nothing was ever stored; none if settings in the store are not used.
    pub(super) version: Option<i64>,
}

impl StoredLayer {
    /// Nothing, also if the operator's settings ask for those in the store.
    pub(super) fn ignored(operator: &Settings) -> Self {
        Self { version: operator.stored_settings.then_some(0), ..Self::default() }
    }

    /// Reads them if the operator's settings say so.
    pub(super) async fn read(operator: &Settings, store: Option<&Store>) -> Result<Self, CliError> {
        if !operator.stored_settings {
            return Ok(Self::default());
        }
        let Some(store) = store else {
            return Err(CliError::failed("`stored_settings = true` needs a store, and there is none")
                .with_hint("set `store` in toolyard.toml, or make the data folder writable"));
        };
        let latest = store.latest_settings().await.map_err(|error| {
            CliError::failed(format!("failed to read the settings in the store: {error}"))
                .with_hint("check it: toolyard store check")
        })?;
        match latest {
            Some(latest) => {
                let layer = SettingsLayer::parse_stored(&latest.text, latest.number).map_err(|error| {
                    CliError::usage(error.to_string())
                        .with_hint("correct them: toolyard settings store FILE, or go back: toolyard settings restore VERSION")
                })?;
                Ok(Self { layer, version: Some(latest.number) })
            }
            None => Ok(Self { version: Some(0), ..Self::default() }),
        }
    }
}

/// Waits for new versions of the settings in the store.
#[derive(Debug, Default)]
pub(crate) struct StoredSettingsWatch {
    /// A version that could not be applied, and when.
    failed: Option<(i64, Instant)>,
}

impl StoredSettingsWatch {
    /// Waits until another version than this one is in effect in the store; for ever without one. A store that is away delays only.
    pub(crate) async fn changed(&self, store: Option<&Store>, version: Option<i64>) -> i64 {
        let (Some(store), Some(version)) = (store, version) else { return std::future::pending().await };
        loop {
            sleep(POLL_INTERVAL).await;
            let Ok(latest) = store.latest_settings_number().await else { continue };
            let has_failed =
                self.failed.is_some_and(|(failed, at)| failed == latest && at.elapsed() < RETRY_INTERVAL);
            if latest != version && !has_failed {
                return latest;
            }
        }
    }

    /// Notes that a version could not be applied.
    pub(crate) fn note_failure(&mut self, version: i64) {
        self.failed = Some((version, Instant::now()));
    }
}
