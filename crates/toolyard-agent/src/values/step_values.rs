//! [`StepValues`]: the results of a run's steps, shared in memory and read from the journal after a restart.

use std::{collections::HashMap, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use toolyard_core::{Journal, JournalError, RawJson, RunId, StepResult, StepState};

use super::{blocking::run_blocking_if_large, step_value::step_value};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ValueError {
    /// A step needs the result of another one that has none, because it failed or was not executed.
    ///
    /// Remedy: see why with `toolyard runs show RUN`, then ask again.
    #[error("step {0} has no value")]
    Missing(String),
    /// Results with secrets are not written to the store, so a resumed run does not have them.
    ///
    /// Remedy: ask again: a new run calls the tool anew.
    #[error(
        "the value of step {0} contains a secret, which is never stored, and the process that had it is gone"
    )]
    Redacted(String),
    /// The stored result of a step was damaged or written by another version of Toolyard.
    ///
    /// Remedy: check the store with `toolyard store check`, then ask again.
    #[error("the journal entry of step {step} cannot be read: {reason}")]
    Unreadable { step: String, reason: String },
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl ValueError {
    fn unreadable(step: &str, reason: &dyn std::fmt::Display) -> Self {
        Self::Unreadable { step: step.to_owned(), reason: reason.to_string() }
    }
}

/// The values of one run's steps, by their journal names.
#[derive(Debug, Default)]
pub(crate) struct StepValues(Mutex<HashMap<String, Arc<Value>>>);

impl StepValues {
    pub(crate) fn put(&self, step: impl Into<String>, value: Value) -> Arc<Value> {
        let value = Arc::new(value);
        self.lock().insert(step.into(), Arc::clone(&value));
        value
    }

    /// Drops a value from memory; it can be read from the journal again.
    pub(crate) fn evict(&self, step: &str) {
        self.lock().remove(step);
    }

    pub(crate) fn cached(&self, step: &str) -> Option<Arc<Value>> {
        self.lock().get(step).map(Arc::clone)
    }

    /// A value, read from the journal and kept in memory if it is not there yet.
    pub(crate) async fn get(
        &self,
        journal: &dyn Journal,
        run: &RunId,
        step: &str,
    ) -> Result<Arc<Value>, ValueError> {
        if let Some(value) = self.cached(step) {
            return Ok(value);
        }
        let value = read_value(journal, run, step).await?;
        Ok(self.put(step, value))
    }

    /// Like [`get`](Self::get), without keeping a value read from the journal in memory.
    pub(crate) async fn peek(
        &self,
        journal: &dyn Journal,
        run: &RunId,
        step: &str,
    ) -> Result<Arc<Value>, ValueError> {
        match self.cached(step) {
            Some(value) => Ok(value),
            None => read_value(journal, run, step).await.map(Arc::new),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Value>>> {
        self.0.lock()
    }
}

async fn read_value(journal: &dyn Journal, run: &RunId, step: &str) -> Result<Value, ValueError> {
    let missing = || ValueError::Missing(step.to_owned());
    let record = journal.step(run, step).await?.ok_or_else(missing)?;
    if record.state != StepState::Done {
        return Err(missing());
    }
    if record.redacted {
        return Err(ValueError::Redacted(step.to_owned()));
    }
    let outcome = record.outcome.ok_or_else(missing)?;
    let name = step.to_owned();
    let value = run_blocking_if_large(outcome.get().len(), move || parse_value(&name, &outcome)).await;
    value.unwrap_or_else(|| Err(ValueError::unreadable(step, &"reading it was aborted")))
}

fn parse_value(step: &str, outcome: &RawJson) -> Result<Value, ValueError> {
    let result: StepResult = outcome.read().map_err(|error| ValueError::unreadable(step, &error))?;
    let output = result.into_tool_result().map_err(|error| ValueError::unreadable(step, &error))?;
    Ok(step_value(output.structured.as_ref(), &output.to_text()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use toolyard_core::{ContentHash, FinishedStep, Lease, StepIntent, ToolOutput};

    use super::*;
    use crate::MemoryRunLog;

    async fn record(log: &MemoryRunLog, lease: &Lease, step: &str, output: ToolOutput) {
        let intent = StepIntent {
            step: step.to_owned(),
            tool: "t".to_owned(),
            source: None,
            definition: ContentHash::of(""),
            arguments: ContentHash::of(""),
            redacted_arguments: String::new(),
            repeatable: true,
        };
        log.begin(lease, &intent).await.unwrap();
        let outcome = RawJson::from_serialize(&StepResult::of(&Ok(output))).unwrap();
        log.finish(lease, step, &FinishedStep { state: StepState::Done, result: outcome }).await.unwrap();
    }

    #[tokio::test]
    async fn values_are_read_once_and_shared() {
        let log = MemoryRunLog::new();
        let run = log.create_run("agent", &RawJson::empty_object()).await.unwrap();
        let lease = log.claim(&run, "one", Duration::from_secs(9)).await.unwrap();
        record(&log, &lease, "a", ToolOutput::json(json!({"rows": [1, 2]}))).await;
        record(&log, &lease, "b", ToolOutput::text("[3]")).await;
        record(&log, &lease, "s", ToolOutput::json(json!({"password": "hunter2hunter2"}))).await;
        let values = StepValues::default();
        let first = values.get(&log, &run, "a").await.unwrap();
        assert_eq!(*first, json!({"rows": [1, 2]}));
        assert!(Arc::ptr_eq(&first, &values.get(&log, &run, "a").await.unwrap()), "never copied");
        assert_eq!(*values.peek(&log, &run, "b").await.unwrap(), json!([3]), "text that is JSON");
        assert_eq!(values.cached("b"), None, "peek does not cache");
        assert!(Arc::ptr_eq(&first, &values.peek(&log, &run, "a").await.unwrap()));
        assert_eq!(values.get(&log, &run, "c").await, Err(ValueError::Missing("c".to_owned())));
        let redacted = values.get(&log, &run, "s").await.unwrap_err();
        assert!(redacted.to_string().contains("never stored"), "{redacted}");
        values.put("s", json!({"password": "hunter2hunter2"}));
        assert!(values.get(&log, &run, "s").await.is_ok(), "a value in memory is complete");
    }
}
