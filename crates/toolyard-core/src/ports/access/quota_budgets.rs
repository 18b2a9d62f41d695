//! [`QuotaBudgets`]: the budgets of quotas that several processes share.

use std::{fmt, sync::Arc, time::Duration};

use crate::{BoxFuture, ContentHash, StorageError, WindowLimit};

/// Budgets in a store. Each request is atomic, and all processes are told the time by the store's clock.
pub trait QuotaBudgets: Send + Sync + fmt::Debug {
    /// Changes one budget, creating it if needed: gives back, charges, then grants as much as is left. A change that was made
    /// before, as its number says, is not made again, and its grant is returned again. So a change whose outcome is unknown can
    /// be repeated.
    fn change_budget<'a>(
        &'a self,
        change: &'a BudgetChange,
    ) -> BoxFuture<'a, Result<BudgetState, StorageError>>;

    /// Sets how many permits of a key this process holds for `expires_in`: as many as it wants, unless others hold them.
    /// Returns how many it holds.
    fn hold_permits<'a>(&'a self, hold: &'a PermitHold) -> BoxFuture<'a, Result<u64, StorageError>>;

    /// All budgets of which something was used in the latest window.
    fn budgets(&self) -> BoxFuture<'_, Result<Vec<StoredBudget>, StorageError>>;

    /// All permits that are held.
    fn held_permits(&self) -> BoxFuture<'_, Result<Vec<StoredPermits>, StorageError>>;

    /// Removes budgets of which nothing was used in the latest window, permits that expired, and the numbers of old changes.
    fn purge_budgets(&self) -> BoxFuture<'_, Result<(), StorageError>>;
}

/// Identifies a budget, and describes it for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetName {
    /// Identifies the budget among all.
    pub key: ContentHash,
    /// The name of the quota.
    pub quota: Arc<str>,
    /// What is counted: `calls`, `permits`, `tokens` or `money`.
    pub meter: &'static str,
    /// Whose use is counted, such as `caller alice`.
    pub subject: String,
}

/// A request to change a budget. Without any change it only reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetChange {
    /// The budget.
    pub budget: Arc<BudgetName>,
    /// Its limit.
    pub limit: WindowLimit,
    /// Who changes it: numbers are compared only with those of the same holder.
    pub holder: Arc<str>,
    /// The number of this change, above that of every earlier change of this budget by this holder.
    pub number: u64,
    /// How much is wanted of it; the grant must be spent before the slot ends.
    pub wanted: u64,
    /// What was used already, counted even beyond the limit.
    pub charged: u64,
    /// Granted amounts that were not spent, by slot.
    pub given_back: Vec<(u64, u64)>,
}

impl BudgetChange {
    /// Whether nothing is to be changed.
    pub fn only_reads(&self) -> bool {
        self.wanted == 0 && self.charged == 0 && self.given_back.is_empty()
    }
}

/// A budget after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetState {
    /// How much was granted.
    pub granted: u64,
    /// The slot of the grant.
    pub slot: u64,
    /// How long the slot lasts.
    pub slot_ends_in: Duration,
    /// What is used, with the grant.
    pub used: u64,
    /// How long to wait until something is left; zero if there is.
    pub wait: Duration,
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

/// A budget as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBudget {
    /// The name of the quota.
    pub quota: String,
    /// What is counted: `calls`, `tokens` or `money`.
    pub meter: String,
    /// Whose use is counted.
    pub subject: String,
    /// Its limit at the latest change.
    pub limit: WindowLimit,
    /// What is used.
    pub used: u64,
    /// How long to wait until nothing is used, if nothing more is.
    pub resets_in: Duration,
}

/// Permits for calls at the same time as the store has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPermits {
    /// The name of the quota.
    pub quota: String,
    /// Whose calls are counted.
    pub subject: String,
    /// How many there are.
    pub limit: u64,
    /// How many all processes hold.
    pub held: u64,
}
