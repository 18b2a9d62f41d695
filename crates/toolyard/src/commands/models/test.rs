//! `toolyard models test`: probes models and records the tool-calling mode that works best.

use serde_json::json;
use toolyard::{Models, ModelsError};
use toolyard_model::{ProbeOptions, ProbeOutcome, ProbeReport, probe};

use super::{
    mode_label,
    tool_calling_cache::{self, ToolCallingCache},
};
use crate::{
    config::CliContext,
    error::CliError,
    terminal::{Output, progress::with_progress, run_view::format_duration},
};

/// Tests these models, or all. Fails if one of them does not work.
pub(super) async fn run(names: &[String], context: &CliContext, output: &Output) -> Result<(), CliError> {
    let models = tool_calling_cache::load_models(context);
    let all = models.names();
    let names = if names.is_empty() { &all } else { names };
    if names.is_empty() {
        return Err(ModelsError::NotConfigured.into());
    }
    let (mut reports, mut last_failure) = (Vec::new(), None);
    for name in names {
        let failure = match test_model(name, &models).await? {
            Ok(report) => {
                record_best_mode(name, &report, context)?;
                if !output.is_json() {
                    print_report(name, &report, output);
                }
                reports.push(json!(report));
                report.recommended.is_none().then(|| no_working_mode(name))
            }
            Err(failure) => {
                reports.push(json!({"model": name, "error": failure.message()}));
                Some(failure)
            }
        };
        if let Some(failure) = failure {
            if !output.is_json() {
                failure.print(output);
            }
            last_failure = Some(failure.without_message());
        }
    }
    if output.is_json() {
        output.json(&reports);
    }
    last_failure.map_or(Ok(()), Err)
}

/// Tests one model. The inner error concerns this model only; the outer one ends the command.
async fn test_model(name: &str, models: &Models) -> Result<Result<ProbeReport, CliError>, CliError> {
    let model = match models.get(Some(name)) {
        Ok(model) => model,
        Err(error) => return Ok(Err(error.into())),
    };
    let probed = with_progress(name, probe(model.as_ref(), ProbeOptions::default())).await?;
    Ok(probed.map_err(CliError::from))
}

fn record_best_mode(name: &str, report: &ProbeReport, context: &CliContext) -> Result<(), CliError> {
    let (Some(best), Some(settings)) = (report.recommended, context.settings.models.get(name)) else {
        return Ok(());
    };
    ToolCallingCache::read(context).record(settings.fingerprint(), best, context)
}

fn print_report(name: &str, report: &ProbeReport, output: &Output) {
    let row = |outcome: &ProbeOutcome| {
        [
            name.to_owned(),
            mode_label(outcome.calling).to_owned(),
            format!("{} of {}", outcome.correct, outcome.attempted),
            outcome.first_token_ms.map(format_duration).unwrap_or_default(),
            format_duration(outcome.reply_ms),
            outcome.problem.clone().unwrap_or_default(),
        ]
    };
    let rows: Vec<_> = report.outcomes.iter().map(row).collect();
    output.table(["MODEL", "TOOL CALLING", "CORRECT", "FIRST TOKEN", "ANSWER", "NOTE"], rows);
    if let Some(best) = report.recommended {
        output.message(&format!("{name} now uses tool calling: {}", mode_label(best)));
    }
}

fn no_working_mode(name: &str) -> CliError {
    CliError::failed(format!("model {name} responds, but made no correct tool call in any mode"))
        .with_hint("try a larger model, or set `tool_calling` in its settings")
}
