//! Past requests: users' wordings for which a tool was used. Search ranks tools by them; they are written in the background.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use sqlx::{AnyConnection, Row as _};
use toolyard_core::{BoxFuture, DataOwner, PastRequest, PastRequests, SourceId, unix_millis};

use crate::{
    error::StoreError,
    sql::{Durability, read_id, read_owner},
    store::{Clock, Store},
};

const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// Requests of all tools.
const MAX_REQUESTS: usize = 20_000;

/// [`PastRequests`] in memory that are written to the store in the background.
pub struct StoredPastRequests {
    store: Store,
    clock: Clock,
    requests: Mutex<RequestTable>,
    /// Set once the stored requests are loaded.
    loaded: tokio::sync::OnceCell<()>,
}

/// The owner of the requests, the source and the tool's name.
type ToolKey = (DataOwner, SourceId, String);

#[derive(Default)]
struct RequestTable {
    tools: HashMap<ToolKey, HashMap<String, Usage>>,
    count: usize,
    /// The latest time of use. Times of use are unique, so that requests are totally ordered.
    latest: i64,
    evicted: Vec<PastRequest>,
}

#[derive(Debug, Clone, Copy)]
struct Usage {
    uses: i64,
    /// Uses that are not stored yet.
    unwritten: i64,
    last_used_at: i64,
}

impl std::fmt::Debug for StoredPastRequests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredPastRequests").field("store", &self.store).finish_non_exhaustive()
    }
}

impl StoredPastRequests {
    /// Loads the stored requests and writes changes once a second until it is dropped.
    pub async fn open(store: &Store) -> Result<Arc<Self>, StoreError> {
        let requests = Self::with_clock(store, Arc::new(unix_millis)).await?;
        tokio::spawn(flush_periodically(Arc::downgrade(&requests)));
        Ok(requests)
    }

    /// Like [`Self::open`], but loads the stored requests at the first [`PastRequests::ready`].
    pub fn open_lazy(store: &Store) -> Arc<Self> {
        let requests = Arc::new(Self::new(store, Arc::new(unix_millis)));
        tokio::spawn(flush_periodically(Arc::downgrade(&requests)));
        requests
    }

    /// Loads the stored requests; writes nothing until [`Self::flush`].
    pub async fn with_clock(store: &Store, clock: Clock) -> Result<Arc<Self>, StoreError> {
        let requests = Self::new(store, clock);
        requests.loaded.get_or_try_init(|| requests.load()).await?;
        Ok(Arc::new(requests))
    }

    fn new(store: &Store, clock: Clock) -> Self {
        Self { store: store.clone(), clock, requests: Mutex::default(), loaded: tokio::sync::OnceCell::new() }
    }

    /// Adds the stored requests to those in memory.
    async fn load(&self) -> Result<(), StoreError> {
        let sql = "SELECT owner, source, tool, request, uses, last_used_at FROM past_requests
                   ORDER BY last_used_at, source, tool, request";
        let rows = self.store.fetch_all(sqlx::query(sql)).await?;
        let mut table = self.requests.lock();
        for row in rows {
            let (uses, last_used_at) = (row.try_get("uses")?, row.try_get("last_used_at")?);
            let tool = (read_owner(&row)?, read_id(&row, "source")?, row.try_get("tool")?);
            table.add_stored(&tool, row.try_get("request")?, Usage { uses, unwritten: 0, last_used_at });
        }
        Ok(())
    }

    /// Writes all changes.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let changes = self.requests.lock().take_changes();
        if changes.used.is_empty() && changes.evicted.is_empty() {
            return Ok(());
        }
        let changes = Arc::new(changes);
        let data = Arc::clone(&changes);
        let written = self
            .store
            .write(Durability::Relaxed, data, |connection, changes| {
                Box::pin(write_changes(connection, changes))
            })
            .await;
        if written.is_err() {
            self.requests.lock().restore(&changes);
        }
        written
    }
}

impl PastRequests for StoredPastRequests {
    fn record(&self, past: PastRequest) {
        let now = (self.clock)();
        let mut table = self.requests.lock();
        let last_used_at = now.max(table.latest + 1);
        let PastRequest { owner, tool, source, request, .. } = past;
        let tool = (owner, source, tool);
        let before = table.tools.get(&tool).and_then(|requests| requests.get(&request));
        let (uses, unwritten) = before.map_or((0, 0), |before| (before.uses, before.unwritten));
        table.insert(&tool, request, Usage { uses: uses + 1, unwritten: unwritten + 1, last_used_at });
    }

    fn recent(&self, limit: usize) -> Vec<PastRequest> {
        let table = self.requests.lock();
        let mut all: Vec<(i64, PastRequest)> = Vec::with_capacity(table.count);
        for (tool, requests) in &table.tools {
            all.extend(
                requests.iter().map(|(request, usage)| (usage.last_used_at, past_request(tool, request))),
            );
        }
        drop(table);
        all.sort_by(|one, other| {
            let key = |past: &PastRequest| {
                (past.owner, past.source.clone(), past.tool.clone(), past.request.clone())
            };
            one.0.cmp(&other.0).then_with(|| key(&one.1).cmp(&key(&other.1)))
        });
        all.drain(..all.len().saturating_sub(limit));
        all.into_iter().map(|(_, past)| past).collect()
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Err(error) = self.loaded.get_or_try_init(|| self.load()).await {
                tracing::warn!(%error, "failed to read past requests");
            }
        })
    }
}

fn past_request((owner, source, tool): &ToolKey, request: &str) -> PastRequest {
    PastRequest::from_stored(*owner, tool.as_str(), source.clone(), request)
}

/// How many each may keep so that all together keep at most `total`: those with less keep everything.
fn fair_share(mut counts: Vec<usize>, total: usize) -> usize {
    counts.sort_unstable();
    let (mut left, mut remaining) = (total, counts.len());
    for count in counts {
        let share = left.checked_div(remaining).unwrap_or_default();
        if count > share {
            return share;
        }
        left = left.saturating_sub(count);
        remaining = remaining.saturating_sub(1);
    }
    usize::MAX
}

impl RequestTable {
    fn insert(&mut self, tool: &ToolKey, request: String, usage: Usage) {
        self.latest = self.latest.max(usage.last_used_at);
        let requests = self.tools.entry(tool.clone()).or_default();
        self.count += usize::from(requests.insert(request, usage).is_none());
        if requests.len() > PastRequest::MAX_PER_TOOL {
            self.evict_oldest(tool);
        }
    }

    /// Adds a stored request, or its uses if the request was used again before it was loaded.
    fn add_stored(&mut self, tool: &ToolKey, request: String, stored: Usage) {
        match self.tools.get_mut(tool).and_then(|requests| requests.get_mut(&request)) {
            Some(usage) => usage.uses += stored.uses,
            None => self.insert(tool, request, stored),
        }
    }

    /// Evicts a tenth when there are too many, so that this happens rarely: of each owner that has more than its share, the
    /// oldest.
    fn evict(&mut self) {
        if self.count <= MAX_REQUESTS {
            return;
        }
        let mut by_owner: HashMap<DataOwner, Vec<(i64, ToolKey)>> = HashMap::new();
        for (tool, requests) in &self.tools {
            let times = requests.values().map(|usage| (usage.last_used_at, tool.clone()));
            by_owner.entry(tool.0).or_default().extend(times);
        }
        let counts: Vec<usize> = by_owner.values().map(Vec::len).collect();
        let share = fair_share(counts, MAX_REQUESTS / 10 * 9);
        for mut times in by_owner.into_values() {
            times.sort_unstable();
            for (_, tool) in times.iter().take(times.len().saturating_sub(share)) {
                self.evict_oldest(tool);
            }
        }
    }

    fn evict_oldest(&mut self, tool: &ToolKey) {
        let Some(requests) = self.tools.get_mut(tool) else { return };
        let oldest = requests.iter().min_by_key(|(request, usage)| (usage.last_used_at, *request));
        let Some(oldest) = oldest.map(|(request, _)| request.clone()) else { return };
        requests.remove(&oldest);
        self.count -= 1;
        self.evicted.push(past_request(tool, &oldest));
        if requests.is_empty() {
            self.tools.remove(tool);
        }
    }

    /// Takes back changes that could not be written.
    fn restore(&mut self, changes: &Changes) {
        for (past, usage) in &changes.used {
            let requests = self.tools.get_mut(&(past.owner, past.source.clone(), past.tool.clone()));
            if let Some(current) = requests.and_then(|requests| requests.get_mut(&past.request)) {
                current.unwritten += usage.unwritten;
            }
        }
        self.evicted.extend(changes.evicted.iter().cloned());
    }

    fn take_changes(&mut self) -> Changes {
        self.evict();
        let mut used = Vec::new();
        for (tool, requests) in &mut self.tools {
            for (request, usage) in requests.iter_mut().filter(|(_, usage)| usage.unwritten > 0) {
                used.push((past_request(tool, request), *usage));
                usage.unwritten = 0;
            }
        }
        Changes { used, evicted: std::mem::take(&mut self.evicted) }
    }
}

/// Unwritten changes of a [`RequestTable`].
struct Changes {
    used: Vec<(PastRequest, Usage)>,
    evicted: Vec<PastRequest>,
}

async fn flush_periodically(requests: Weak<StoredPastRequests>) {
    loop {
        tokio::time::sleep(FLUSH_INTERVAL).await;
        let Some(requests) = requests.upgrade() else { return };
        if let Err(error) = requests.flush().await {
            tracing::warn!(%error, "failed to write past requests");
        }
    }
}

async fn write_changes(connection: &mut AnyConnection, changes: &Changes) -> Result<(), StoreError> {
    let delete = "DELETE FROM past_requests WHERE source = $1 AND tool = $2 AND request = $3 AND owner = $4";
    for past in &changes.evicted {
        let query = sqlx::query(delete).bind(past.source.as_str()).bind(past.tool.as_str());
        let query = query.bind(past.request.as_str()).bind(past.owner.as_text().into_owned());
        query.execute(&mut *connection).await?;
    }
    // Other processes count uses of the same requests.
    let sql =
        "INSERT INTO past_requests (source, tool, request, uses, last_used_at, owner) VALUES ($1, $2, $3, $4, $5, $6)
               ON CONFLICT (owner, source, tool, request) DO UPDATE SET uses = past_requests.uses + excluded.uses,
               last_used_at = CASE WHEN excluded.last_used_at > past_requests.last_used_at
               THEN excluded.last_used_at ELSE past_requests.last_used_at END";
    for (past, usage) in &changes.used {
        let query = sqlx::query(sql).bind(past.source.as_str()).bind(past.tool.as_str());
        let query = query.bind(past.request.as_str()).bind(usage.unwritten).bind(usage.last_used_at);
        query.bind(past.owner.as_text().into_owned()).execute(&mut *connection).await?;
    }
    // Several processes together may exceed the limit per tool; the newest requests stay.
    let trim = "DELETE FROM past_requests WHERE source = $1 AND tool = $2 AND owner = $4 AND request NOT IN (
               SELECT request FROM past_requests WHERE source = $1 AND tool = $2 AND owner = $4
               ORDER BY last_used_at DESC, request LIMIT $3)";
    let mut tools: Vec<(DataOwner, &str, &str)> =
        changes.used.iter().map(|(past, _)| (past.owner, past.source.as_str(), past.tool.as_str())).collect();
    tools.sort_unstable();
    tools.dedup();
    let limit = i64::try_from(PastRequest::MAX_PER_TOOL).unwrap_or(i64::MAX);
    for (owner, source, tool) in tools {
        let query = sqlx::query(trim).bind(source).bind(tool).bind(limit);
        query.bind(owner.as_text().into_owned()).execute(&mut *connection).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toolyard_core::CallerIdentity;

    use super::*;

    proptest! {
        #[test]
        fn a_fair_share_uses_the_total_and_costs_the_small_nothing(
            counts in proptest::collection::vec(0..50_usize, 1..10),
            total in 1..200_usize,
        ) {
            let share = fair_share(counts.clone(), total);
            let kept = |share: usize| counts.iter().map(|count| (*count).min(share)).sum::<usize>();
            prop_assert!(kept(share) <= total);
            prop_assert!(share == usize::MAX || kept(share + 1) > total, "{share} is too small");
        }
    }

    #[test]
    fn many_requests_of_one_owner_do_not_cost_others_theirs() {
        let mut table = RequestTable::default();
        let owner = |name: &str| DataOwner::of(Some(&CallerIdentity::principal("test", name)));
        let mut add = |owner: DataOwner, tool: usize, at: i64| {
            let usage = Usage { uses: 1, unwritten: 1, last_used_at: at };
            table.insert(&(owner, "s".into(), format!("tool{tool}")), format!("request {at}"), usage);
        };
        add(owner("quiet"), 0, 1);
        add(DataOwner::default(), 0, 2);
        for number in 0..MAX_REQUESTS {
            add(owner("busy"), number / 20, 3 + i64::try_from(number).unwrap());
        }
        table.evict();
        assert!(table.count <= MAX_REQUESTS / 10 * 9);
        for owner in [owner("quiet"), DataOwner::default()] {
            assert!(table.tools.keys().any(|(known, ..)| *known == owner));
        }
    }
}
