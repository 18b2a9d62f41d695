//! How calls went, per tool and source, fading with time; it feeds the hub's order and survives a restart.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use hdrhistogram::{
    Histogram,
    serialization::{Deserializer, Serializer as _, V2Serializer},
};
use serde::Serialize;
use sqlx::{AnyConnection, Row as _, any::AnyRow};
use toolyard_core::{CallOutcome, History, SourceId};

use crate::{
    engine::Durability,
    error::StoreError,
    store::{Store, now},
    words::word,
};

/// After this long a call counts half: last week outweighs last year.
const HALF_LIFE: f64 = 7.0 * 24.0 * 60.0 * 60.0 * 1_000.0;
/// How often what changed is written.
const WRITE_EVERY: Duration = Duration::from_secs(1);
/// Longer calls than this count as this long, in microseconds.
const LONGEST: u64 = 3_600_000_000;

/// Milliseconds since 1970; a test brings its own.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// History in memory, written to the store in the background.
pub struct StoredHistory {
    store: Store,
    clock: Clock,
    known: Mutex<HashMap<SourceId, HashMap<String, Standing>>>,
}

/// How one tool of one source has been doing.
#[derive(Debug, Clone)]
struct Standing {
    successes: f64,
    failures: f64,
    errors: HashMap<String, f64>,
    latency: Histogram<u32>,
    last_success: Option<i64>,
    last_failure: Option<i64>,
    updated_at: i64,
    changed: bool,
}

/// How one tool of one source has been doing, for people.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Statistics {
    /// The tool.
    pub tool: String,
    /// The source.
    pub source: SourceId,
    /// Calls that count, faded by age.
    pub calls: f64,
    /// The part of them that succeeded.
    pub success_rate: f64,
    /// The middle call took this long.
    pub median_milliseconds: f64,
    /// Nineteen of twenty calls were quicker than this.
    pub p95_milliseconds: f64,
    /// Milliseconds since 1970.
    pub last_success: Option<i64>,
    /// Failures by class, faded by age.
    pub errors: HashMap<String, f64>,
}

impl std::fmt::Debug for StoredHistory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredHistory").field("store", &self.store).finish_non_exhaustive()
    }
}

impl StoredHistory {
    /// Reads what is known and writes what is new, once a second, as long as it is used.
    pub async fn open(store: &Store) -> Result<Arc<Self>, StoreError> {
        let history = Self::with_clock(store, Arc::new(now)).await?;
        tokio::spawn(write_now_and_then(Arc::downgrade(&history)));
        Ok(history)
    }

    /// The same with a clock of its own; nothing is written until [`Self::flush`].
    pub async fn with_clock(store: &Store, clock: Clock) -> Result<Arc<Self>, StoreError> {
        let mut known: HashMap<SourceId, HashMap<String, Standing>> = HashMap::new();
        for row in sqlx::query("SELECT * FROM history").fetch_all(store.pool()).await? {
            let source = SourceId::from(row.try_get::<String, _>("source")?);
            known.entry(source).or_default().insert(row.try_get("tool")?, standing(&row)?);
        }
        Ok(Arc::new(Self { store: store.clone(), clock, known: Mutex::new(known) }))
    }

    /// Writes what changed.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let changed = self.take_changed()?;
        if changed.is_empty() {
            return Ok(());
        }
        self.store
            .write(Durability::Relaxed, changed, |connection, rows| Box::pin(upsert(connection, rows)))
            .await
    }

    /// All that is known, by tool and source.
    pub fn statistics(&self) -> Vec<Statistics> {
        let now = (self.clock)();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Statistics> = known
            .iter()
            .flat_map(|(source, tools)| {
                tools.iter().map(|(tool, standing)| standing.statistics(tool, source, now))
            })
            .collect();
        all.sort_by(|one, other| (&one.tool, &one.source).cmp(&(&other.tool, &other.source)));
        all
    }

    fn take_changed(&self) -> Result<Vec<Changed>, StoreError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = Vec::new();
        for (source, tools) in known.iter_mut() {
            for (tool, standing) in tools.iter_mut().filter(|(_, standing)| standing.changed) {
                standing.changed = false;
                rows.push(Changed::of(tool, source, standing)?);
            }
        }
        Ok(rows)
    }
}

async fn write_now_and_then(history: Weak<StoredHistory>) {
    loop {
        tokio::time::sleep(WRITE_EVERY).await;
        let Some(history) = history.upgrade() else { return };
        if let Err(error) = history.flush().await {
            tracing::warn!(%error, "statistics were not written");
        }
    }
}

impl History for StoredHistory {
    fn record(&self, outcome: &CallOutcome<'_>) {
        let now = (self.clock)();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let tools = known.entry(outcome.source.clone()).or_default();
        if !tools.contains_key(outcome.tool) {
            let Some(fresh) = Standing::fresh(now) else { return };
            tools.insert(outcome.tool.to_owned(), fresh);
        }
        if let Some(standing) = tools.get_mut(outcome.tool) {
            standing.record(outcome, now);
        }
    }

    fn last_success(&self, tool: &str, source: &SourceId) -> Option<u64> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let standing = known.get(source)?.get(tool)?;
        let success = standing.last_success?;
        // One failure after it takes a success away; the next success gives it back.
        (standing.last_failure.is_none_or(|failure| failure < success)).then(|| success.unsigned_abs())
    }
}

impl Standing {
    fn fresh(now: i64) -> Option<Self> {
        Some(Self {
            successes: 0.0,
            failures: 0.0,
            errors: HashMap::new(),
            latency: Histogram::new_with_bounds(1, LONGEST, 2).ok()?,
            last_success: None,
            last_failure: None,
            updated_at: now,
            changed: true,
        })
    }

    fn record(&mut self, outcome: &CallOutcome<'_>, now: i64) {
        self.fade(now);
        // Strictly later than anything before, so that two calls within a millisecond still have an order.
        let at = now.max(self.last_success.max(self.last_failure).unwrap_or(0) + 1);
        match outcome.error {
            None => {
                self.successes += 1.0;
                self.last_success = Some(at);
            }
            Some(kind) => {
                self.failures += 1.0;
                self.last_failure = Some(at);
                *self.errors.entry(word(&kind)).or_default() += 1.0;
            }
        }
        let microseconds = u64::try_from(outcome.elapsed.as_micros()).unwrap_or(LONGEST);
        self.latency.saturating_record(microseconds.clamp(1, LONGEST));
        self.changed = true;
    }

    /// Makes what was before count less.
    fn fade(&mut self, now: i64) {
        let factor = fading(now - self.updated_at);
        self.successes *= factor;
        self.failures *= factor;
        self.errors.values_mut().for_each(|count| *count *= factor);
        // The histogram counts whole calls: it is halved when its half-life has passed and not in between.
        if factor <= 0.5 {
            self.latency = halved(&self.latency);
        }
        self.updated_at = now;
    }

    fn statistics(&self, tool: &str, source: &SourceId, now: i64) -> Statistics {
        let mut faded = self.clone();
        faded.fade(now);
        let calls = faded.successes + faded.failures;
        #[expect(clippy::cast_precision_loss, reason = "an hour in microseconds is far below the limit")]
        let at = |quantile: f64| self.latency.value_at_quantile(quantile) as f64 / 1_000.0;
        Statistics {
            tool: tool.to_owned(),
            source: source.clone(),
            calls,
            success_rate: if calls > 0.0 { faded.successes / calls } else { 0.0 },
            median_milliseconds: at(0.5),
            p95_milliseconds: at(0.95),
            last_success: self.last_success,
            errors: faded.errors,
        }
    }
}

/// How much something counts that is this many milliseconds old.
fn fading(age: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "ages of thousands of years may lose their milliseconds")]
    let age = age.max(0) as f64;
    0.5_f64.powf(age / HALF_LIFE)
}

fn halved(latency: &Histogram<u32>) -> Histogram<u32> {
    let mut half = Histogram::new_from(latency);
    for value in latency.iter_recorded() {
        half.saturating_record_n(value.value_iterated_to(), value.count_at_value().div_ceil(2));
    }
    half
}

/// One row to be written.
struct Changed {
    tool: String,
    source: String,
    standing: Standing,
    errors: String,
    latency: Vec<u8>,
}

impl Changed {
    fn of(tool: &str, source: &SourceId, standing: &Standing) -> Result<Self, StoreError> {
        let corrupt = |error: &dyn std::fmt::Display| StoreError::Corrupt(error.to_string());
        let mut latency = Vec::new();
        V2Serializer::new().serialize(&standing.latency, &mut latency).map_err(|error| corrupt(&error))?;
        Ok(Self {
            tool: tool.to_owned(),
            source: source.to_string(),
            standing: standing.clone(),
            errors: serde_json::to_string(&standing.errors).map_err(|error| corrupt(&error))?,
            latency,
        })
    }
}

async fn upsert(connection: &mut AnyConnection, rows: &[Changed]) -> Result<(), StoreError> {
    let sql = "INSERT INTO history (tool, source, successes, failures, errors, latency, last_success, last_failure, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (tool, source) DO UPDATE SET
               successes = excluded.successes, failures = excluded.failures, errors = excluded.errors,
               latency = excluded.latency, last_success = excluded.last_success,
               last_failure = excluded.last_failure, updated_at = excluded.updated_at";
    for row in rows {
        let Standing { successes, failures, last_success, last_failure, updated_at, .. } = row.standing;
        let query =
            sqlx::query(sql).bind(row.tool.as_str()).bind(row.source.as_str()).bind(successes).bind(failures);
        let query = query.bind(row.errors.as_str()).bind(row.latency.as_slice()).bind(last_success);
        query.bind(last_failure).bind(updated_at).execute(&mut *connection).await?;
    }
    Ok(())
}

fn standing(row: &AnyRow) -> Result<Standing, StoreError> {
    let corrupt = |error: &dyn std::fmt::Display| StoreError::Corrupt(error.to_string());
    let latency: Vec<u8> = row.try_get("latency")?;
    let latency =
        Deserializer::new().deserialize(&mut latency.as_slice()).map_err(|error| corrupt(&error))?;
    Ok(Standing {
        successes: row.try_get("successes")?,
        failures: row.try_get("failures")?,
        errors: serde_json::from_str(&row.try_get::<String, _>("errors")?)
            .map_err(|error| corrupt(&error))?,
        latency,
        last_success: row.try_get("last_success")?,
        last_failure: row.try_get("last_failure")?,
        updated_at: row.try_get("updated_at")?,
        changed: false,
    })
}
