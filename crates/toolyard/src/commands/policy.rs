//! `toolyard policy check`: validates policies, with the messages of Cedar.

use std::path::PathBuf;

use serde_json::{Value, json};
use toolyard::{PolicyLoadError, load_policy_files};
use toolyard_policy::PolicyProblem;

use crate::{
    config::CliContext,
    error::CliError,
    terminal::{Output, pluralize},
};

pub(super) fn check(files: Vec<PathBuf>, context: &CliContext, output: &Output) -> Result<(), CliError> {
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
