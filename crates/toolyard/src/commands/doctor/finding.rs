//! What a check found, and how it is printed: one line per group, its items below.

use serde::Serialize;

use crate::terminal::{Output, fit_line, terminal_width};

/// Items of a group that are printed; JSON has all of them.
const MAX_PRINTED_ITEMS: usize = 12;
/// Names of a group that are printed; JSON has all of them.
const MAX_PRINTED_NAMES: usize = 6;
const INDENT: usize = 19;

#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    subject: &'static str,
    pub(super) detail: String,
    /// What the detail sums up, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    items: Vec<String>,
    /// Names of what the detail is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    Ok,
    Note,
    Problem,
}

impl Finding {
    pub(super) fn new(severity: Severity, subject: &'static str, detail: impl Into<String>) -> Self {
        let (items, names) = (Vec::new(), Vec::new());
        Self { severity, subject, detail: detail.into(), items, names, hint: None }
    }

    pub(super) fn ok(subject: &'static str, detail: impl Into<String>) -> Self {
        Self::new(Severity::Ok, subject, detail)
    }

    pub(super) fn note(subject: &'static str, detail: impl Into<String>) -> Self {
        Self::new(Severity::Note, subject, detail)
    }

    pub(super) fn problem(subject: &'static str, detail: impl Into<String>) -> Self {
        Self::new(Severity::Problem, subject, detail)
    }

    /// A group of findings under a heading, which gets their number. `None` if there are none; one alone needs no heading.
    pub(super) fn group(
        severity: Severity,
        subject: &'static str,
        heading: impl FnOnce(usize) -> String,
        mut items: Vec<String>,
    ) -> Option<Self> {
        match items.len() {
            0 => None,
            1 => Some(Self::new(severity, subject, items.pop().unwrap_or_default())),
            count => Some(Self { items, ..Self::new(severity, subject, heading(count)) }),
        }
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn with_names(mut self, names: Vec<String>) -> Self {
        self.names = names;
        self
    }

    /// How many findings it stands for.
    pub(super) fn count(&self) -> usize {
        self.items.len().max(1)
    }

    pub(super) fn print(&self, output: &Output) {
        let severity = match self.severity {
            Severity::Ok => "ok",
            Severity::Note => "note",
            Severity::Problem => "PROBLEM",
        };
        let names = some_names(&self.names).map(|names| format!(": {names}")).unwrap_or_default();
        output.line(&format!("{severity:<8} {:<9} {}{names}", self.subject, self.detail));
        let width = terminal_width().map_or(usize::MAX, |width| width.saturating_sub(INDENT));
        for item in self.items.iter().take(MAX_PRINTED_ITEMS) {
            output.line(&format!("{:INDENT$}{}", "", fit_line(item, width)));
        }
        if let more @ 1.. = self.items.len().saturating_sub(MAX_PRINTED_ITEMS) {
            output.line(&format!("{:INDENT$}… {more} more: toolyard doctor --json", ""));
        }
        if let Some(hint) = &self.hint {
            output.line(&format!("{:INDENT$}hint: {hint}", ""));
        }
    }
}

/// `a, b, c and 4 more`; `None` without names.
pub(super) fn some_names<T: AsRef<str>>(names: &[T]) -> Option<String> {
    let shown: Vec<&str> = names.iter().take(MAX_PRINTED_NAMES).map(AsRef::as_ref).collect();
    let more = match names.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!shown.is_empty()).then(|| format!("{}{more}", shown.join(", ")))
}
