//! Learns the tools of a server that was never seen: one of several processes starts it, the others read what that one stored.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};
use toolyard_core::{BoxFuture, ContentHash, SourceId};

use crate::{
    lifecycle::{
        connect_error::ConnectError,
        manager::McpManager,
        server::ManagedServer,
        shared::ServerEvent,
        state::{ServerState, StartReason},
    },
    pinning::{CacheError, CachedServer},
};

/// A turn lasts as long as the start of the server may take, and this.
const TURN_MARGIN: Duration = Duration::from_secs(5);
/// How long a process waits before it asks for the turn again, at first and at most. Part of it is random, so that processes do
/// not all ask at once.
const MIN_TURN_WAIT: Duration = Duration::from_millis(200);
const MAX_TURN_WAIT: Duration = Duration::from_secs(2);

/// Several processes that use the same servers and share a store.
pub trait CatalogueSharing: Send + Sync + fmt::Debug {
    /// Takes the turn to start a server in order to learn its tools, or renews the own one. `None` if another process has it. A
    /// process that cannot find out gets the turn, because a server that is started twice is better than none.
    fn take<'a>(&'a self, server: &'a SourceId, duration: Duration) -> BoxFuture<'a, Option<DiscoveryTurn>>;

    /// Ends a turn before its time.
    fn end<'a>(&'a self, server: &'a SourceId, turn: DiscoveryTurn) -> BoxFuture<'a, ()>;

    /// Whether another process makes the calls of a stateful server now, on behalf of this one.
    fn is_called_elsewhere(&self, server: &SourceId) -> bool {
        let _ = server;
        false
    }
}

/// The turn of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiscoveryTurn {
    /// The fencing number of its lease; `None` if the process could not find out whether another one has the turn.
    pub fence: Option<i64>,
}

impl McpManager {
    /// From now on, servers whose tools are unknown are started only when it is the turn of this process. Can be set once.
    pub fn share_catalogue(&self, sharing: Arc<dyn CatalogueSharing>) {
        // Only the first one counts.
        let _ = self.shared.catalogue_sharing.set(sharing);
    }

    /// Reads the servers again that any process changed in the store. Returns those whose tools, content or state changed here.
    pub async fn apply_changes(&self) -> Result<BTreeSet<SourceId>, CacheError> {
        // A server that is being set up would be unknown here, and its change be taken for applied.
        let _guard = self.apply_lock.lock().await;
        let changed = self.host.cache.changed_servers().await?;
        let mut applied = BTreeSet::new();
        for id in &changed.names {
            if self.apply_change(id.as_str()).await? {
                applied.insert(id.clone());
            }
        }
        self.host.cache.note_changes(&changed);
        Ok(applied)
    }

    /// Reads one server again that another process changed in the store. Returns whether that changed anything here.
    pub async fn apply_change(&self, id: &str) -> Result<bool, CacheError> {
        match self.server(id) {
            Some(server) => server.apply_record().await,
            None => Ok(false),
        }
    }
}

/// What to do with the tools that another process stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Adoption {
    /// The session of this process has other definitions, which its own list was compared with.
    Ignore,
    Replace,
    /// Like `Replace`; the session of this process has other definitions and is not used for calls.
    ReplaceAndStop,
}

/// Decides by the list that the own session sent, if there is a session, and the stored one. Approvals of another list must not
/// count for calls in the own session.
fn adoption(own_list: Option<ContentHash>, stored: ContentHash, is_called_elsewhere: bool) -> Adoption {
    match own_list {
        None => Adoption::Replace,
        Some(own) if own == stored => Adoption::Replace,
        Some(_) if is_called_elsewhere => Adoption::ReplaceAndStop,
        Some(_) => Adoption::Ignore,
    }
}

/// What a stored record changes at a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RecordChanges {
    tools: bool,
    prompts: bool,
    resources: bool,
}

impl ManagedServer {
    /// Replaces tools, approvals and content by those in the store, which another process may have written. Returns whether they
    /// differed.
    pub(super) async fn apply_record(self: &Arc<Self>) -> Result<bool, CacheError> {
        // A task that reads lists holds this until they are stored and in effect, so that what is read here is not older.
        let _guard = self.refresh_lock.lock().await;
        let Some((cached, list)) = self.host.cache.cached(&self.config).await? else { return Ok(false) };
        let is_called_elsewhere = self.is_stateful() && {
            let sharing = self.shared.catalogue_sharing.get();
            sharing.is_some_and(|sharing| sharing.is_called_elsewhere(&self.config.id))
        };
        let own_list = {
            let state = self.state.lock();
            let has_session = state.lifecycle.session().is_some()
                || matches!(state.lifecycle.state(), ServerState::Starting { .. });
            state.listed_tools.filter(|_| has_session)
        };
        let changes = match adoption(own_list, list, is_called_elsewhere) {
            Adoption::Ignore => return Ok(false),
            Adoption::Replace => self.replace_by(cached),
            Adoption::ReplaceAndStop => {
                let changes = self.replace_by(cached);
                // Its definitions were not compared with these approvals; the next session begins with that.
                let server = Arc::clone(self);
                tokio::spawn(async move { server.stop_shared().await });
                changes
            }
        };
        if changes.tools {
            self.register_tools();
        }
        if changes.prompts {
            self.shared.publish(ServerEvent::PromptsChanged(self.config.id.clone()));
        }
        if changes.resources {
            self.shared.publish(ServerEvent::ResourcesChanged(self.config.id.clone()));
        }
        Ok(changes.tools || changes.prompts || changes.resources)
    }

    fn replace_by(&self, cached: CachedServer) -> RecordChanges {
        let CachedServer { revision_family, approvals, content } = cached;
        let mut state = self.state.lock();
        if state.lifecycle.is_retired() {
            return RecordChanges { tools: false, prompts: false, resources: false };
        }
        let changes = RecordChanges {
            tools: !state.approvals.has_same_tools(&approvals) || !state.lifecycle.has_known_tools(),
            prompts: state.content.prompts != content.prompts,
            resources: (&state.content.resources, &state.content.templates, &state.content.skills)
                != (&content.resources, &content.templates, &content.skills),
        };
        if state.lifecycle.session().is_none() && self.config.revision_family.is_none() {
            state.revision_family = revision_family.or(state.revision_family);
        }
        let problem = approvals.problem_summary();
        if changes.tools {
            state.approvals = Arc::new(approvals);
            state.lifecycle.record_tools(problem);
        }
        if changes.prompts || changes.resources {
            state.content = Arc::new(content);
        }
        changes
    }

    /// Learns the tools of a server that was never seen: starts it, or waits for the process that does.
    pub(super) async fn learn_tools(self: &Arc<Self>, reason: StartReason) -> Result<(), ConnectError> {
        // The tokens of callers are in one process, so that another one may be unable to read the tools.
        let sharing = self.shared.catalogue_sharing.get().filter(|_| !self.config.has_tokens_per_caller());
        let Some(sharing) = sharing else { return self.session(reason, None).await.map(drop) };
        let turn_duration = self.config.startup_timeout + TURN_MARGIN;
        // Long enough for one other process that dies. Afterwards, a server that is started twice is better than none.
        let deadline = Instant::now() + turn_duration * 2;
        let mut wait = MIN_TURN_WAIT;
        while !self.has_known_tools() {
            if let Some(turn) = sharing.take(&self.config.id, turn_duration).await {
                return self.start_in_turn(sharing, turn, reason).await;
            }
            if Instant::now() > deadline {
                return self.session(reason, None).await.map(drop);
            }
            sleep(wait.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
            wait = (wait * 2).min(MAX_TURN_WAIT);
            self.read_record().await;
        }
        Ok(())
    }

    async fn start_in_turn(
        self: &Arc<Self>,
        sharing: &Arc<dyn CatalogueSharing>,
        turn: DiscoveryTurn,
        reason: StartReason,
    ) -> Result<(), ConnectError> {
        // The process that had the turn before may have stored the tools.
        self.read_record().await;
        let outcome = match self.has_known_tools() {
            true => Ok(()),
            false => self.session(reason, None).await.map(drop),
        };
        // After a failure, too: another process may have what is missing here, such as a sign-in.
        sharing.end(&self.config.id, turn).await;
        outcome
    }

    async fn read_record(self: &Arc<Self>) {
        if let Err(error) = self.apply_record().await {
            tracing::debug!(server = %self.config.id, %error, "failed to read the stored tools of a server");
        }
    }

    /// Tells those who follow the servers that the stored record of this one changed.
    pub(super) fn publish_record_change(&self) {
        self.shared.publish(ServerEvent::RecordChanged(self.config.id.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approvals_of_another_list_do_not_count_for_calls_in_the_own_session() {
        let (own, other) = (ContentHash::of("own"), ContentHash::of("other"));
        for (own_list, stored, is_called_elsewhere, expected) in [
            (None, other, false, Adoption::Replace),
            (None, other, true, Adoption::Replace),
            (Some(own), own, false, Adoption::Replace),
            (Some(own), own, true, Adoption::Replace),
            (Some(own), other, false, Adoption::Ignore),
            (Some(own), other, true, Adoption::ReplaceAndStop),
        ] {
            assert_eq!(
                adoption(own_list, stored, is_called_elsewhere),
                expected,
                "{own_list:?} {is_called_elsewhere}"
            );
        }
    }
}
