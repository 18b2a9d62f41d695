//! Changes of servers that other processes wrote to the store.

use std::{collections::BTreeSet, sync::atomic::Ordering};

use toolyard_core::{ContentHash, RawJson, SourceId};

use super::{
    ServerCache, ToolApprovals,
    pinned_source::source_of_key,
    server_cache::{CacheError, CachedServer, all_servers_error, store_error, stored_approvals},
};
use crate::config::McpServerConfig;

/// Which servers to read again, and the revision up to which all changes are known then.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChangedServers {
    pub(crate) names: BTreeSet<SourceId>,
    seen_revision: i64,
}

impl ServerCache {
    /// Changes before the first servers are read count as known. Later, servers that are known already are not read again, so their
    /// changes still have to be noticed.
    pub(super) async fn note_first_revision(&self) -> Result<(), CacheError> {
        if self.seen_revision.load(Ordering::Acquire) == 0 {
            let latest = self.servers.latest_server_revision().await.map_err(all_servers_error)?;
            self.seen_revision.fetch_max(latest, Ordering::AcqRel);
        }
        Ok(())
    }

    /// The servers that changed since the last time, whichever process changed them. Each must be read again, and then be
    /// [noted](Self::note_changes).
    pub(crate) async fn changed_servers(&self) -> Result<ChangedServers, CacheError> {
        let seen = self.seen_revision.load(Ordering::Acquire);
        let rows = self.servers.servers_changed_after(seen).await.map_err(all_servers_error)?;
        Ok(changed_servers(&rows, seen))
    }

    /// These changes are in effect.
    pub(crate) fn note_changes(&self, changed: &ChangedServers) {
        self.seen_revision.fetch_max(changed.seen_revision, Ordering::AcqRel);
    }

    /// What the store knows of a server as configured now, with the hash of its list of tools.
    pub(crate) async fn cached(
        &self,
        config: &McpServerConfig,
    ) -> Result<Option<(CachedServer, ContentHash)>, CacheError> {
        let source = config.pinned_source();
        let record = self.servers.server(&source.key()).await.map_err(store_error(&config.id))?;
        let Some(record) = record else { return Ok(None) };
        let approvals = match stored_approvals(&record) {
            Some(approvals) => approvals,
            // Another version wrote the record.
            None => match self.pins(&source).await? {
                Some(pins) => ToolApprovals::from_decision(pins.decision),
                None => return Ok(None),
            },
        };
        self.restore_names(&source, &approvals, true);
        let content = record.content.and_then(|content| content.read().ok()).unwrap_or_default();
        let list = list_hash(&record.cached_tools);
        Ok(Some((CachedServer { revision_family: record.revision_family, approvals, content }, list)))
    }
}

/// The hash of a list of tools, as the server sent it.
pub(crate) fn list_hash(tools: &[RawJson]) -> ContentHash {
    ContentHash::of_parts(tools.iter().map(|tool| tool.get().as_bytes()))
}

fn changed_servers(rows: &[(SourceId, i64)], seen_revision: i64) -> ChangedServers {
    let new = rows.iter().filter(|(_, revision)| *revision > seen_revision);
    ChangedServers {
        names: new.map(|(key, _)| source_of_key(key).into()).collect(),
        seen_revision: rows.iter().map(|(_, revision)| *revision).fold(seen_revision, i64::max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(rows: &[(&str, i64)], seen: i64) -> (Vec<String>, i64) {
        let rows: Vec<(SourceId, i64)> =
            rows.iter().map(|(key, revision)| ((*key).into(), *revision)).collect();
        let ChangedServers { names, seen_revision } = changed_servers(&rows, seen);
        (names.iter().map(ToString::to_string).collect(), seen_revision)
    }

    #[test]
    fn each_changed_server_is_read_once() {
        assert_eq!(changed(&[], 7), (Vec::new(), 7));
        let rows = [("files#ab", 8), ("time#cd", 9), ("files#ef", 12)];
        assert_eq!(changed(&rows, 7), (vec!["files".to_owned(), "time".to_owned()], 12));
        assert_eq!(changed(&rows, 12), (Vec::new(), 12));
        assert_eq!(changed(&rows, 20), (Vec::new(), 20), "the store was replaced by an older one");
    }
}
