//! [`StepFact`]: what a step did, as evidence for an answer.

use std::cell::OnceCell;

use serde_json::{Map, Value};

use super::denial::denied_change;

/// What a step did, as evidence for an answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct StepFact {
    pub(crate) id: String,
    pub(crate) tool: String,
    /// Whether its tool may change something.
    pub(crate) changes: bool,
    pub(crate) outcome: FactOutcome,
    pub(crate) arguments: Map<String, Value>,
    /// Its value; null for what a model thought out, which is no evidence for what a model says.
    pub(crate) result: Value,
    /// The steps whose values its arguments refer to.
    pub(crate) references: Vec<String>,
    /// Whether `result` is the whole value.
    pub(crate) is_complete: bool,
    /// The planning round it belongs to.
    pub(crate) round: usize,
    pub(crate) cached: CachedTexts,
}

/// What is derived from a step once.
#[derive(Debug, Clone, Default)]
pub(crate) struct CachedTexts {
    denial: OnceCell<Option<String>>,
    call: OnceCell<String>,
    result: OnceCell<String>,
}

/// How far a step came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum FactOutcome {
    #[default]
    Done,
    /// It failed, was denied or never started.
    Unfinished { reason: String },
}

impl StepFact {
    pub(super) fn is_done(&self) -> bool {
        self.outcome == FactOutcome::Done
    }

    /// Whether it made its change: it ended, and its result does not deny the change.
    pub(super) fn is_effective(&self) -> bool {
        self.is_done() && self.changes && self.denial().is_none()
    }

    /// What its result says against the change that it was to make.
    pub(super) fn denial(&self) -> Option<&str> {
        let find = || {
            (self.is_done() && self.changes).then(|| denied_change(&self.arguments, &self.result)).flatten()
        };
        self.cached.denial.get_or_init(find).as_deref()
    }

    /// Its tool and arguments in lower case.
    pub(super) fn call_text(&self) -> &str {
        self.cached.call.get_or_init(|| {
            let arguments = Value::Object(self.arguments.clone());
            format!("{} {}", self.tool, joined_leaves(&arguments)).to_lowercase()
        })
    }

    /// Its result in lower case.
    pub(super) fn result_text(&self) -> &str {
        self.cached.result.get_or_init(|| match &self.result {
            Value::String(text) => text.to_lowercase(),
            Value::Null => String::new(),
            other => joined_leaves(other).to_lowercase(),
        })
    }

    /// Whether it may remove a part of what it changes.
    pub(super) fn shortens(&self) -> bool {
        let texts = [self.call_text(), self.result_text()];
        let says_so =
            |text: &&str| ["delet", "remov", "drop", "删", "clear"].iter().any(|stem| text.contains(stem));
        let has_empty_text = || leaves(&Value::Object(self.arguments.clone())).iter().any(String::is_empty);
        // New content may be shorter than the old one.
        let has_content = || {
            self.arguments.values().any(|value| match value {
                Value::Array(items) => !items.is_empty(),
                Value::String(text) => text.contains('\n'),
                _ => false,
            }) && ["write", "edit", "update", "replace", "set", "save"]
                .iter()
                .any(|verb| self.tool.to_lowercase().contains(verb))
        };
        texts.iter().any(says_so) || has_empty_text() || has_content()
    }

    /// Whether its arguments or its result have the status of a draft.
    pub(super) fn makes_draft(&self) -> bool {
        let is_draft = |value: &Value| {
            joined_leaves(value).lines().any(|line| {
                matches!(
                    line.to_lowercase().as_str(),
                    "status: draft" | "state: draft" | "draft: true" | "isdraft: true"
                )
            })
        };
        is_draft(&Value::Object(self.arguments.clone())) || is_draft(&self.result)
    }

    /// The keys of its arguments that are set, also of nested ones.
    pub(super) fn argument_keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        collect_keys(&self.arguments, &mut keys);
        keys
    }
}

fn collect_keys(entries: &Map<String, Value>, keys: &mut Vec<String>) {
    for (key, value) in entries {
        // `notify: false` and `cc: []` ask for nothing.
        let is_empty = match value {
            Value::Null | Value::Bool(false) => true,
            Value::String(text) => text.trim().is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        if is_empty {
            continue;
        }
        keys.push(key.to_lowercase());
        match value {
            Value::Object(inner) => collect_keys(inner, keys),
            Value::Array(items) => {
                items.iter().filter_map(Value::as_object).for_each(|inner| collect_keys(inner, keys));
            }
            _ => {}
        }
    }
}

/// The scalars of a value as text.
pub(super) fn leaves(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect_leaves(value, &mut found);
    found
}

fn collect_leaves(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::Bool(flag) => found.push(flag.to_string()),
        Value::Number(number) => found.push(number.to_string()),
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect_leaves(item, found)),
        Value::Object(entries) => entries.values().for_each(|item| collect_leaves(item, found)),
    }
}

/// Keys and scalars of a value, one per line.
pub(super) fn joined_leaves(value: &Value) -> String {
    let mut lines = Vec::new();
    collect_lines(None, value, &mut lines);
    lines.join("\n")
}

fn collect_lines(key: Option<&str>, value: &Value, lines: &mut Vec<String>) {
    let line = |text: String| key.map_or_else(|| text.clone(), |key| format!("{key}: {text}"));
    match value {
        Value::Null => {}
        Value::String(text) => lines.push(line(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| collect_lines(key, item, lines)),
        Value::Object(entries) => {
            entries.iter().for_each(|(key, item)| collect_lines(Some(key), item, lines));
        }
        other => lines.push(line(other.to_string())),
    }
}
