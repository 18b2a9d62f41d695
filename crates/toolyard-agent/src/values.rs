//! The values of steps: whole, held once however many use them, and read from the journal when a process that knew
//! them is gone.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;
use toolyard_core::{Journal, JournalError, RawJson, RunId, StepAnswer, StepState, ToolOutput};

use crate::{driver::aside::aside, step_value};

/// Why there is no value to use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// Nothing is known of the step.
    #[error("step {0} has no value")]
    Missing(String),
    /// What is kept is not what the tool said.
    #[error(
        "the value of step {0} held a secret, which is never written down, and the process that knew it is gone"
    )]
    Redacted(String),
    /// What is kept cannot be understood.
    #[error("the journal's entry of step {step} cannot be understood: {reason}")]
    Unreadable {
        /// The step.
        step: String,
        /// Why.
        reason: String,
    },
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// The values of one run's steps, by their names in the journal.
#[derive(Debug, Default)]
pub struct Values(Mutex<HashMap<String, Arc<Value>>>);

impl Values {
    /// Keeps a value.
    pub fn put(&self, step: impl Into<String>, value: Value) -> Arc<Value> {
        let value = Arc::new(value);
        self.lock().insert(step.into(), Arc::clone(&value));
        value
    }

    /// Lets go of a value; it can be read from the journal again.
    pub fn forget(&self, step: &str) {
        self.lock().remove(step);
    }

    /// A value that is held here.
    pub fn known(&self, step: &str) -> Option<Arc<Value>> {
        self.lock().get(step).map(Arc::clone)
    }

    /// A value, read from the journal if it is not held here.
    pub async fn get(
        &self,
        journal: &dyn Journal,
        run: &RunId,
        step: &str,
    ) -> Result<Arc<Value>, ValueError> {
        if let Some(known) = self.known(step) {
            return Ok(known);
        }
        let value = read(journal, run, step).await?;
        Ok(self.put(step, value))
    }

    /// The same for whoever only looks at it: what is not held here is let go of again.
    pub async fn look(
        &self,
        journal: &dyn Journal,
        run: &RunId,
        step: &str,
    ) -> Result<Arc<Value>, ValueError> {
        match self.known(step) {
            Some(known) => Ok(known),
            None => read(journal, run, step).await.map(Arc::new),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Value>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The value of what a tool answered: the structured content, else its text as JSON, else the text.
pub fn value_of(output: &ToolOutput) -> Value {
    step_value(output.structured.as_ref(), &output.to_text())
}

async fn read(journal: &dyn Journal, run: &RunId, step: &str) -> Result<Value, ValueError> {
    let missing = || ValueError::Missing(step.to_owned());
    let record = journal.step(run, step).await?.ok_or_else(missing)?;
    if record.state != StepState::Done {
        return Err(missing());
    }
    if record.redacted {
        return Err(ValueError::Redacted(step.to_owned()));
    }
    let outcome = record.outcome.ok_or_else(missing)?;
    let value = aside(outcome.get().len(), move || value_in(&outcome)).await;
    let value = value.unwrap_or_else(|| Err("it could not be read".to_owned()));
    value.map_err(|reason| ValueError::Unreadable { step: step.to_owned(), reason })
}

/// The value in what the journal keeps of a step.
fn value_in(outcome: &RawJson) -> Result<Value, String> {
    let answer: StepAnswer = outcome.read().map_err(|error| error.to_string())?;
    let output = answer.into_outcome().map_err(|error| error.to_string())?;
    Ok(value_of(&output))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use toolyard_core::{ContentHash, Intent, Lease, StepOutcome};

    use super::*;
    use crate::MemoryLog;

    async fn journalled(log: &MemoryLog, lease: &Lease, step: &str, output: ToolOutput) {
        let intent = Intent {
            step: step.to_owned(),
            tool: "t".to_owned(),
            source: None,
            definition: ContentHash::of(""),
            arguments: ContentHash::of(""),
            shown_arguments: String::new(),
            repeatable: true,
        };
        log.begin(lease, &intent).await.unwrap();
        let outcome = RawJson::from_serialize(&StepAnswer::of(&Ok(output))).unwrap();
        log.finish(lease, step, &StepOutcome { state: StepState::Done, outcome }).await.unwrap();
    }

    #[tokio::test]
    async fn a_value_is_read_once_and_shared() {
        let log = MemoryLog::new();
        let run = log.create_run("agent", &RawJson::empty_object()).await.unwrap();
        let lease = log.claim(&run, "one", Duration::from_secs(9)).await.unwrap();
        journalled(&log, &lease, "a", ToolOutput::json(json!({"rows": [1, 2]}))).await;
        journalled(&log, &lease, "b", ToolOutput::text("[3]")).await;
        journalled(&log, &lease, "s", ToolOutput::json(json!({"password": "hunter2hunter2"}))).await;
        let values = Values::default();
        let first = values.get(&log, &run, "a").await.unwrap();
        assert_eq!(*first, json!({"rows": [1, 2]}));
        assert!(Arc::ptr_eq(&first, &values.get(&log, &run, "a").await.unwrap()), "never copied");
        assert_eq!(*values.look(&log, &run, "b").await.unwrap(), json!([3]), "text that is JSON");
        assert_eq!(values.known("b"), None, "whoever only looks keeps nothing");
        assert!(Arc::ptr_eq(&first, &values.look(&log, &run, "a").await.unwrap()));
        assert_eq!(values.get(&log, &run, "c").await, Err(ValueError::Missing("c".to_owned())));
        let redacted = values.get(&log, &run, "s").await.unwrap_err();
        assert!(redacted.to_string().contains("never written down"), "{redacted}");
        values.put("s", json!({"password": "hunter2hunter2"}));
        assert!(values.get(&log, &run, "s").await.is_ok(), "whoever knows it may use it");
    }
}
