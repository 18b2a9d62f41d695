//! `toolyard policy`: validates, tests and explains policies.

mod explain;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolyard::{PolicyLoadError, load_policy, load_policy_files};
use toolyard_policy::{Policy, PolicyCase, PolicyCases, PolicyProblem};

use crate::{
    cli::PolicyCommand,
    config::CliContext,
    error::CliError,
    terminal::{Output, pluralize},
};

pub(super) async fn run(
    command: PolicyCommand,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        PolicyCommand::Check { files } => check(files, context, output),
        PolicyCommand::Test { file } => test(&file, context, output),
        PolicyCommand::Explain(arguments) => explain::run(arguments, context, output).await,
    }
}

fn check(files: Vec<PathBuf>, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let files = if files.is_empty() { context.settings.policy.files.clone() } else { files };
    if files.is_empty() {
        return Err(CliError::usage("there are no policies")
            .with_hint("name a file: toolyard policy check FILE, or set `[policy] files` in toolyard.toml"));
    }
    let (policies, problems, warnings) = match load_policy_files(&context.settings, &files) {
        Ok(policy) => (policy.policy_count(), Vec::new(), policy.warnings().to_vec()),
        Err(PolicyLoadError::Invalid(error)) => (0, error.problems, Vec::new()),
        Err(other) => {
            return Err(CliError::failed(other.to_string()).with_hint("check the path and its permissions"));
        }
    };
    if output.is_json() {
        output.json(&json!({
            "files": files,
            "policies": policies,
            "problems": problems.iter().map(problem_json).collect::<Vec<_>>(),
            "warnings": warnings.iter().map(problem_json).collect::<Vec<_>>(),
        }));
    } else {
        for problem in &problems {
            output.line(&problem.to_string());
            if let Some(hint) = &problem.hint {
                output.line(&format!("  hint: {hint}"));
            }
        }
        warnings.iter().for_each(|warning| output.line(&format!("warning: {warning}")));
        if problems.is_empty() {
            let policies = count(policies, "policy", "policies");
            output.line(&format!("{policies} in {}, all valid", pluralize(files.len(), "file")));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    let failure = CliError::failed(format!("the policies have {}", pluralize(problems.len(), "problem")));
    Err(if output.is_json() { failure.without_message() } else { failure })
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn problem_json(problem: &PolicyProblem) -> Value {
    let PolicyProblem { file, line, policy, message, hint } = problem;
    json!({"file": file, "line": line, "policy": policy, "message": message, "hint": hint})
}

fn test(file: &Path, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let cases = read_cases(file)?;
    let policy = match cases.policies.as_slice() {
        [] => load(context)?,
        files => {
            let folder = file.parent().unwrap_or(Path::new("."));
            let files: Vec<PathBuf> = files.iter().map(|file| folder.join(file)).collect();
            load_policy_files(&context.settings, &files).map_err(unusable)?
        }
    };
    let mut results = Vec::new();
    for case in &cases.cases {
        let decision = case.decide(&policy).map_err(|error| {
            CliError::usage(format!("case `{}` of {}: {error}", case.name, file.display()))
                .with_hint("the person at this machine is `local`")
        })?;
        results.push((case, case.is_met_by(&decision), decision));
    }
    let failed = results.iter().filter(|(_, is_met, _)| !is_met).count();
    if output.is_json() {
        let result = |(case, is_met, decision): &(&PolicyCase, bool, toolyard_core::PolicyDecision)| {
            let grounds = decision.grounds();
            json!({
                "name": case.name, "passed": is_met, "expected": case.expect.label(), "decision": decision.label(),
                "policies": grounds.policies, "reason": grounds.reason,
            })
        };
        output.json(&json!({
            "cases": results.iter().map(result).collect::<Vec<_>>(), "passed": results.len() - failed, "failed": failed,
        }));
    } else {
        for (case, _, decision) in results.iter().filter(|(_, is_met, _)| !is_met) {
            let grounds = decision.grounds();
            let by = case.policy.as_ref().map(|policy| format!(" by `{policy}`")).unwrap_or_default();
            let (expected, actual) = (case.expect.label(), decision.label());
            output.line(&format!("{}: expected {expected}{by}, but {actual}: {}", case.name, grounds.reason));
        }
        output.line(&format!("{} passed, {failed} failed", results.len() - failed));
    }
    match failed {
        0 => Ok(()),
        _ if output.is_json() => Err(CliError::failed("").without_message()),
        _ => Err(CliError::failed(format!("{} failed", pluralize(failed, "case")))
            .with_hint("see why: toolyard policy explain --tool NAME")),
    }
}

fn read_cases(file: &Path) -> Result<PolicyCases, CliError> {
    let text = std::fs::read_to_string(file).map_err(|error| CliError::file("read", file, error))?;
    let is_json = file.extension().is_some_and(|extension| extension == "json");
    let cases = match is_json {
        true => serde_json::from_str(&text).map_err(|error| error.to_string()),
        false => toml::from_str(&text).map_err(|error| error.to_string()),
    };
    cases.map_err(|error| {
        CliError::usage(format!("invalid test cases in {}: {error}", file.display()))
            .with_hint("the form of test cases: docs/guide/policy.md")
    })
}

/// The policies and patterns of the settings.
fn load(context: &CliContext) -> Result<Policy, CliError> {
    load_policy(&context.settings, Path::new(".")).map_err(unusable)
}

fn unusable(error: PolicyLoadError) -> CliError {
    toolyard::Error::from(error).into()
}
