//! Enforces the limits of a run before something starts.

use crate::{Run, RunEnd, RunLimit, RunLimits, Task};

/// The limit that forbids a task's model request. Requests in flight count.
pub(super) fn limit_on_task(run: &Run, task: &Task, models_in_flight: usize) -> Option<RunLimit> {
    let limits = &run.request()?.limits;
    let usage = run.usage();
    task.model_task()?;
    if usage.model_calls.saturating_add(models_in_flight) >= limits.model_calls {
        Some(RunLimit::ModelCalls)
    } else if usage.model.input.saturating_add(usage.model.output) >= limits.tokens {
        Some(RunLimit::Tokens)
    } else if limits.cost_micros > 0 && usage.model.cost_micros >= limits.cost_micros {
        Some(RunLimit::Cost)
    } else {
        None
    }
}

/// The limit that forbids a tool call.
pub(super) fn limit_on_call(run: &Run, call: &str) -> Option<RunLimit> {
    let limits = &run.request()?.limits;
    if run.usage().calls >= limits.calls {
        Some(RunLimit::Calls)
    } else if run.call_count(call) >= limits.identical_calls {
        Some(RunLimit::IdenticalCalls)
    } else {
        None
    }
}

/// How many tokens a run may still use.
pub(super) fn remaining_tokens(run: &Run) -> u64 {
    let usage = run.usage().model;
    let limit = run.request().map_or(0, |request| request.limits.tokens);
    limit.saturating_sub(usage.input.saturating_add(usage.output))
}

fn describe(limit: RunLimit, limits: &RunLimits) -> String {
    match limit {
        RunLimit::Steps => format!("the run reached its limit of {} steps", limits.steps),
        RunLimit::Calls => format!("the run reached its limit of {} tool calls", limits.calls),
        RunLimit::ModelCalls => format!("the run reached its limit of {} model requests", limits.model_calls),
        RunLimit::Replans => format!("the run reached its limit of {} replans", limits.replans),
        RunLimit::Tokens => format!("the run reached its limit of {} tokens", limits.tokens),
        RunLimit::Cost => {
            format!("the run reached its cost limit of {} millionths", limits.cost_micros)
        }
        RunLimit::Time => format!("the run reached its time limit of {} s", limits.time.as_secs_f64()),
        RunLimit::IdenticalCalls => {
            format!("the run reached its limit of {} identical tool calls", limits.identical_calls)
        }
    }
}

/// How a run ends at a limit, with what it found so far.
pub(super) fn limit_reached(run: &Run, limit: RunLimit, found: Option<String>) -> RunEnd {
    let limits = run.request().map(|request| request.limits.clone()).unwrap_or_default();
    let mut message = describe(limit, &limits);
    if let Some(found) = found {
        message.push_str(". Found so far: ");
        message.push_str(&found);
    }
    RunEnd::LimitReached { limit, message }
}
