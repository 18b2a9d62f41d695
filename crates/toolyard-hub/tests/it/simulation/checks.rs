//! What must hold for every call, whatever the sources do. Each check returns what does not hold.

use toolyard_core::{ErrorKind, ToolError, ToolOutput};

use super::{
    callers::{Expectation, FinishedCall, Outcome},
    plan::Plan,
    routing_model::{ExpectedCandidate, KnownEffect},
    sources::{Ending, LedgerEntry, call_name},
};

/// Virtual time that a call may take beyond its deadline.
const DEADLINE_MARGIN_MS: u64 = 10;
/// At most so many candidates are called at once.
const MAX_FIRST_BATCH: usize = toolyard_hub::MAX_FIRST_BATCH;

/// A call with what the tools received of it.
struct CheckedCall<'a> {
    call: &'a FinishedCall,
    entries: Vec<&'a LedgerEntry>,
    plan: &'a Plan,
}

/// Everything that does not hold for these calls.
pub(crate) fn violations(plan: &Plan, calls: &[FinishedCall], ledger: &[LedgerEntry]) -> Vec<String> {
    let mut violations = Vec::new();
    for call in calls {
        let entries = ledger.iter().filter(|entry| entry.call == call.plan.number).collect();
        let checked = CheckedCall { call, entries, plan };
        let checks = [
            checked.only_selected_sources_receive_arguments(),
            checked.unsafe_calls_take_effect_at_most_once(),
            checked.unsafe_calls_run_one_after_another(),
            checked.calls_end_by_their_deadline(),
            checked.retries_follow_the_policy(),
            checked.the_outcome_is_true(),
            checked.an_unknown_effect_is_reported(),
            checked.failures_are_isolated(),
        ];
        let found = checks.into_iter().filter_map(Result::err);
        violations.extend(found.map(|violation| format!("call-{}: {violation}", call.plan.number)));
    }
    violations
}

type Check = Result<(), String>;

fn ensure(holds: bool, violation: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(violation()) }
}

impl CheckedCall<'_> {
    fn candidate(&self, entry: &LedgerEntry) -> Option<&ExpectedCandidate> {
        let candidates = &self.call.route.candidates;
        candidates.iter().find(|one| (one.source, one.version) == (entry.source, entry.version))
    }

    fn effect(&self, entry: &LedgerEntry) -> KnownEffect {
        self.candidate(entry).map_or(KnownEffect::Unknown, |candidate| candidate.effect)
    }

    fn is_safe_to_repeat(&self) -> bool {
        self.call.route.candidates.iter().all(|candidate| candidate.effect != KnownEffect::Unknown)
    }

    /// Executions that may have changed something.
    fn effects(&self) -> impl Iterator<Item = &LedgerEntry> {
        let may_change =
            |entry: &&LedgerEntry| entry.is_executed && self.effect(entry) != KnownEffect::ReadOnly;
        self.entries.iter().copied().filter(may_change)
    }

    fn only_selected_sources_receive_arguments(&self) -> Check {
        for entry in &self.entries {
            let is_selected = entry.tool == self.call.plan.tool && self.candidate(entry).is_some();
            ensure(is_selected, || {
                format!("{entry:?} is neither selected nor equivalent: {:?}", self.call.route)
            })?;
            let is_in_time = entry.begun_at >= self.call.begun_at && entry.begun_at <= self.call.ended_at;
            ensure(is_in_time, || format!("{entry:?} began outside of the call"))?;
        }
        Ok(())
    }

    fn unsafe_calls_take_effect_at_most_once(&self) -> Check {
        let is_unsafe = self.effects().any(|entry| self.effect(entry) == KnownEffect::Unknown);
        let effects: Vec<&LedgerEntry> = self.effects().collect();
        ensure(!is_unsafe || effects.len() == 1, || {
            format!("not known to be safe to repeat, and executed several times: {effects:?}")
        })
    }

    fn unsafe_calls_run_one_after_another(&self) -> Check {
        let is_overlapping = |pair: &[&LedgerEntry]| match pair {
            [one, next] => one.ended_at.is_none_or(|ended_at| next.begun_at < ended_at),
            _ => false,
        };
        let overlapping = self.entries.windows(2).find(|pair| is_overlapping(pair));
        ensure(self.is_safe_to_repeat() || overlapping.is_none(), || {
            format!("not all candidates are safe to repeat, and two were called at once: {overlapping:?}")
        })
    }

    fn calls_end_by_their_deadline(&self) -> Check {
        let elapsed = self.call.ended_at - self.call.begun_at;
        let limit = self.call.plan.cancel_after.unwrap_or(u64::MAX).min(self.call.plan.timeout);
        ensure(elapsed <= limit + DEADLINE_MARGIN_MS, || format!("took {elapsed} ms of {limit} ms"))?;
        let running =
            self.entries.iter().find(|entry| entry.ended_at.is_none_or(|at| at > self.call.ended_at));
        ensure(running.is_none(), || format!("ended while a tool was running: {running:?}"))
    }

    fn retries_follow_the_policy(&self) -> Check {
        for candidate in &self.call.route.candidates {
            let of_candidate = |entry: &&&LedgerEntry| entry.source == candidate.source;
            let attempts: Vec<&&LedgerEntry> = self.entries.iter().filter(of_candidate).collect();
            let limit = self.call.retry.max_attempts as usize;
            ensure(attempts.len() <= limit, || format!("more than {limit} attempts: {attempts:?}"))?;
            for pair in attempts.windows(2) {
                let [one, next] = pair else { continue };
                let may_repeat = candidate.effect != KnownEffect::Unknown || one.ending == Ending::NotSent;
                ensure(may_repeat, || format!("repeated although it was sent: {one:?}, {next:?}"))?;
                let Ending::RateLimited(delay) = one.ending else { continue };
                let earliest = one.ended_at.map(|at| u128::from(at) + delay.as_millis());
                ensure(earliest.is_some_and(|earliest| u128::from(next.begun_at) >= earliest), || {
                    format!("repeated earlier than the source asked: {one:?}, {next:?}")
                })?;
            }
        }
        Ok(())
    }

    fn the_outcome_is_true(&self) -> Check {
        match &self.call.outcome {
            Outcome::Output(output) => self.output_is_true(output),
            Outcome::Error(error) => self.error_is_true(error),
            Outcome::Cancelled => Ok(()),
        }
    }

    fn output_is_true(&self, output: &ToolOutput) -> Check {
        let (text, own_name) = (output.to_text(), call_name(self.call.plan.number));
        let names: Vec<&str> = text.split_whitespace().filter(|word| word.starts_with("call-")).collect();
        let is_own = !names.is_empty() && names.iter().all(|name| **name == own_name);
        ensure(is_own, || format!("the answer of another call: {text:?}"))?;
        ensure(names.len() == output.meta.sources.len(), || {
            format!("{text:?} of {:?}", output.meta.sources)
        })?;
        for source in &output.meta.sources {
            let has_answered = self.entries.iter().any(|entry| {
                self.plan.sources[entry.source].id == source.as_str() && entry.ending == Ending::Answered
            });
            ensure(has_answered, || format!("an answer of {source}, which did not answer"))?;
        }
        Ok(())
    }

    fn error_is_true(&self, error: &ToolError) -> Check {
        use ErrorKind as K;
        let received = self.entries.len();
        ensure(error.attempts() as usize == received, || {
            format!("{} attempts are reported, and tools received {received}: {error}", error.attempts())
        })?;
        let effects: Vec<&LedgerEntry> = self.effects().collect();
        ensure(!error.had_no_effect() || effects.is_empty(), || {
            format!("reported as without effect ({:?}: {error}), but executed: {effects:?}", error.kind())
        })?;
        let has = |endings: &[Ending]| self.entries.iter().any(|entry| endings.contains(&entry.ending));
        let route = &self.call.route;
        let is_expected = match error.kind() {
            K::UnknownTool | K::UnknownSource => route.candidates.is_empty() && !route.all_reject,
            K::InvalidArguments => route.all_reject,
            _ if route.candidates.is_empty() => false,
            K::Unavailable | K::CircuitOpen => true,
            K::Failed => has(&[Ending::Failed]),
            K::Timeout | K::ResponseLost | K::Internal => has(&[Ending::Lost]),
            K::OutcomeUnknown => {
                let is_lost = |entry: &&&LedgerEntry| entry.ending == Ending::Lost;
                self.entries.iter().filter(is_lost).any(|entry| self.effect(entry) == KnownEffect::Unknown)
            }
            _ => false,
        };
        ensure(is_expected, || format!("unexpected error {:?}: {error}", error.kind()))
    }

    /// A caller whose unsafe call may have taken effect learns of it.
    fn an_unknown_effect_is_reported(&self) -> Check {
        let is_lost =
            |entry: &&LedgerEntry| entry.ending == Ending::Lost && self.effect(entry) == KnownEffect::Unknown;
        let Some(lost) = self.effects().find(is_lost) else { return Ok(()) };
        let is_reported = match &self.call.outcome {
            Outcome::Output(_) => false,
            Outcome::Error(error) => error.kind() == ErrorKind::OutcomeUnknown,
            Outcome::Cancelled => self.call.is_effect_pending,
        };
        ensure(is_reported, || format!("not reported that the outcome is unknown: {lost:?}"))
    }

    /// A call succeeds if one of its candidates must answer, and the failures of the others cannot keep the hub from calling it.
    fn failures_are_isolated(&self) -> Check {
        let call = self.call;
        let same_phase = |candidate: &ExpectedCandidate| {
            let phase_at = |at| self.plan.sources[candidate.source].phase_at(at).0;
            phase_at(call.begun_at) == phase_at(call.ended_at)
        };
        let expectations: Vec<Expectation> = call
            .route
            .candidates
            .iter()
            .zip(&call.expectations)
            .map(|(candidate, known)| if same_phase(candidate) { *known } else { Expectation::Anything })
            .collect();
        let one_answers = expectations.contains(&Expectation::Answers);
        let all_are_tried = match self.is_safe_to_repeat() {
            true => expectations.len() <= MAX_FIRST_BATCH,
            false => !expectations.contains(&Expectation::Anything),
        };
        let must_succeed = one_answers && all_are_tried;
        let has_failed = matches!(call.outcome, Outcome::Error(_));
        ensure(!(must_succeed && has_failed), || {
            format!("failed although a healthy source has the tool: {call:?}")
        })
    }
}
