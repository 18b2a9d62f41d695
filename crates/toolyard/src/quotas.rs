//! Builds the quotas of the settings.

use std::sync::Arc;

use toolyard_core::{CallQuota, QuotaBudgets};
use toolyard_quota::{InvalidQuota, QuotaRule, Quotas};

use crate::{Settings, settings::QuotaSettings};

/// The quotas of a hub; `None` if the settings have none. Processes with the same store share the budgets.
pub(crate) fn hub_quota(
    settings: &Settings,
    store: Option<Arc<dyn QuotaBudgets>>,
) -> Result<Option<Arc<dyn CallQuota>>, InvalidQuota> {
    let rules: Vec<QuotaRule> = settings.quotas.iter().map(QuotaSettings::rule).collect();
    let has_invalid_sum = |quota: &&QuotaSettings| {
        quota.money.is_some_and(|money| !money.limit.is_finite() || money.limit < 0.0)
    };
    if let Some(quota) = settings.quotas.iter().find(has_invalid_sum) {
        return Err(InvalidQuota::MoneyLimit(quota.name.as_str().into()));
    }
    if rules.is_empty() {
        return Ok(None);
    }
    let quotas = match store {
        Some(store) => Quotas::shared(rules, store)?,
        None => Quotas::local(rules)?,
    };
    Ok(Some(Arc::new(quotas)))
}
