//! The scenario of the specification in one program: an agent reads a workbook through excel-mcp-server, the program allows it
//! for the whole run, the answer is streamed, and the statistics of the tool are read.
//! `cargo run --example excel_scenario -- WORKBOOK uvx excel-mcp-server stdio`
#![expect(clippy::print_stdout, reason = "an example shows its result")]
use std::io::Write as _;

use toolyard::{
    agent::{ApprovalDecision, RunEvent, RunUpdate},
    model::{ScriptedModel, ToolCalling},
    prelude::*,
    store::{Location, Store},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let workbook = arguments.next().ok_or("usage: excel_scenario WORKBOOK PROGRAM ARGUMENT…")?;
    let program = arguments.next().ok_or("usage: excel_scenario WORKBOOK PROGRAM ARGUMENT…")?;
    let folder = std::env::temp_dir().join(format!("excel-scenario-{}", std::process::id()));

    // Stands for a real model: it plans one call, and answers from its result.
    let arguments_of_call = json!({"filepath": workbook, "sheet_name": "Sheet1"});
    let plan = json!({"steps": [
        {"id": "read", "tool_type": "read_data_from_excel", "arguments": arguments_of_call}
    ]});
    let model =
        ScriptedModel::with_replies(ToolCalling::Schema, [plan.to_string().as_str(), "表格已经读完。"]);

    let toolyard = Toolyard::builder()
        .store(Store::open(Location::Sqlite(folder.join("toolyard.db"))).await?)
        .server(McpServerConfig::stdio("excel", program, arguments))
        .environment(std::env::vars())
        .model(model)
        .build()
        .await?;

    println!("agents: {}", toolyard.agents().names().join(", "));
    let mut run = toolyard.agent("assistant").start(format!("请读取工作簿 {workbook}")).await?;
    while let Some(update) = run.next().await {
        match update {
            RunUpdate::Event { event: RunEvent::ApprovalRequested { approval_id, text, .. }, .. } => {
                println!("question: {}", text.lines().next().unwrap_or_default());
                run.decide(approval_id, ApprovalDecision::AllowAlways);
            }
            RunUpdate::AnswerDelta { text, .. } => {
                print!("{text}");
                let _ = std::io::stdout().flush();
            }
            _ => {}
        }
    }
    println!("\nanswer: {}", run.outcome().await?);
    for of_tool in toolyard.statistics() {
        let percent = of_tool.success_rate * 100.0;
        println!(
            "{} of {}: {percent:.0} % of {:.0} calls succeeded",
            of_tool.tool, of_tool.source, of_tool.calls
        );
    }
    toolyard.close().await?;
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
