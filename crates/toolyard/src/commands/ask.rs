//! `toolyard ask`: one question to an agent.

use std::io::Read as _;

use serde_json::json;
use toolyard::Toolyard;
use toolyard_agent::{Agent, CancelToken, DEFAULT_AGENT, RunEnd, RunRequest};
use toolyard_core::{RawJson, redact_json};

use super::agent_run::{ASK_CALLER, drive, load_agent, report_end, suggest_model_test};
use crate::{
    cli::AskArgs,
    error::CliError,
    terminal::{
        Output,
        run_view::{ApprovalMode, RunView, sent_lines},
    },
};

pub(super) async fn run(arguments: AskArgs, toolyard: &Toolyard, output: &Output) -> Result<(), CliError> {
    let name = arguments.agent.name.as_deref().unwrap_or(DEFAULT_AGENT);
    let agents = toolyard.agents();
    let (agent, model) = load_agent(toolyard, name, arguments.agent.model.as_deref())?;
    suggest_model_test(toolyard, &model, output);
    let request = with_arguments(agent.request(read_question(&arguments.question)?), &arguments);
    if arguments.as_sent {
        return print_first_request(&agent, request, output).await;
    }
    let stop = CancelToken::default();
    let view = RunView::new(output, &model, ApprovalMode::new(arguments.yes, &stop));
    let run = agent.create_run(request).await?;
    view.begin(&agents.log().events(&run, 0).await?);
    let end = drive(&agent, &run, &view, &stop).await?;
    if arguments.plan_only && end == RunEnd::Planned && !output.is_json() {
        super::runs::show::print_plan(agents.log().as_ref(), &run, output).await?;
    }
    report_end(&run, &end, view, output)
}

/// Prints what the model would be sent first, and sends nothing.
async fn print_first_request(agent: &Agent, request: RunRequest, output: &Output) -> Result<(), CliError> {
    let failed = |error: &dyn std::fmt::Display| CliError::failed(error.to_string());
    let (task, sent) = agent.first_model_request(request).await.map_err(|error| failed(&error))?;
    if output.is_json() {
        let sent = RawJson::from_serialize(&sent).map_err(|error| failed(&error))?;
        output.json(&json!({"task": task, "sent": redact_json(&sent).0.to_value()}));
    } else {
        sent_lines(&task, &sent).iter().for_each(|line| output.line(line));
    }
    Ok(())
}

fn with_arguments(mut request: RunRequest, arguments: &AskArgs) -> RunRequest {
    request.caller = ASK_CALLER.into();
    request.plan_only = arguments.plan_only;
    request.dry_run = arguments.dry_run;
    if let Some(timeout) = arguments.timeout {
        request.limits.time = timeout.0;
    }
    request
}

/// The words joined; `-` appends standard input.
fn read_question(words: &[String]) -> Result<String, CliError> {
    let mut question = words.iter().filter(|word| *word != "-").cloned().collect::<Vec<_>>().join(" ");
    if words.iter().any(|word| word == "-") {
        let mut input = String::new();
        std::io::stdin()
            .read_to_string(&mut input)
            .map_err(|error| CliError::usage(format!("failed to read standard input: {error}")))?;
        question = format!("{question}\n\n{input}").trim().to_owned();
    }
    if question.trim().is_empty() {
        return Err(
            CliError::usage("the question is empty").with_hint("toolyard ask \"what time is it in Tokyo?\"")
        );
    }
    Ok(question)
}
