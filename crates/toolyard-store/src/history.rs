//! Call statistics per tool and source, weighted by age. The hub orders candidates by them.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use hdrhistogram::{
    Histogram,
    serialization::{Deserializer, Serializer as _, V2Serializer},
};
use parking_lot::Mutex;
use serde::Serialize;
use sqlx::{AnyConnection, Row as _, any::AnyRow};
use toolyard_core::{CallRecord, History, SourceId, SuccessRate, unix_millis};

use crate::{
    error::StoreError,
    sql::{Durability, enum_to_text},
    store::{Clock, Store},
};

/// The age in milliseconds at which a call counts half.
const HALF_LIFE_MILLIS: f64 = 7.0 * 24.0 * 60.0 * 60.0 * 1_000.0;
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// Longer calls are recorded as this long.
const MAX_LATENCY_MICROS: u64 = 3_600_000_000;

/// Significant decimal digits of recorded latencies.
const LATENCY_DIGITS: u8 = 2;

/// A [`History`] in memory that is written to the store in the background.
pub struct StoredHistory {
    store: Store,
    clock: Clock,
    by_source: Mutex<HashMap<SourceId, HashMap<String, CallStatistics>>>,
}

/// The calls of one tool of one source. Counts decay with age.
#[derive(Debug, Clone)]
struct CallStatistics {
    successes: f64,
    failures: f64,
    errors: HashMap<String, f64>,
    latency: Histogram<u32>,
    last_success: Option<i64>,
    last_failure: Option<i64>,
    updated_at: i64,
    changed: bool,
}

/// Call statistics of one tool of one source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolStatistics {
    /// The tool's name.
    pub tool: String,
    /// The source.
    pub source: SourceId,
    /// Number of calls, weighted by age.
    pub calls: f64,
    /// Fraction of calls that succeeded.
    pub success_rate: f64,
    /// Median latency.
    pub median_milliseconds: f64,
    /// 95th percentile of latency.
    pub p95_milliseconds: f64,
    /// Time of the last success, in milliseconds since 1970.
    pub last_success: Option<i64>,
    /// Time of the last call, in milliseconds since 1970.
    pub last_used: Option<i64>,
    /// Number of failures by error kind, weighted by age.
    pub errors: HashMap<String, f64>,
}

impl std::fmt::Debug for StoredHistory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredHistory").field("store", &self.store).finish_non_exhaustive()
    }
}

impl StoredHistory {
    /// Reads the stored history and writes changes once a second until it is dropped.
    pub async fn open(store: &Store) -> Result<Arc<Self>, StoreError> {
        let history = Self::with_clock(store, Arc::new(unix_millis)).await?;
        tokio::spawn(flush_periodically(Arc::downgrade(&history)));
        Ok(history)
    }

    /// Reads the stored history; writes nothing until [`Self::flush`].
    pub async fn with_clock(store: &Store, clock: Clock) -> Result<Arc<Self>, StoreError> {
        let mut by_source: HashMap<SourceId, HashMap<String, CallStatistics>> = HashMap::new();
        for row in sqlx::query("SELECT * FROM tool_statistics").fetch_all(store.pool()).await? {
            let source = SourceId::from(row.try_get::<String, _>("source")?);
            by_source.entry(source).or_default().insert(row.try_get("tool")?, read_statistics(&row)?);
        }
        Ok(Arc::new(Self { store: store.clone(), clock, by_source: Mutex::new(by_source) }))
    }

    /// Writes all changes.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let changed = self.take_changed()?;
        if changed.is_empty() {
            return Ok(());
        }
        let names: Vec<(SourceId, String)> =
            changed.iter().map(|row| (SourceId::from(row.source.clone()), row.tool.clone())).collect();
        let written = self
            .store
            .write(Durability::Relaxed, changed, |connection, rows| Box::pin(upsert(connection, rows)))
            .await;
        if written.is_err() {
            let mut by_source = self.by_source.lock();
            for (source, tool) in names {
                if let Some(statistics) = by_source.get_mut(&source).and_then(|tools| tools.get_mut(&tool)) {
                    statistics.changed = true;
                }
            }
        }
        written
    }

    /// Statistics of all tools, sorted by tool and source.
    pub fn statistics(&self) -> Vec<ToolStatistics> {
        let now = (self.clock)();
        let by_source = self.by_source.lock();
        let mut all: Vec<ToolStatistics> = by_source
            .iter()
            .flat_map(|(source, tools)| {
                tools.iter().map(|(tool, statistics)| statistics.to_tool_statistics(tool, source, now))
            })
            .collect();
        all.sort_by(|one, other| (&one.tool, &one.source).cmp(&(&other.tool, &other.source)));
        all
    }

    fn take_changed(&self) -> Result<Vec<HistoryRow>, StoreError> {
        let mut by_source = self.by_source.lock();
        let mut rows = Vec::new();
        for (source, tools) in by_source.iter_mut() {
            for (tool, statistics) in tools.iter_mut().filter(|(_, statistics)| statistics.changed) {
                statistics.changed = false;
                rows.push(HistoryRow::new(tool, source, statistics)?);
            }
        }
        // Processes that lock the same rows in different orders could wait for each other.
        rows.sort_by(|one, other| (&one.tool, &one.source).cmp(&(&other.tool, &other.source)));
        Ok(rows)
    }
}

async fn flush_periodically(history: Weak<StoredHistory>) {
    loop {
        tokio::time::sleep(FLUSH_INTERVAL).await;
        let Some(history) = history.upgrade() else { return };
        if let Err(error) = history.flush().await {
            tracing::warn!(%error, "failed to write call statistics");
        }
    }
}

impl History for StoredHistory {
    fn record(&self, call: &CallRecord<'_>) {
        let now = (self.clock)();
        let mut by_source = self.by_source.lock();
        let tools = by_source.entry(call.source.clone()).or_default();
        if !tools.contains_key(call.tool) {
            let Some(statistics) = CallStatistics::new(now) else { return };
            tools.insert(call.tool.to_owned(), statistics);
        }
        if let Some(statistics) = tools.get_mut(call.tool) {
            statistics.record(call, now);
        }
    }

    fn last_success(&self, tool: &str, source: &SourceId) -> Option<u64> {
        let by_source = self.by_source.lock();
        let statistics = by_source.get(source)?.get(tool)?;
        let success = statistics.last_success?;
        // A failure after the last success cancels it until the next success.
        (statistics.last_failure.is_none_or(|failure| failure < success)).then(|| success.unsigned_abs())
    }

    fn success_rate(&self, tool: &str, source: &SourceId) -> Option<SuccessRate> {
        let now = (self.clock)();
        let by_source = self.by_source.lock();
        Some(by_source.get(source)?.get(tool)?.success_rate(now))
    }
}

impl CallStatistics {
    fn new(now: i64) -> Option<Self> {
        Some(Self {
            successes: 0.0,
            failures: 0.0,
            errors: HashMap::new(),
            latency: Histogram::new_with_bounds(1, MAX_LATENCY_MICROS, LATENCY_DIGITS).ok()?,
            last_success: None,
            last_failure: None,
            updated_at: now,
            changed: true,
        })
    }

    fn record(&mut self, call: &CallRecord<'_>, now: i64) {
        self.decay(now);
        // Later than all earlier calls, so that two calls within one millisecond are still ordered.
        let at = now.max(self.last_success.max(self.last_failure).unwrap_or(0) + 1);
        match call.error {
            None => {
                self.successes += 1.0;
                self.last_success = Some(at);
            }
            Some(kind) => {
                self.failures += 1.0;
                self.last_failure = Some(at);
                *self.errors.entry(enum_to_text(&kind)).or_default() += 1.0;
            }
        }
        let microseconds = u64::try_from(call.elapsed.as_micros()).unwrap_or(MAX_LATENCY_MICROS);
        self.latency.saturating_record(microseconds.clamp(1, MAX_LATENCY_MICROS));
        self.changed = true;
    }

    /// Reduces the weight of earlier calls.
    fn decay(&mut self, now: i64) {
        let factor = decay_factor(now - self.updated_at);
        self.successes *= factor;
        self.failures *= factor;
        self.errors.values_mut().for_each(|count| *count *= factor);
        // The histogram counts whole calls and cannot decay continuously: it is halved after a half-life without calls.
        if factor <= 0.5 {
            self.latency = halved(&self.latency);
        }
        self.updated_at = now;
    }

    /// The rate does not depend on the time, because successes and failures decay alike.
    fn success_rate(&self, now: i64) -> SuccessRate {
        let calls = self.successes + self.failures;
        SuccessRate {
            rate: if calls > 0.0 { self.successes / calls } else { 0.0 },
            calls: calls * decay_factor(now - self.updated_at),
        }
    }

    fn to_tool_statistics(&self, tool: &str, source: &SourceId, now: i64) -> ToolStatistics {
        let mut decayed = self.clone();
        decayed.decay(now);
        let SuccessRate { rate, calls } = self.success_rate(now);
        #[expect(clippy::cast_precision_loss, reason = "an hour in microseconds is exact in f64")]
        let quantile_millis = |quantile: f64| self.latency.value_at_quantile(quantile) as f64 / 1_000.0;
        ToolStatistics {
            tool: tool.to_owned(),
            source: source.clone(),
            calls,
            success_rate: rate,
            median_milliseconds: quantile_millis(0.5),
            p95_milliseconds: quantile_millis(0.95),
            last_success: self.last_success,
            last_used: self.last_success.max(self.last_failure),
            errors: decayed.errors,
        }
    }
}

/// The weight of a call of this age in milliseconds.
fn decay_factor(age: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "precision loss is irrelevant for large ages")]
    let age = age.max(0) as f64;
    0.5_f64.powf(age / HALF_LIFE_MILLIS)
}

fn halved(latency: &Histogram<u32>) -> Histogram<u32> {
    let mut half = Histogram::new_from(latency);
    for value in latency.iter_recorded() {
        half.saturating_record_n(value.value_iterated_to(), value.count_at_value().div_ceil(2));
    }
    half
}

struct HistoryRow {
    tool: String,
    source: String,
    statistics: CallStatistics,
    errors: String,
    latency: Vec<u8>,
}

impl HistoryRow {
    fn new(tool: &str, source: &SourceId, statistics: &CallStatistics) -> Result<Self, StoreError> {
        let mut latency = Vec::new();
        V2Serializer::new().serialize(&statistics.latency, &mut latency).map_err(StoreError::corrupt)?;
        Ok(Self {
            tool: tool.to_owned(),
            source: source.to_string(),
            statistics: statistics.clone(),
            errors: serde_json::to_string(&statistics.errors).map_err(StoreError::corrupt)?,
            latency,
        })
    }
}

async fn upsert(connection: &mut AnyConnection, rows: &[HistoryRow]) -> Result<(), StoreError> {
    let sql = "INSERT INTO tool_statistics (tool, source, successes, failures, errors, latency, last_success, last_failure, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (tool, source) DO UPDATE SET
               successes = excluded.successes, failures = excluded.failures, errors = excluded.errors,
               latency = excluded.latency, last_success = excluded.last_success,
               last_failure = excluded.last_failure, updated_at = excluded.updated_at";
    for row in rows {
        let CallStatistics { successes, failures, last_success, last_failure, updated_at, .. } =
            row.statistics;
        let query =
            sqlx::query(sql).bind(row.tool.as_str()).bind(row.source.as_str()).bind(successes).bind(failures);
        let query = query.bind(row.errors.as_str()).bind(row.latency.as_slice()).bind(last_success);
        query.bind(last_failure).bind(updated_at).execute(&mut *connection).await?;
    }
    Ok(())
}

fn read_statistics(row: &AnyRow) -> Result<CallStatistics, StoreError> {
    let latency: Vec<u8> = row.try_get("latency")?;
    let latency = Deserializer::new().deserialize(&mut latency.as_slice()).map_err(StoreError::corrupt)?;
    Ok(CallStatistics {
        successes: row.try_get("successes")?,
        failures: row.try_get("failures")?,
        errors: serde_json::from_str(&row.try_get::<String, _>("errors")?).map_err(StoreError::corrupt)?,
        latency,
        last_success: row.try_get("last_success")?,
        last_failure: row.try_get("last_failure")?,
        updated_at: row.try_get("updated_at")?,
        changed: false,
    })
}
