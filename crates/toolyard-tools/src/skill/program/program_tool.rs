//! A program of a skill, and the tools it provides.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Instant,
};

use serde_json::Value;
use toolyard_core::{
    BoxFuture, CallContext, ContentHash, ErrorKind, RawJson, SecretValues, Tool, ToolCallRequest, ToolError,
    ToolOutput, ToolSpec, sanitize,
};

use super::{
    description::{Description, parse_description},
    process::{ProcessError, ProcessOutput, ProcessSpec, run_process},
};
use crate::{
    skill::content_hash::skill_content_hash,
    text::{MAX_EXCERPT_CHARS, one_line, truncate},
};

/// Characters of an error that a program reports in its output.
const MAX_ERROR_CHARS: usize = 2_000;
const MAX_OUTPUT_BYTES: usize = 10 << 20;
const MAX_DESCRIPTION_BYTES: usize = 1 << 20;
/// Lines of stderr in an error message.
const MAX_STDERR_LINES: usize = 10;

/// The environment of programs; nothing is inherited from this process.
#[derive(Debug)]
pub(in crate::skill) struct ProgramEnvironment {
    variables: Vec<(String, String)>,
    working_directory: PathBuf,
    /// The variables that are secrets, determined at the first output because that needs the redaction rules.
    secrets: OnceLock<SecretValues>,
}

impl ProgramEnvironment {
    pub(in crate::skill) fn new(variables: Vec<(String, String)>, working_directory: PathBuf) -> Self {
        Self { variables, working_directory, secrets: OnceLock::new() }
    }

    /// The output of a program with the secrets of its environment redacted.
    fn redact(&self, output: ProcessOutput) -> ProcessOutput {
        let secrets = self.secrets.get_or_init(|| SecretValues::of_variables(&self.variables));
        if secrets.is_empty() {
            return output;
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let stdout = match RawJson::parse(text.trim().to_owned()) {
            Ok(json) => secrets.redact_json(&json).0.get().as_bytes().to_vec(),
            Err(_) => secrets.redact(&text).into_owned().into_bytes(),
        };
        ProcessOutput { stdout, stderr_tail: secrets.redact(&output.stderr_tail).into_owned(), ..output }
    }
}

/// An executable file directly in a skill's folder.
#[derive(Debug)]
pub(in crate::skill) struct Program {
    pub(in crate::skill) path: PathBuf,
    pub(in crate::skill) skill_folder: PathBuf,
    pub(in crate::skill) environment: Arc<ProgramEnvironment>,
    /// The hash of the trusted content; the program does not run if the skill differs. Absent for the user's own skills.
    pub(in crate::skill) trusted_content: Option<ContentHash>,
}

#[derive(Debug)]
pub(super) struct DescribeError {
    pub(super) message: String,
    /// Whether the same program would fail again.
    pub(super) is_permanent: bool,
    pub(super) timed_out: bool,
}

#[derive(Debug, thiserror::Error)]
enum RunError {
    /// A file of the skill changed, was added or removed after it was trusted, so its programs do not run.
    ///
    /// Remedy: review the folder, then trust it again: `toolyard skills trust NAME`.
    #[error("the skill changed since it was trusted")]
    SkillChanged,
    #[error(transparent)]
    Process(#[from] ProcessError),
}

impl From<RunError> for ToolError {
    fn from(error: RunError) -> Self {
        let tool_error = |kind| Self::new(kind, error.to_string());
        match &error {
            RunError::SkillChanged => {
                tool_error(ErrorKind::Refused).with_hint("review the skill, then trust it again")
            }
            RunError::Process(ProcessError::Start(_)) => tool_error(ErrorKind::Unavailable),
            RunError::Process(ProcessError::DeadlineExceeded) => tool_error(ErrorKind::Timeout),
            // The program may have taken effect, and a retry would write as much again.
            RunError::Process(ProcessError::TooMuchOutput { .. }) => {
                tool_error(ErrorKind::ResponseLost).with_retryable(false)
            }
            RunError::Process(ProcessError::Io(_) | ProcessError::Cancelled) => {
                tool_error(ErrorKind::ResponseLost)
            }
        }
    }
}

impl Program {
    /// Runs `--describe`. A description without a valid tool is an error.
    pub(super) async fn describe(&self, deadline: Instant) -> Result<Description, DescribeError> {
        let permanent_error = |message| DescribeError { message, is_permanent: true, timed_out: false };
        let result = self.run("--describe", Vec::new(), MAX_DESCRIPTION_BYTES, deadline).await;
        let output = result.map_err(|error| {
            let timed_out = matches!(error, RunError::Process(ProcessError::DeadlineExceeded));
            let has_too_much_output = matches!(error, RunError::Process(ProcessError::TooMuchOutput { .. }));
            DescribeError {
                message: error.to_string(),
                is_permanent: timed_out || has_too_much_output,
                timed_out,
            }
        })?;
        let text = output_text(&output).map_err(|error| permanent_error(error.message().to_owned()))?;
        let description = parse_description(&text).map_err(|error| permanent_error(error.to_string()))?;
        if description.tools.is_empty() {
            return Err(permanent_error(description.problems.join("; ")));
        }
        Ok(description)
    }

    async fn run(
        &self,
        argument: &str,
        input: Vec<u8>,
        max_output_bytes: usize,
        deadline: Instant,
    ) -> Result<ProcessOutput, RunError> {
        self.check_content().await?;
        let spec = ProcessSpec {
            program: &self.path,
            argument,
            environment: &self.environment.variables,
            skill_folder: &self.skill_folder,
            working_directory: &self.environment.working_directory,
            input,
            max_output_bytes,
            deadline,
        };
        Ok(self.environment.redact(run_process(spec).await?))
    }

    /// Fails if the skill changed since it was trusted.
    async fn check_content(&self) -> Result<(), RunError> {
        let Some(trusted) = self.trusted_content else { return Ok(()) };
        let folder = self.skill_folder.clone();
        let current = tokio::task::spawn_blocking(move || skill_content_hash(&folder)).await;
        if matches!(current, Ok(Ok(current)) if current == trusted) {
            Ok(())
        } else {
            Err(RunError::SkillChanged)
        }
    }
}

/// One tool of a program.
#[derive(Debug)]
pub(in crate::skill) struct ProgramTool {
    spec: ToolSpec,
    program: Arc<Program>,
}

impl ProgramTool {
    pub(in crate::skill) fn new(spec: ToolSpec, program: Arc<Program>) -> Self {
        Self { spec, program }
    }
}

impl Tool for ProgramTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let input = request.arguments.get().as_bytes().to_vec();
            let output = self.program.run(&self.spec.name, input, MAX_OUTPUT_BYTES, context.deadline).await?;
            let text = output_text(&output)?;
            let result = RawJson::parse(text).map_err(|_| {
                let printed = String::from_utf8_lossy(&output.stdout);
                invalid_output(format!(
                    "the program printed no JSON: {}",
                    truncate(&one_line(&printed), MAX_EXCERPT_CHARS)
                ))
            })?;
            to_tool_output(result)
        })
    }
}

/// The text that a successful program printed.
fn output_text(output: &ProcessOutput) -> Result<String, ToolError> {
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !output.status.success() {
        let message = serde_json::from_str(&text).ok().and_then(|value: Value| error_message(&value));
        let message = message.unwrap_or_else(|| last_lines(&output.stderr_tail));
        let exit = describe_exit(output);
        // With an exit code the program itself reports failure; a signal may arrive after it took effect.
        let kind = if output.status.code().is_some() { ErrorKind::Failed } else { ErrorKind::ResponseLost };
        return Err(ToolError::new(
            kind,
            if message.is_empty() { exit } else { format!("{exit}: {message}") },
        ));
    }
    if text.is_empty() {
        let stderr = last_lines(&output.stderr_tail);
        let stderr = if stderr.is_empty() { String::new() } else { format!(": {stderr}") };
        return Err(invalid_output(format!("the program printed nothing{stderr}")));
    }
    Ok(text)
}

/// The program succeeded but its result is lost; a retry would not help.
fn invalid_output(message: String) -> ToolError {
    ToolError::new(ErrorKind::ResponseLost, message).with_retryable(false)
}

/// A JSON string becomes text, an object whose only key is `error` a failure, everything else JSON output.
fn to_tool_output(result: RawJson) -> Result<ToolOutput, ToolError> {
    if !result.get().starts_with(['"', '{']) {
        return Ok(ToolOutput::json(result));
    }
    match result.to_value() {
        Value::String(text) => Ok(ToolOutput::text(text)),
        value => match error_message(&value) {
            Some(message) => Err(ToolError::failed(message)),
            None => Ok(ToolOutput::json(result)),
        },
    }
}

fn error_message(value: &Value) -> Option<String> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    Some(truncate(&sanitize(object.get("error")?.as_str()?).0, MAX_ERROR_CHARS))
}

fn describe_exit(output: &ProcessOutput) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (output.status.code(), output.status.signal()) {
        (Some(code), _) => format!("the program exited with code {code}"),
        (None, Some(signal)) => format!("the program was killed by signal {signal}"),
        (None, None) => "the program did not succeed".to_owned(),
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.get(lines.len().saturating_sub(MAX_STDERR_LINES)..).unwrap_or_default().join("\n")
}

/// The file name of a program, for messages.
pub(in crate::skill) fn file_name(path: &Path) -> String {
    path.file_name().map(|name| one_line(&name.to_string_lossy())).unwrap_or_default()
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
