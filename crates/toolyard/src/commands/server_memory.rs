//! Which servers could not be used when they were last tried, remembered in a small file: nobody waits for them again and
//! again, and it can be shown why.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use toolyard_mcp::config::McpServerConfig;

use crate::{files, folders::Workplace};

/// For so long a server that took its time to fail is not waited for again.
const LEFT_ALONE: Duration = Duration::from_mins(10);
/// Whoever fails faster costs nobody anything.
const SLOW: Duration = Duration::from_secs(2);
/// Older troubles are nobody's any more.
const REMEMBERED: Duration = Duration::from_hours(24);
/// The most of a reason that is kept, in bytes.
const LONGEST: usize = 2_000;

/// How a server failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trouble {
    /// When, in milliseconds since 1970.
    pub(crate) at: u64,
    /// How long it took, in milliseconds.
    took: u64,
    /// Why, without secrets.
    pub(crate) reason: String,
}

impl Trouble {
    pub(crate) fn new(reason: &str, took: Duration) -> Self {
        let mut reason = toolyard_core::redact(reason).into_owned();
        reason.truncate(reason.floor_char_boundary(LONGEST));
        Self { at: now(), took: u64::try_from(took.as_millis()).unwrap_or(u64::MAX), reason }
    }

    /// Whether waiting for it again would only cost time.
    pub(crate) fn is_left_alone(&self) -> bool {
        self.is_left_alone_at(now())
    }

    fn is_left_alone_at(&self, now: u64) -> bool {
        let ago = now.checked_sub(self.at).map(Duration::from_millis);
        // A clock that was put back says nothing.
        Duration::from_millis(self.took) >= SLOW && ago.is_some_and(|ago| ago < LEFT_ALONE)
    }

    fn is_remembered_at(&self, now: u64) -> bool {
        now.checked_sub(self.at).is_some_and(|ago| Duration::from_millis(ago) < REMEMBERED)
    }

    /// How long ago it was, for people.
    pub(crate) fn ago(&self) -> String {
        match now().saturating_sub(self.at) / 60_000 {
            0 => "less than a minute ago".to_owned(),
            minutes @ 1..=119 => format!("{minutes} min ago"),
            minutes => format!("{} h ago", minutes / 60),
        }
    }
}

/// What is remembered, by the servers' names and fingerprints: another server of the same name begins anew.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ServerMemory {
    #[serde(default)]
    troubles: BTreeMap<String, Trouble>,
}

impl ServerMemory {
    /// What is remembered; what cannot be read is found out anew.
    pub(crate) fn read(workplace: &Workplace) -> Self {
        let text = std::fs::read_to_string(file(workplace)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub(crate) fn of(&self, server: &McpServerConfig) -> Option<&Trouble> {
        self.troubles.get(&server.label()).filter(|trouble| trouble.is_remembered_at(now()))
    }

    /// A server answers again.
    pub(crate) fn is_well(server: &McpServerConfig, workplace: &Workplace) {
        let mut memory = Self::read(workplace);
        if memory.troubles.remove(&server.label()).is_some() {
            memory.keep(workplace);
        }
    }

    /// Remembers how a server did: none is well.
    pub(crate) fn note(&mut self, server: &McpServerConfig, trouble: Option<Trouble>) {
        match trouble {
            Some(trouble) => drop(self.troubles.insert(server.label(), trouble)),
            None => drop(self.troubles.remove(&server.label())),
        }
    }

    /// Keeps what is not too old. A memory that cannot be written only costs time the next time.
    pub(crate) fn keep(&mut self, workplace: &Workplace) {
        let now = now();
        self.troubles.retain(|_, trouble| trouble.is_remembered_at(now));
        let (file, text) = (file(workplace), serde_json::to_string_pretty(self).unwrap_or_default());
        if self.troubles.is_empty() && !file.exists() {
            return;
        }
        if let Err(error) = files::write(&file, &format!("{text}\n"), files::Readers::Owner) {
            tracing::debug!(%error, file = %file.display(), "what was learned of servers is not kept");
        }
    }
}

fn file(workplace: &Workplace) -> PathBuf {
    workplace.data_folder.join("servers.json")
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cost_time_is_left_alone_and_not_for_ever() {
        let trouble = |took: u64| Trouble { at: 1_000_000, took, reason: String::new() };
        assert!(trouble(60_000).is_left_alone_at(1_000_001));
        assert!(!trouble(60_000).is_left_alone_at(1_000_000 + 600_000));
        assert!(!trouble(60_000).is_left_alone_at(999_999), "the clock was put back");
        assert!(!trouble(1_999).is_left_alone_at(1_000_001));
    }
}
