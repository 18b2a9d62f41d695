//! `toolyard ask`: one question to an agent.

use std::io::Read as _;

use toolyard::Toolyard;
use toolyard_agent::{CancelToken, DEFAULT_AGENT, RunEnd, RunRequest};

use super::agent_run::{ASK_CALLER, drive, load_agent, report_end, suggest_model_test};
use crate::{
    cli::AskArgs,
    error::CliError,
    terminal::{
        Output,
        run_view::{ApprovalMode, RunView},
    },
};

pub(super) async fn run(arguments: AskArgs, toolyard: &Toolyard, output: &Output) -> Result<(), CliError> {
    let name = arguments.agent.name.as_deref().unwrap_or(DEFAULT_AGENT);
    let agents = toolyard.agents();
    let (agent, model) = load_agent(toolyard, name, arguments.agent.model.as_deref())?;
    suggest_model_test(toolyard, &model, output);
    let request = with_arguments(agent.request(read_question(&arguments.question)?), &arguments);
    let stop = CancelToken::default();
    let mut view = RunView::new(output, &model, ApprovalMode::new(arguments.yes, &stop));
    if arguments.as_sent {
        view.print_requests();
    }
    let run = agent.create_run(request).await?;
    view.begin(&agents.log().events(&run, 0).await?);
    let end = drive(&agent, &run, &view, &stop).await?;
    if arguments.plan_only && end == RunEnd::Planned && !output.is_json() {
        super::runs::show::print_plan(agents.log().as_ref(), &run, output).await?;
    }
    report_end(&run, &end, view, output)
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
