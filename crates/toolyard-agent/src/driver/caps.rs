//! What a run may not begin any more, because it has used what it may.

use super::session::{Draining, Session};
use crate::{Cap, Caps, Run, RunEnd, Task};

/// The cap that keeps a task from being begun. Requests that are under way count.
pub(super) fn cap_on(run: &Run, task: &Task, models_under_way: usize) -> Option<Cap> {
    let caps = &run.ask()?.caps;
    let spent = run.spent();
    task.model_task()?;
    if spent.model_calls.saturating_add(models_under_way) >= caps.model_calls {
        Some(Cap::ModelCalls)
    } else if spent.usage.input.saturating_add(spent.usage.output) >= caps.tokens {
        Some(Cap::Tokens)
    } else if caps.cost_micros > 0 && spent.usage.cost_micros >= caps.cost_micros {
        Some(Cap::Cost)
    } else {
        None
    }
}

/// The cap that keeps a call from being made.
pub(super) fn cap_on_call(run: &Run, call: &str) -> Option<Cap> {
    let caps = &run.ask()?.caps;
    if run.spent().calls >= caps.calls {
        Some(Cap::Calls)
    } else if run.identical(call) >= caps.identical {
        Some(Cap::Identical)
    } else {
        None
    }
}

/// How many tokens a run may still use.
pub(super) fn tokens_left(run: &Run) -> u64 {
    let spent = run.spent().usage;
    let limit = run.ask().map_or(0, |ask| ask.caps.tokens);
    limit.saturating_sub(spent.input.saturating_add(spent.output))
}

fn words(cap: Cap, caps: &Caps) -> String {
    match cap {
        Cap::Steps => format!("it may have {} steps", caps.steps),
        Cap::Calls => format!("it may make {} calls", caps.calls),
        Cap::ModelCalls => format!("it may ask models {} times", caps.model_calls),
        Cap::Replans => format!("it may plan anew {} times", caps.replans),
        Cap::Tokens => format!("it may use {} tokens", caps.tokens),
        Cap::Cost => format!("it may cost {} millionths", caps.cost_micros),
        Cap::Time => format!("it may take {} s", caps.time.as_secs_f64()),
        Cap::Identical => format!("it may make the same call {} times", caps.identical),
    }
}

impl Session<'_> {
    /// How a run ends that reached a cap, with what it found so far.
    pub(super) fn capped(&self, cap: Cap) -> RunEnd {
        let caps = self.run.ask().map(|ask| ask.caps.clone()).unwrap_or_default();
        let mut message = words(cap, &caps);
        if let Some(found) = self.without_model() {
            message.push_str(". What it found so far: ");
            message.push_str(&found);
        }
        RunEnd::Capped { cap, message }
    }

    /// The run ends as soon as nothing is under way.
    pub(super) fn drain(&mut self, cap: Cap) {
        self.draining.get_or_insert(Draining::Cap(cap));
    }
}
