//! `toolyard quotas`: shows how much of the quotas is used.

use serde_json::{Value, json};
use toolyard_core::{QuotaBudgets as _, StorageError, StoredBudget, StoredPermits};
use toolyard_store::Store;

use crate::{config::CliContext, error::CliError, terminal::Output};

const MONEY_METER: &str = "money";
const MICROS_PER_UNIT: f64 = 1e6;

const PERMITS_METER: &str = "concurrent_calls";

pub(super) async fn run(store: &Store, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let failed = |error: StorageError| {
        CliError::unreachable(format!("failed to read the budgets of quotas: {error}"))
            .with_hint("check the store: toolyard store check")
    };
    let budgets = store.budgets().await.map_err(failed)?;
    let permits = store.held_permits().await.map_err(failed)?;
    if output.is_json() {
        let listed = budgets.iter().map(budget_json).chain(permits.iter().map(permits_json));
        output.json(&listed.collect::<Vec<_>>());
    } else if context.settings.quotas.is_empty() {
        output.message("No quotas. Add `[[quotas]]` to toolyard.toml; see docs/guide/quotas.md");
    } else if budgets.is_empty() && permits.is_empty() {
        output.message("Nothing is used of any quota.");
    } else {
        output.table(
            ["QUOTA", "COUNTS", "OF", "USED", "LIMIT", "WINDOW", "RESETS IN"],
            budgets.iter().map(budget_row).chain(permits.iter().map(permits_row)).collect(),
        );
    }
    Ok(())
}

fn budget_row(budget: &StoredBudget) -> [String; 7] {
    let [used, limit] = [budget.used, budget.limit.limit].map(|amount| match budget.meter == MONEY_METER {
        true => format!("{:.2}", amount as f64 / MICROS_PER_UNIT),
        false => amount.to_string(),
    });
    [
        budget.quota.clone(),
        budget.meter.clone(),
        budget.subject.clone(),
        used,
        limit,
        format!("{:?}", budget.limit.window()),
        format!("{} s", budget.resets_in.as_secs_f64().ceil()),
    ]
}

fn permits_row(permits: &StoredPermits) -> [String; 7] {
    let StoredPermits { quota, subject, limit, held } = permits;
    let (used, limit) = (held.to_string(), limit.to_string());
    [quota.clone(), PERMITS_METER.to_owned(), subject.clone(), used, limit, "-".to_owned(), "-".to_owned()]
}

fn budget_json(budget: &StoredBudget) -> Value {
    let [used, limit] = [budget.used, budget.limit.limit].map(|amount| match budget.meter == MONEY_METER {
        true => json!(amount as f64 / MICROS_PER_UNIT),
        false => json!(amount),
    });
    json!({
        "quota": budget.quota,
        "counts": budget.meter,
        "of": budget.subject,
        "used": used,
        "limit": limit,
        "window_seconds": budget.limit.window().as_secs_f64(),
        "resets_in_seconds": budget.resets_in.as_secs_f64(),
    })
}

fn permits_json(permits: &StoredPermits) -> Value {
    let StoredPermits { quota, subject, limit, held } = permits;
    json!({"quota": quota, "counts": PERMITS_METER, "of": subject, "used": held, "limit": limit})
}
