//! `toolyard ask`: one question to an agent.

use std::io::Read as _;

use toolyard::Toolyard;
use toolyard_agent::{Ask, CancelToken, DEFAULT_AGENT, RunEnd};

use super::driving::{advise, agent, drive, finish};
use crate::{
    cli::AskArgs,
    failure::{Code, Failure},
    output::Output,
    run_view::{Decider, View},
};

/// Asks, shows how it goes, and prints the answer.
pub(crate) async fn run(arguments: AskArgs, yard: &Toolyard, output: &Output) -> Result<(), Failure> {
    let name = arguments.who.agent.as_deref().unwrap_or(DEFAULT_AGENT);
    let agents = yard.agents();
    let (agent, model) = agent(yard, name, arguments.who.model.as_deref())?;
    advise(yard, &model, output);
    let ask = question(&arguments, agents.question(name, words(&arguments.question)?));
    let stop = CancelToken::default();
    let view = View::new(output, &model, Decider::new(arguments.yes, &stop));
    let run = agent.begin(ask).await?;
    view.begin(&agents.log().events(&run, 0).await?);
    let end = drive(&agent, &run, &view, &stop).await?;
    if arguments.plan_only && end == RunEnd::Planned && !output.wants_json() {
        super::runs_show::print_plan(agents.log().as_ref(), &run, output).await?;
    }
    finish(&run, &end, view, output)
}

fn question(arguments: &AskArgs, mut ask: Ask) -> Ask {
    ask.who = "cli".to_owned();
    ask.plan_only = arguments.plan_only;
    ask.dry_run = arguments.dry_run;
    if let Some(timeout) = arguments.timeout {
        ask.caps.time = timeout.0;
    }
    ask
}

/// The question; what stands on standard input comes behind it where somebody says `-`.
fn words(given: &[String]) -> Result<String, Failure> {
    let mut question = given.iter().filter(|word| *word != "-").cloned().collect::<Vec<_>>().join(" ");
    if given.iter().any(|word| word == "-") {
        let mut input = String::new();
        std::io::stdin()
            .read_to_string(&mut input)
            .map_err(|error| Failure::new(Code::BadUse, format!("failed to read standard input: {error}")))?;
        question = format!("{question}\n\n{input}").trim().to_owned();
    }
    if question.trim().is_empty() {
        return Err(Failure::new(Code::BadUse, "nothing was asked")
            .with_hint("toolyard ask \"what time is it in Tokyo?\""));
    }
    Ok(question)
}
