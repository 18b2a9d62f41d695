//! Enforces the limits of a run before something starts.

use super::run_driver::RunDriver;
use crate::{RunEnd, RunLimit, RunLimits, Task};

impl RunDriver<'_> {
    /// The limit that forbids a task's model request. Requests in flight count.
    pub(super) fn limit_on_task(&self, task: &Task) -> Option<RunLimit> {
        let limits = &self.run.request()?.limits;
        let usage = self.run.usage();
        task.model_task()?;
        if usage.model_calls.saturating_add(self.in_flight.models.len()) >= limits.model_calls {
            Some(RunLimit::ModelCalls)
        } else if usage.model.input.saturating_add(usage.model.output) >= limits.tokens {
            Some(RunLimit::Tokens)
        } else if limits.cost_micros > 0 && usage.model.cost_micros >= limits.cost_micros {
            Some(RunLimit::Cost)
        } else {
            None
        }
    }

    /// The limit that forbids a call; identical calls have the same hash.
    pub(super) fn limit_on_call(&self, call_hash: &str) -> Option<RunLimit> {
        let limits = &self.run.request()?.limits;
        if self.run.usage().calls >= limits.calls {
            Some(RunLimit::Calls)
        } else if self.run.call_count(call_hash) >= limits.identical_calls {
            Some(RunLimit::IdenticalCalls)
        } else {
            None
        }
    }

    /// How the run ends at a limit, with what it found so far.
    pub(super) fn limit_reached(&self, limit: RunLimit) -> RunEnd {
        let limits = self.run.request().map(|request| request.limits.clone()).unwrap_or_default();
        let mut message = match (limit, &self.exceeded_quota) {
            (RunLimit::Quota, Some(quota)) => format!("the run was stopped: {quota}"),
            _ => describe(limit, &limits),
        };
        if let Some(found) = self.fallback_answer() {
            message.push_str(". Found so far: ");
            message.push_str(&found);
        }
        RunEnd::LimitReached { limit, message }
    }
}

fn describe(limit: RunLimit, limits: &RunLimits) -> String {
    match limit {
        RunLimit::Steps => format!("the run reached its limit of {} steps", limits.steps),
        RunLimit::Calls => format!("the run reached its limit of {} tool calls", limits.calls),
        RunLimit::ModelCalls => format!("the run reached its limit of {} model requests", limits.model_calls),
        RunLimit::Tokens => format!("the run reached its limit of {} tokens", limits.tokens),
        RunLimit::Cost => {
            format!(
                "the run reached its cost limit of {} millionths of the currency unit",
                limits.cost_micros
            )
        }
        RunLimit::Time => format!("the run reached its time limit of {} s", limits.time.as_secs_f64()),
        RunLimit::Quota => "the run was stopped because a quota is used up".to_owned(),
        RunLimit::IdenticalCalls => {
            format!("the run reached its limit of {} identical tool calls", limits.identical_calls)
        }
    }
}
