//! `toolyard models test`: whether models answer, and how they call tools best.

use serde_json::json;
use toolyard::{Models, ModelsError};
use toolyard_model::{ProbeOptions, ProbeOutcome, ProbeReport, probe};

use super::{
    model_memory::{self, Memory},
    models::way,
};
use crate::{
    failure::{Code, Failure},
    folders::Workplace,
    output::{Output, harmless},
    progress::waiting,
    run_view::time,
};

/// Tests these models, or all of them, and remembers what was found. Fails if one cannot be used.
pub(super) async fn run(names: &[String], workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let models = model_memory::models(workplace);
    let all = models.names();
    let names = if names.is_empty() { &all } else { names };
    if names.is_empty() {
        return Err(ModelsError::None.into());
    }
    let (mut reports, mut failed) = (Vec::new(), None);
    for name in names {
        let failure = match tested(name, &models).await? {
            Ok(report) => {
                remember(name, &report, workplace)?;
                if !output.wants_json() {
                    tell(name, &report, output);
                }
                reports.push(json!(report));
                report.recommended.is_none().then(|| useless(name))
            }
            Err(failure) => {
                reports.push(json!({"model": name, "error": failure.message()}));
                Some(failure)
            }
        };
        if let Some(failure) = failure {
            if !output.wants_json() {
                failure.tell(output);
            }
            failed = Some(failure.silent());
        }
    }
    if output.wants_json() {
        output.json(&reports);
    }
    failed.map_or(Ok(()), Err)
}

/// Tests one model; that one cannot be used does not keep the others from being tested.
async fn tested(name: &str, models: &Models) -> Result<Result<ProbeReport, Failure>, Failure> {
    let model = match models.get(Some(name)) {
        Ok(model) => model,
        Err(error) => return Ok(Err(error.into())),
    };
    let probed = waiting(name, probe(model.as_ref(), ProbeOptions::default())).await?;
    Ok(probed.map_err(Failure::from))
}

fn remember(name: &str, report: &ProbeReport, workplace: &Workplace) -> Result<(), Failure> {
    let (Some(best), Some(settings)) = (report.recommended, workplace.settings.models.get(name)) else {
        return Ok(());
    };
    Memory::read(workplace).remember(settings.fingerprint(), best, workplace)
}

fn tell(name: &str, report: &ProbeReport, output: &Output) {
    let row = |outcome: &ProbeOutcome| {
        [
            harmless(name),
            way(outcome.calling).to_owned(),
            format!("{} of {}", outcome.right, outcome.asked),
            outcome.first_token_ms.map(time).unwrap_or_default(),
            time(outcome.answer_ms),
            outcome.problem.as_deref().map(harmless).unwrap_or_default(),
        ]
    };
    let rows: Vec<_> = report.outcomes.iter().map(row).collect();
    output.table(["MODEL", "CALLS TOOLS", "RIGHT", "FIRST WORD", "ANSWER", "NOTE"], &rows);
    if let Some(best) = report.recommended {
        output.talk(&format!("{name} calls tools {} from now on", way(best)));
    }
}

fn useless(name: &str) -> Failure {
    Failure::new(Code::Failed, format!("{name} answers, but called no tool rightly in any way")).with_hint(
        "small models often cannot; try a larger one, or choose a way yourself with `tool_calling`",
    )
}
