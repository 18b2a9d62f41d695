//! All ends of runs and of steps, for tests: a `match` on these `#[non_exhaustive]` enums has a wildcard, so the compiler does not
//! report a variant that it does not handle.

use serde::de::DeserializeOwned;
use serde_json::json;
use toolyard_agent::{RunEnd, StepEnd};

pub(crate) fn every_run_end() -> Vec<RunEnd> {
    every_variant("state")
}

pub(crate) fn every_step_end() -> Vec<StepEnd> {
    every_variant("end")
}

/// All variants, as serde's error for an unknown one lists them.
fn every_variant<T: DeserializeOwned>(tag: &str) -> Vec<T> {
    let variant = |name: &str| {
        let mut fields = json!({
            "answer": "a", "sources": [], "unfinished_steps": [], "message": "m", "waiting_for": [], "limit": "time",
            "preview": "p", "size": 1, "because": "s", "by": "b",
        });
        fields[tag] = json!(name);
        serde_json::from_value::<T>(fields)
    };
    let error = variant("?").err().unwrap().to_string();
    error.split('`').skip(3).step_by(2).map(|name| variant(name).unwrap()).collect()
}
