//! A language model of your own: `cargo run --example own_model`. This one answers without a network; a real one sends
//! `request.messages` to its server and streams what comes back.
#![expect(clippy::print_stdout, reason = "an example shows its result")]
use futures_util::stream;
use toolyard::{
    model::{FinishReason, Model, ModelEvent, ModelRequest, ModelStream, Role, ToolCalling, Usage},
    prelude::*,
};

/// Repeats the last message.
#[derive(Debug)]
struct Parrot;

impl Model for Parrot {
    fn name(&self) -> &str {
        "parrot"
    }

    fn tool_calling(&self) -> ToolCalling {
        ToolCalling::Schema
    }

    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        let question = request.messages.iter().rev().find(|message| message.role == Role::User);
        let words = question.map_or(0, |message| message.text.split_whitespace().count());
        // The planner expects a plan, or an answer if no tool is needed.
        let reply = json!({"answer": format!("Your prompt has {words} words.")}).to_string();
        let usage = Usage { output: 8, ..Usage::default() };
        Box::pin(stream::iter([
            Ok(ModelEvent::Text(reply)),
            Ok(ModelEvent::Usage(usage)),
            Ok(ModelEvent::Finished(FinishReason::Stop)),
        ]))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let toolyard = Toolyard::builder().model(Parrot).build().await?;
    let answer = toolyard.agent("assistant").ask("How long is my prompt?").await?;
    println!("{}", answer.to_string().split(' ').take(3).collect::<Vec<_>>().join(" "));
    Ok(())
}
