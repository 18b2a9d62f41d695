//! A conversation whose answers are streamed: `cargo run --example streaming_chat`.
#![expect(clippy::print_stdout, reason = "an example shows its result")]
use std::io::Write as _;

use toolyard::{
    agent::{RunEvent, RunUpdate},
    model::{ScriptedModel, ToolCalling},
    prelude::*,
};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let plan = r#"{"steps": [{"id": "sum", "tool_type": "calculate", "arguments": {"expression": "6*7"}}]}"#;
    let replies = [plan, "It is 42.", r#"{"answer": "You asked for 6 times 7."}"#];
    let model = ScriptedModel::with_replies(ToolCalling::Schema, replies);
    let toolyard = Toolyard::builder().model(model).build().await?;

    // Question and answer are kept under this name; with a store, also across restarts.
    let agent = toolyard.agent("assistant").conversation("sums");
    for question in ["What is 6 times 7?", "What did I ask?"] {
        println!("> {question}");
        let mut run = agent.start(question).await?;
        while let Some(update) = run.next().await {
            match update {
                RunUpdate::Event { event: RunEvent::StepStarted { step, .. }, .. } => println!("  [{step}]"),
                RunUpdate::AnswerDelta { text, .. } => {
                    print!("{text}");
                    let _ = std::io::stdout().flush();
                }
                _ => {}
            }
        }
        println!("\n  = {}", run.outcome().await?);
    }
    Ok(())
}
