//! `toolyard quotas`: shows how much of the quotas is used.

use serde_json::{Value, json};
use toolyard_store::{QuotaUse, Store, StoreError};

use crate::{config::CliContext, error::CliError, terminal::Output};

const MONEY_METER: &str = "money";
const MICROS_PER_UNIT: f64 = 1e6;

pub(super) async fn run(store: &Store, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let used = store.quota_use().await.map_err(|error: StoreError| {
        CliError::unreachable(format!("failed to read the budgets of quotas: {error}"))
            .with_hint("check the store: toolyard store check")
    })?;
    if output.is_json() {
        output.json(&used.iter().map(to_json).collect::<Vec<_>>());
    } else if context.settings.quotas.is_empty() {
        output.message("No quotas. Add `[[quotas]]` to toolyard.toml; see docs/guide/quotas.md");
    } else if used.is_empty() {
        output.message("Nothing is used of any quota.");
    } else {
        output.table(
            ["QUOTA", "COUNTS", "OF", "USED", "LIMIT", "WINDOW", "RESETS IN"],
            used.iter().map(to_row).collect(),
        );
    }
    Ok(())
}

fn to_row(listed: &QuotaUse) -> [String; 7] {
    let [used, limit] = [listed.used, listed.limit].map(|amount| match listed.counts == MONEY_METER {
        true => format!("{:.2}", amount as f64 / MICROS_PER_UNIT),
        false => amount.to_string(),
    });
    let [window, resets_in] = match listed.window {
        Some((window, resets_in)) => [format!("{window:?}"), format!("{} s", resets_in.as_secs_f64().ceil())],
        None => ["-", "-"].map(str::to_owned),
    };
    [listed.quota.clone(), listed.counts.clone(), listed.subject.clone(), used, limit, window, resets_in]
}

fn to_json(listed: &QuotaUse) -> Value {
    let [used, limit] = [listed.used, listed.limit].map(|amount| match listed.counts == MONEY_METER {
        true => json!(amount as f64 / MICROS_PER_UNIT),
        false => json!(amount),
    });
    let QuotaUse { quota, counts, subject, .. } = listed;
    let mut json = json!({"quota": quota, "counts": counts, "of": subject, "used": used, "limit": limit});
    if let (Some((window, resets_in)), Some(fields)) = (listed.window, json.as_object_mut()) {
        fields.insert("window_seconds".to_owned(), json!(window.as_secs_f64()));
        fields.insert("resets_in_seconds".to_owned(), json!(resets_in.as_secs_f64()));
    }
    json
}
