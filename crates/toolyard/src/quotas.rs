//! Builds the quotas of the settings.

use std::{any::Any, sync::Arc};

use toolyard_core::{CallQuota, QuotaBudgets};
use toolyard_quota::{InvalidQuota, QuotaRule, Quotas};

use crate::{Settings, settings::QuotaSettings};

/// The quotas of a hub; `None` if the settings have none. Processes with the same store share the budgets. What the previous
/// quotas counted still counts, where a quota counts the same.
pub(crate) fn hub_quota(
    settings: &Settings,
    store: Option<Arc<dyn QuotaBudgets>>,
    previous: Option<&dyn CallQuota>,
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
    let previous = previous.and_then(|quota| (quota as &dyn Any).downcast_ref::<Quotas>());
    let quotas = match (previous, store) {
        (Some(previous), _) => previous.with_rules(rules)?,
        (None, Some(store)) => Quotas::shared(rules, store)?,
        (None, None) => Quotas::local(rules)?,
    };
    Ok(Some(Arc::new(quotas)))
}
