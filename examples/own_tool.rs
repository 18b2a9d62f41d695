//! A tool as a type of its own, for state, schemas and results that a function cannot express:
//! `cargo run --example own_tool`.
#![expect(clippy::print_stdout, reason = "an example shows its result")]
use std::sync::atomic::{AtomicU64, Ordering};

use toolyard::{
    core::{BoxFuture, CallContext, ToolSpec},
    prelude::*,
};

/// Counts its calls.
struct Counter {
    spec: ToolSpec,
    calls: AtomicU64,
}

#[derive(Deserialize)]
struct Step {
    #[serde(default = "one")]
    step: u64,
}

fn one() -> u64 {
    1
}

impl Tool for Counter {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Step { step } = request.parse()?;
            if context.attempt > 1 {
                return Err(ToolError::failed("a counter must not be repeated"));
            }
            let calls = self.calls.fetch_add(step, Ordering::Relaxed) + step;
            Ok(ToolOutput::json(json!({"calls": calls})))
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let schema = json!({"type": "object", "properties": {"step": {"type": "integer", "minimum": 1}}});
    let spec = ToolSpec::new("count", "Counts up").with_input_schema(schema);
    let toolyard = Toolyard::builder().tool(Counter { spec, calls: AtomicU64::new(0) }).build().await?;
    toolyard.call("count", json!({})).await?;
    println!("{}", toolyard.call("count", json!({"step": 41})).await?.to_text());
    Ok(())
}
