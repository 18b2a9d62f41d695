//! An agent whose changes you approve at the terminal: `cargo run --example agent_approval`.
//!
//! A scripted model stands for a real one, so that the example needs no server: see `own_model.rs` for one of your own, and
//! `[models]` in `toolyard.toml` for one at a URL.
#![expect(clippy::print_stdout, reason = "an example shows its result")]
use toolyard::{
    agent::{ApprovalDecision, ApprovalRequest},
    model::{ScriptedModel, ToolCalling},
    prelude::*,
};

#[derive(Deserialize, JsonSchema)]
struct Note {
    text: String,
}

/// Asks at the terminal. A graphical program would show a dialog here.
async fn ask_at_the_terminal(request: ApprovalRequest) -> ApprovalDecision {
    println!(
        "{} wants to call {} with {} ({})",
        request.step, request.tool, request.arguments, request.effects
    );
    println!("allow? [y/n/a for always]");
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    match line.trim() {
        "y" => ApprovalDecision::Allow,
        "a" => ApprovalDecision::AllowAlways,
        _ => ApprovalDecision::Deny,
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let plan = r#"{"steps": [{"id": "note", "tool_type": "write_note", "arguments": {"text": "milk"}}]}"#;
    let model = ScriptedModel::with_replies(ToolCalling::Schema, [plan, "The note is written."]);
    let toolyard = Toolyard::builder()
        .function("write_note", "Writes a note", |note: Note| async move { format!("wrote {}", note.text) })
        .model(model)
        .approver(ask_at_the_terminal)
        .build()
        .await?;
    println!("{}", toolyard.agent("assistant").ask("Write a note: milk").await?);
    Ok(())
}
