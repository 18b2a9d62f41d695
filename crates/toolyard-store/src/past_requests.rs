//! What tools were used for, so that the next process finds them as soon as this one; written in the background.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use sqlx::{AnyConnection, Row as _};
use toolyard_core::{BoxFuture, PastRequest, PastRequests, SourceId};

use crate::{
    engine::Durability,
    error::StoreError,
    history::Clock,
    store::{Store, now},
};

/// How often what changed is written.
const WRITE_EVERY: Duration = Duration::from_secs(1);
/// So many requests are kept in all.
const MOST: usize = 20_000;

/// Past requests in memory, written to the store in the background.
pub struct StoredRequests {
    store: Store,
    clock: Clock,
    known: Mutex<Known>,
    /// Whether what was kept has been read.
    read: tokio::sync::OnceCell<()>,
}

#[derive(Default)]
struct Known {
    tools: HashMap<(SourceId, String), HashMap<String, Use>>,
    count: usize,
    /// No two requests were used at the same time, so that they have an order.
    latest: i64,
    forgotten: Vec<PastRequest>,
}

#[derive(Debug, Clone, Copy)]
struct Use {
    uses: i64,
    /// How many of those are not written yet.
    unwritten: i64,
    last_used_at: i64,
}

impl std::fmt::Debug for StoredRequests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredRequests").field("store", &self.store).finish_non_exhaustive()
    }
}

impl StoredRequests {
    /// Reads what is known and writes what is new, once a second, as long as it is used.
    pub async fn open(store: &Store) -> Result<Arc<Self>, StoreError> {
        let requests = Self::with_clock(store, Arc::new(now)).await?;
        tokio::spawn(write_now_and_then(Arc::downgrade(&requests)));
        Ok(requests)
    }

    /// The same for whoever may never need it: nothing is read before somebody waits for [`PastRequests::ready`].
    pub fn later(store: &Store) -> Arc<Self> {
        let requests = Arc::new(Self::unread(store, Arc::new(now)));
        tokio::spawn(write_now_and_then(Arc::downgrade(&requests)));
        requests
    }

    /// The same with a clock of its own; nothing is written until [`Self::flush`].
    pub async fn with_clock(store: &Store, clock: Clock) -> Result<Arc<Self>, StoreError> {
        let requests = Self::unread(store, clock);
        requests.read.get_or_try_init(|| requests.read_kept()).await?;
        Ok(Arc::new(requests))
    }

    fn unread(store: &Store, clock: Clock) -> Self {
        Self { store: store.clone(), clock, known: Mutex::default(), read: tokio::sync::OnceCell::new() }
    }

    /// Adds what was kept to what is known already.
    async fn read_kept(&self) -> Result<(), StoreError> {
        let sql = "SELECT source, tool, request, uses, last_used_at FROM past_requests
                   ORDER BY last_used_at, source, tool, request";
        let rows = sqlx::query(sql).fetch_all(self.store.pool()).await?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for row in rows {
            let source = SourceId::from(row.try_get::<String, _>("source")?);
            let (uses, last_used_at) = (row.try_get("uses")?, row.try_get("last_used_at")?);
            let tool = (source, row.try_get("tool")?);
            known.add_kept(&tool, row.try_get("request")?, Use { uses, unwritten: 0, last_used_at });
        }
        Ok(())
    }

    /// Writes what changed.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let changes = self.known.lock().unwrap_or_else(PoisonError::into_inner).take_changes();
        if changes.used.is_empty() && changes.forgotten.is_empty() {
            return Ok(());
        }
        self.store
            .write(Durability::Relaxed, changes, |connection, changes| Box::pin(write(connection, changes)))
            .await
    }
}

impl PastRequests for StoredRequests {
    fn record(&self, past: PastRequest) {
        let now = (self.clock)();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let last_used_at = now.max(known.latest + 1);
        let PastRequest { tool, source, request, .. } = past;
        let tool = (source, tool);
        let before = known.tools.get(&tool).and_then(|requests| requests.get(&request));
        let (uses, unwritten) = before.map_or((0, 0), |before| (before.uses, before.unwritten));
        known.put(&tool, request, Use { uses: uses + 1, unwritten: unwritten + 1, last_used_at });
    }

    fn recent(&self, limit: usize) -> Vec<PastRequest> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<(i64, PastRequest)> = Vec::with_capacity(known.count);
        for (tool, requests) in &known.tools {
            all.extend(requests.iter().map(|(request, used)| (used.last_used_at, known_as(tool, request))));
        }
        drop(known);
        all.sort_by(|one, other| {
            let key = |past: &PastRequest| (past.source.clone(), past.tool.clone(), past.request.clone());
            one.0.cmp(&other.0).then_with(|| key(&one.1).cmp(&key(&other.1)))
        });
        all.drain(..all.len().saturating_sub(limit));
        all.into_iter().map(|(_, past)| past).collect()
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Err(error) = self.read.get_or_try_init(|| self.read_kept()).await {
                tracing::warn!(%error, "past requests were not read");
            }
        })
    }
}

fn known_as((source, tool): &(SourceId, String), request: &str) -> PastRequest {
    PastRequest::from_kept(tool.as_str(), source.clone(), request)
}

impl Known {
    fn put(&mut self, tool: &(SourceId, String), request: String, used: Use) {
        self.latest = self.latest.max(used.last_used_at);
        let requests = self.tools.entry(tool.clone()).or_default();
        self.count += usize::from(requests.insert(request, used).is_none());
        if requests.len() > PastRequest::OF_ONE_TOOL {
            self.forget_oldest(tool);
        }
    }

    /// What was kept, unless it was used again before it was read.
    fn add_kept(&mut self, tool: &(SourceId, String), request: String, kept: Use) {
        match self.tools.get_mut(tool).and_then(|requests| requests.get_mut(&request)) {
            Some(known) => known.uses += kept.uses,
            None => self.put(tool, request, kept),
        }
    }

    /// Forgets the oldest when there are too many; a few more than need be, so that this is seldom done.
    fn trim(&mut self) {
        if self.count <= MOST {
            return;
        }
        let of_tool = |(tool, requests): (&(SourceId, String), &HashMap<String, Use>)| {
            requests.values().map(|used| (used.last_used_at, tool.clone())).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = self.tools.iter().flat_map(of_tool).collect();
        all.sort_unstable_by(|one, other| {
            (one.0, &one.1.0, &one.1.1).cmp(&(other.0, &other.1.0, &other.1.1))
        });
        for (_, tool) in all.iter().take(self.count - MOST / 10 * 9) {
            self.forget_oldest(tool);
        }
    }

    fn forget_oldest(&mut self, tool: &(SourceId, String)) {
        let Some(requests) = self.tools.get_mut(tool) else { return };
        let oldest = requests.iter().min_by_key(|(request, used)| (used.last_used_at, *request));
        let Some(oldest) = oldest.map(|(request, _)| request.clone()) else { return };
        requests.remove(&oldest);
        self.count -= 1;
        self.forgotten.push(known_as(tool, &oldest));
        if requests.is_empty() {
            self.tools.remove(tool);
        }
    }

    fn take_changes(&mut self) -> Changes {
        self.trim();
        let mut used = Vec::new();
        for (tool, requests) in &mut self.tools {
            for (request, known) in requests.iter_mut().filter(|(_, known)| known.unwritten > 0) {
                used.push((known_as(tool, request), *known));
                known.unwritten = 0;
            }
        }
        Changes { used, forgotten: std::mem::take(&mut self.forgotten) }
    }
}

/// What is to be written.
struct Changes {
    used: Vec<(PastRequest, Use)>,
    forgotten: Vec<PastRequest>,
}

async fn write_now_and_then(requests: Weak<StoredRequests>) {
    loop {
        tokio::time::sleep(WRITE_EVERY).await;
        let Some(requests) = requests.upgrade() else { return };
        if let Err(error) = requests.flush().await {
            tracing::warn!(%error, "past requests were not written");
        }
    }
}

async fn write(connection: &mut AnyConnection, changes: &Changes) -> Result<(), StoreError> {
    let forget = "DELETE FROM past_requests WHERE source = $1 AND tool = $2 AND request = $3";
    for past in &changes.forgotten {
        let query = sqlx::query(forget).bind(past.source.as_str()).bind(past.tool.as_str());
        query.bind(past.request.as_str()).execute(&mut *connection).await?;
    }
    // Other processes use the same tools: their uses are added to, not replaced.
    let sql =
        "INSERT INTO past_requests (source, tool, request, uses, last_used_at) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (source, tool, request) DO UPDATE SET uses = past_requests.uses + excluded.uses,
               last_used_at = CASE WHEN excluded.last_used_at > past_requests.last_used_at
               THEN excluded.last_used_at ELSE past_requests.last_used_at END";
    for (past, used) in &changes.used {
        let query = sqlx::query(sql).bind(past.source.as_str()).bind(past.tool.as_str());
        let query = query.bind(past.request.as_str()).bind(used.unwritten).bind(used.last_used_at);
        query.execute(&mut *connection).await?;
    }
    // Whatever several processes left of one tool, the newest stay.
    let trim = "DELETE FROM past_requests WHERE source = $1 AND tool = $2 AND request NOT IN (
               SELECT request FROM past_requests WHERE source = $1 AND tool = $2
               ORDER BY last_used_at DESC, request LIMIT $3)";
    let mut tools: Vec<(&str, &str)> =
        changes.used.iter().map(|(past, _)| (past.source.as_str(), past.tool.as_str())).collect();
    tools.sort_unstable();
    tools.dedup();
    let most = i64::try_from(PastRequest::OF_ONE_TOOL).unwrap_or(i64::MAX);
    for (source, tool) in tools {
        sqlx::query(trim).bind(source).bind(tool).bind(most).execute(&mut *connection).await?;
    }
    Ok(())
}
