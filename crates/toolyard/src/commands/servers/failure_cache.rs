//! Recent failures of servers, cached in a file, so that commands do not wait for a slow server again and again.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use toolyard_core::unix_millis;
use toolyard_mcp_client::config::McpServerConfig;

use crate::config::{CliContext, files};

/// How long a server that failed slowly is skipped.
const SKIP_PERIOD: Duration = Duration::from_mins(10);
/// A server that fails faster is tried every time.
const SLOW_FAILURE_THRESHOLD: Duration = Duration::from_secs(2);
/// How long a failure is reported.
const REPORT_PERIOD: Duration = Duration::from_hours(24);
const MAX_REASON_BYTES: usize = 2_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerFailure {
    /// When, in milliseconds since 1970.
    pub(crate) at: u64,
    /// How long the attempt took, in milliseconds.
    duration: u64,
    /// Why, redacted.
    pub(crate) reason: String,
}

impl ServerFailure {
    pub(crate) fn new(reason: &str, duration: Duration) -> Self {
        let mut reason = toolyard_core::redact(reason).into_owned();
        reason.truncate(reason.floor_char_boundary(MAX_REASON_BYTES));
        Self { at: now(), duration: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX), reason }
    }

    pub(crate) fn is_skipped(&self) -> bool {
        self.is_skipped_at(now())
    }

    fn is_skipped_at(&self, now: u64) -> bool {
        // `None`: the clock was set back.
        let age = now.checked_sub(self.at).map(Duration::from_millis);
        Duration::from_millis(self.duration) >= SLOW_FAILURE_THRESHOLD
            && age.is_some_and(|age| age < SKIP_PERIOD)
    }

    fn is_retained_at(&self, now: u64) -> bool {
        now.checked_sub(self.at).is_some_and(|age| Duration::from_millis(age) < REPORT_PERIOD)
    }

    /// `5 min ago`.
    pub(crate) fn ago(&self) -> String {
        match now().saturating_sub(self.at) / 60_000 {
            0 => "less than a minute ago".to_owned(),
            minutes @ 1..=119 => format!("{minutes} min ago"),
            minutes => format!("{} h ago", minutes / 60),
        }
    }
}

/// Failures by server label, which includes the configuration's fingerprint: a changed server starts anew.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ServerFailures {
    #[serde(default)]
    failures: BTreeMap<String, ServerFailure>,
}

impl ServerFailures {
    /// Reads the cache; an unreadable one counts as empty.
    pub(crate) fn read(context: &CliContext) -> Self {
        files::read_cache(&file(context))
    }

    pub(crate) fn get(&self, server: &McpServerConfig) -> Option<&ServerFailure> {
        self.failures.get(&server.label()).filter(|failure| failure.is_retained_at(now()))
    }

    /// Removes the failure of a server that answers again.
    pub(crate) fn clear(server: &McpServerConfig, context: &CliContext) {
        let mut failures = Self::read(context);
        if failures.failures.remove(&server.label()).is_some() {
            failures.write(context);
        }
    }

    /// Records an attempt; `None` for success.
    pub(crate) fn record(&mut self, server: &McpServerConfig, failure: Option<ServerFailure>) {
        match failure {
            Some(failure) => drop(self.failures.insert(server.label(), failure)),
            None => drop(self.failures.remove(&server.label())),
        }
    }

    /// Writes the cache without expired failures. A failure to write is only logged.
    pub(crate) fn write(&mut self, context: &CliContext) {
        let now = now();
        self.failures.retain(|_, failure| failure.is_retained_at(now));
        let file = file(context);
        if self.failures.is_empty() && !file.exists() {
            return;
        }
        if let Err(error) = files::write_json(&file, self, files::Access::OwnerOnly) {
            tracing::debug!(error = error.message(), "cache of server failures not written");
        }
    }
}

fn file(context: &CliContext) -> PathBuf {
    context.data_folder.join("servers.json")
}

fn now() -> u64 {
    unix_millis().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slow_failures_are_skipped_and_only_for_a_while() {
        let failure = |duration: u64| ServerFailure { at: 1_000_000, duration, reason: String::new() };
        assert!(failure(60_000).is_skipped_at(1_000_001));
        assert!(!failure(60_000).is_skipped_at(1_000_000 + 600_000));
        assert!(!failure(60_000).is_skipped_at(999_999), "the clock was set back");
        assert!(!failure(1_999).is_skipped_at(1_000_001));
    }
}
