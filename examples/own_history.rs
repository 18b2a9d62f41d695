//! Statistics of calls in a place of your own: `cargo run --example own_history`. The other extension traits of
//! `toolyard::core` (`Results`, `Audit`, `Synthesizer`, …) are passed to the builder in the same way.
#![expect(clippy::print_stdout, reason = "an example shows its result")]
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use toolyard::{
    core::{CallRecord, History, SourceId},
    prelude::*,
};

/// Counts calls and failures by tool. A real one would write to a database in the background: calls wait for it.
#[derive(Default)]
struct Counts(Mutex<BTreeMap<String, (u32, u32)>>);

impl History for Counts {
    fn record(&self, call: &CallRecord<'_>) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (calls, failures) = counts.entry(call.tool.to_owned()).or_default();
        *calls += 1;
        *failures += u32::from(call.error.is_some());
    }

    fn last_success(&self, _tool: &str, _source: &SourceId) -> Option<u64> {
        None
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let counts = Arc::new(Counts::default());
    let toolyard = Toolyard::builder().history(Arc::clone(&counts) as _).build().await?;
    toolyard.call("calculate", json!({"expression": "1+1"})).await?;
    let failed = toolyard.call("calculate", json!({"expression": "1+"})).await;
    println!("the second call failed: {}", failed.is_err());
    for (tool, (calls, failures)) in counts.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        println!("{tool}: {calls} calls, {failures} failed");
    }
    Ok(())
}
