//! How candidates failed, and what of it is said and concluded.

use toolyard_core::{ErrorKind, ToolError};

use crate::candidate::ToolCandidate;

/// One candidate's failure after all its attempts.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: ToolError,
    /// Whether it is certain that no attempt changed anything.
    pub(crate) no_effect: bool,
    repeatable: bool,
}

impl Failure {
    pub(crate) fn of(candidate: &ToolCandidate, error: ToolError) -> Self {
        let no_effect = candidate.hints.read_only || error.had_no_effect();
        Self { error, no_effect, repeatable: candidate.hints.repeatable() }
    }

    /// Whether somebody else may be asked after it.
    pub(crate) fn harmless(&self) -> bool {
        self.no_effect || self.repeatable
    }
}

/// A call that nobody answered.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) error: ToolError,
    /// One line per candidate that was asked, in order.
    pub(crate) lines: Vec<String>,
    /// Whether it is certain that nothing was changed anywhere.
    pub(crate) no_effect: bool,
}

impl Failed {
    /// Of all failures, in the order of the candidates, the one that says most: an unknown outcome before all others,
    /// then one that may have changed something, else that of whoever was preferred. The others go into its hint.
    pub(crate) fn of(mut failures: Vec<Failure>, attempts: u32) -> Self {
        let lines = lines(&failures);
        let no_effect = failures.iter().all(|failure| failure.no_effect);
        let unknown = |failure: &Failure| failure.error.kind() == ErrorKind::OutcomeUnknown;
        let main = failures.iter().position(unknown);
        let main = main.or_else(|| failures.iter().position(|failure| !failure.harmless())).unwrap_or(0);
        if main >= failures.len() {
            return ToolError::new(ErrorKind::Internal, "nobody was asked").into();
        }
        let error = failures.remove(main).error.with_attempts(attempts);
        let others: Vec<String> = failures.iter().map(|failure| failure.error.to_string()).collect();
        let error = match others.as_slice() {
            [] => error,
            others => error.with_hint(format!("also failed: {}", others.join("; "))),
        };
        Self { error, lines, no_effect }
    }

    /// The same with more to do about it.
    pub(crate) fn with_hint(self, hint: String) -> Self {
        Self { error: self.error.with_hint(hint), ..self }
    }
}

/// A failure before anybody was asked.
impl From<ToolError> for Failed {
    fn from(error: ToolError) -> Self {
        Self { lines: vec![error.to_string()], no_effect: error.had_no_effect(), error }
    }
}

/// One line per failure: `send_email (mail): did not answer within 30 s`.
pub(crate) fn lines(failures: &[Failure]) -> Vec<String> {
    failures.iter().map(|failure| failure.error.to_string()).collect()
}
