//! Errors in policy files, with their places.

use std::{fmt, sync::Arc};

/// Something wrong, or suspicious, in a policy file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyProblem {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// The line, from 1; `None` if it concerns the whole file.
    pub line: Option<usize>,
    /// The policy by its id, if it could be read.
    pub policy: Option<Arc<str>>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        f.write_str(": ")?;
        if let Some(policy) = &self.policy {
            write!(f, "policy `{policy}`: ")?;
        }
        f.write_str(&self.message)
    }
}

/// Policy files that cannot be used; none of their policies is in effect.
///
/// Remedy: correct the lines that the messages name; check with `toolyard policy check`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", join(problems))]
pub struct PolicyError {
    /// What is wrong; never empty.
    pub problems: Vec<PolicyProblem>,
}

fn join(problems: &[PolicyProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
