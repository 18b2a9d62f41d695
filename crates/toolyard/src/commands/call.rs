//! `toolyard call`: one call, and what went on inside.

use std::{io::Read as _, sync::Arc};

use toolyard::Toolyard;
use toolyard_core::{Capability, RawJson, ToolCallRequest, ToolError, ToolOutput, ToolResult};
use toolyard_hub::{Budget, CallOptions, Decision, Trail};

use crate::{
    cli::CallArgs,
    failure::{Code, Failure},
    output::{Output, harmless},
    progress::waiting,
};

/// Calls a tool and prints its answer.
pub(crate) async fn run(call: CallArgs, yard: &Toolyard, output: &Output) -> Result<(), Failure> {
    let arguments = read_arguments(&call.args)?;
    let trail = call.explain.then(|| Arc::new(Trail::default()));
    let options = options(&call, yard, trail.as_ref());
    let what = call.name.as_deref().or(call.capability.as_deref()).unwrap_or_default();
    let outcome = waiting(what, execute(&call, arguments, yard, &options)).await?;
    if let Some(trail) = trail {
        explain(&trail.decisions(), output);
    }
    tell(outcome, output)
}

async fn execute(
    call: &CallArgs,
    arguments: RawJson,
    yard: &Toolyard,
    options: &CallOptions,
) -> Result<ToolOutput, ToolError> {
    let capability = call.capability.as_deref().map(Capability::from);
    let request = call.name.as_deref().map(|name| {
        let mut request = ToolCallRequest::new(name, arguments.clone());
        request.source.clone_from(&call.source);
        request
    });
    match (request, capability) {
        (Some(request), Some(capability)) => {
            yard.hub().execute_or_by_capability(&request, &capability, options).await
        }
        (Some(request), None) => yard.hub().execute(&request, options).await,
        (None, capability) => {
            let capability = capability.unwrap_or_else(|| Capability::from(""));
            yard.hub().execute_by_capability(&capability, arguments, options).await
        }
    }
}

fn options(call: &CallArgs, yard: &Toolyard, trail: Option<&Arc<Trail>>) -> CallOptions {
    let mut options = yard.options().clone().with_budget(match call.budget {
        _ if call.full => Budget::Whole,
        Some(characters) => Budget::Characters(characters),
        None => Budget::ByKind,
    });
    if let Some(timeout) = call.timeout {
        options = options.with_timeout(timeout.0);
    }
    match trail {
        Some(trail) => options.with_trail(Arc::clone(trail)),
        None => options,
    }
}

/// The arguments themselves, `@FILE`, or `-` for standard input.
fn read_arguments(given: &str) -> Result<RawJson, Failure> {
    let unreadable = |what: &str, error: std::io::Error| {
        Failure::new(Code::BadUse, format!("failed to read {what}: {error}"))
    };
    let text = if given == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(|error| unreadable("standard input", error))?;
        text
    } else if let Some(file) = given.strip_prefix('@') {
        std::fs::read_to_string(file).map_err(|error| unreadable(file, error))?
    } else {
        given.to_owned()
    };
    RawJson::parse(text).map_err(|error| {
        Failure::new(Code::BadUse, format!("failed to read --args: {error}"))
            .with_hint(r#"give a JSON object in single quotes: --args '{"expression":"1+1"}'"#)
    })
}

/// The answer on stdout; with `--json` in the seeds' shape, failures too.
fn tell(outcome: Result<ToolOutput, ToolError>, output: &Output) -> Result<(), Failure> {
    if output.wants_json() {
        output.json(&ToolResult::of(&outcome));
        return outcome.map(|_| ()).map_err(|error| Failure::from(error).silent());
    }
    output.foreign(&outcome?.to_text());
    Ok(())
}

fn explain(decisions: &[Decision], output: &Output) {
    let width = decisions.iter().map(|decision| decision.subject.chars().count()).max().unwrap_or(0).min(40);
    for decision in decisions {
        let time =
            decision.elapsed.map(|time| format!("  {:.1} ms", time.as_secs_f64() * 1e3)).unwrap_or_default();
        let Decision { stage, subject, detail, .. } = decision;
        output.talk(&harmless(&format!("{stage:<9} {subject:<width$}  {detail}{time}")));
    }
}
