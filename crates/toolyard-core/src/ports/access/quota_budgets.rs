//! [`QuotaBudgets`]: the counters of quotas, one for each limit and whose use it counts.

use std::{fmt, sync::Arc, time::Duration};

use crate::{BoxFuture, ContentHash, StorageError, WindowLimit};

/// Counts use against quotas, for one process or for all that share a store. Each request is atomic, and time is that of the
/// counter's clock.
pub trait QuotaBudgets: Send + Sync + fmt::Debug {
    /// Takes one from each of these budgets, or from none if one of them is used up. Returns how long to wait until something is
    /// left of each; it was taken if that is zero for all.
    fn take<'a>(&'a self, takes: &'a [BudgetTake]) -> BoxFuture<'a, Result<Vec<Duration>, StorageError>>;

    /// Counts use that is known only afterwards, even beyond the limit. Returns how long to wait until something is left. A charge
    /// can be repeated if its outcome is unknown: it is counted once.
    fn charge<'a>(&'a self, charge: &'a BudgetCharge) -> BoxFuture<'a, Result<Duration, StorageError>>;

    /// Sets how many permits of a key this process holds for `expires_in`: as many as it wants, unless others hold them.
    /// Returns how many it holds.
    fn hold_permits<'a>(&'a self, hold: &'a PermitHold) -> BoxFuture<'a, Result<u64, StorageError>>;

    /// Removes budgets of which nothing was used in the latest window, permits that expired, and what is known of old charges.
    fn purge_budgets(&self) -> BoxFuture<'_, Result<(), StorageError>>;
}

/// Identifies a budget, and describes it for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetName {
    /// Identifies the budget among all.
    pub key: ContentHash,
    /// The name of the quota.
    pub quota: Arc<str>,
    /// What is counted, as [`QuotaLimit::meter`](crate::QuotaLimit::meter) says.
    pub meter: &'static str,
    /// Whose use is counted, such as `caller alice`.
    pub subject: String,
}

/// A request to take one from a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetTake {
    /// The budget, created if needed.
    pub budget: Arc<BudgetName>,
    /// Its limit.
    pub limit: WindowLimit,
}

/// What a holder has used of a budget. With two equal totals it only reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetCharge {
    /// The budget, created if needed.
    pub budget: Arc<BudgetName>,
    /// Its limit.
    pub limit: WindowLimit,
    /// Whose totals these are. They only grow, so that a repeated charge adds nothing.
    pub holder: String,
    /// The total that is known to be charged.
    pub charged_before: u64,
    /// The total of all that the holder has used.
    pub total: u64,
}

/// How many permits a process wants to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermitHold {
    /// The permits.
    pub budget: Arc<BudgetName>,
    /// The process.
    pub holder: Arc<str>,
    /// How many there are for all processes.
    pub limit: u64,
    /// How many this process wants in total.
    pub wanted: u64,
    /// After this time without another request, others get them.
    pub expires_in: Duration,
}
