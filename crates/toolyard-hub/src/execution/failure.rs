//! Failures of candidates, and the one error they are reported as.

use toolyard_core::{ErrorKind, ToolError};

use crate::registry::candidate::ToolCandidate;

/// Failure of one candidate after all its attempts.
#[derive(Debug)]
pub(crate) struct CandidateFailure {
    pub(crate) error: ToolError,
    /// Whether it is certain that no attempt had an effect.
    pub(crate) had_no_effect: bool,
    /// Whether nothing of the attempt left this process.
    pub(crate) never_sent: bool,
    repeatable: bool,
}

impl CandidateFailure {
    pub(crate) fn of(candidate: &ToolCandidate, mut error: ToolError) -> Self {
        // Taken out of the error: a tool that itself calls the hub may return this error after other calls that were sent.
        let never_sent = error.take_never_sent() && error.had_no_effect();
        let had_no_effect = candidate.hints.read_only || error.had_no_effect();
        Self { error, had_no_effect, never_sent, repeatable: candidate.hints.repeatable() }
    }

    /// Whether this candidate may be called after this failure: the failure had no effect, or neither of the two tools does harm if
    /// the call is repeated. A caller must learn of a lost session from its own call.
    pub(crate) fn allows_next_candidate(&self, next: &ToolCandidate) -> bool {
        let may_repeat = self.repeatable && next.hints.repeatable();
        self.error.kind() != ErrorKind::SessionLost && (self.had_no_effect || may_repeat)
    }

    /// This failure, after an earlier attempt on the same candidate that may have had an effect. If the source could not be reached
    /// any more, the earlier error is reported: a caller must not conclude that nothing was sent.
    pub(crate) fn after(self, earlier: Self) -> Self {
        if !matches!(self.error.kind(), ErrorKind::Unavailable | ErrorKind::CircuitOpen) {
            return Self { had_no_effect: false, ..self };
        }
        let error = earlier.error.with_hint(format!("the last attempt failed: {}", self.error.message()));
        let error = match self.error.retry_after() {
            Some(delay) => error.with_retry_after(delay),
            None => error,
        };
        Self { error, ..earlier }
    }
}

/// Failure of a call on all its candidates.
#[derive(Debug)]
pub(crate) struct CallFailure {
    pub(crate) error: ToolError,
    /// One error message per called candidate, in order; or the one error before any call.
    pub(crate) messages: Vec<String>,
    /// Whether it is certain that no candidate had an effect.
    pub(crate) had_no_effect: bool,
}

impl CallFailure {
    /// Selects the error to report: an unknown outcome first, then a lost session, then one that may have had an effect, else the
    /// error of the preferred candidate. The hint lists the others.
    pub(crate) fn of(mut failures: Vec<CandidateFailure>, attempts: u32) -> Self {
        let messages = describe_failures(&failures);
        let had_no_effect = failures.iter().all(|failure| failure.had_no_effect);
        let position_of =
            |kind| failures.iter().position(|failure: &CandidateFailure| failure.error.kind() == kind);
        let reported = position_of(ErrorKind::OutcomeUnknown)
            .or_else(|| position_of(ErrorKind::SessionLost))
            .or_else(|| failures.iter().position(|failure| !failure.had_no_effect))
            .unwrap_or(0);
        if reported >= failures.len() {
            return ToolError::new(ErrorKind::Internal, "no candidate was called").into();
        }
        let error = failures.remove(reported).error.with_attempts(attempts);
        let others: Vec<String> = failures.iter().map(|failure| failure.error.to_string()).collect();
        let error = match others.as_slice() {
            [] => error,
            others => error.with_hint(format!("also failed: {}", others.join("; "))),
        };
        Self { error, messages, had_no_effect }
    }

    pub(crate) fn with_hint(self, hint: String) -> Self {
        Self { error: self.error.with_hint(hint), ..self }
    }
}

/// A failure before any candidate was called.
impl From<ToolError> for CallFailure {
    fn from(error: ToolError) -> Self {
        Self { messages: vec![error.to_string()], had_no_effect: error.had_no_effect(), error }
    }
}

/// One message per failure: `send_email (mail): did not answer within 30 s`.
pub(crate) fn describe_failures(failures: &[CandidateFailure]) -> Vec<String> {
    failures.iter().map(|failure| failure.error.to_string()).collect()
}
