//! Programs of skills as tools: arguments go in as JSON, the result comes out as JSON.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use serde_json::Value;
use toolyard_core::{
    BoxFuture, CallContext, ContentHash, ErrorKind, RawJson, Tool, ToolCallRequest, ToolError, ToolOutput,
    ToolSpec,
};

use super::{
    content::of_skill,
    description::{Description, understand},
    process::{Finished, Job, ProcessError, run},
};
use crate::text::{one_line, shortened};

const OUTPUT_LIMIT: usize = 10 << 20;
const DESCRIPTION_LIMIT: usize = 1 << 20;
const LAST_LINES: usize = 10;

/// In which surroundings programs run; nothing is taken from the process's own environment.
#[derive(Debug, Clone)]
pub(super) struct Surroundings {
    pub(super) environment: Vec<(String, String)>,
    pub(super) working_directory: PathBuf,
}

/// An executable file directly in a skill's folder.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) skill_folder: PathBuf,
    pub(super) surroundings: Arc<Surroundings>,
    /// The content that was trusted; anything else is not run. Absent for skills that are trusted by nature.
    pub(super) trusted_content: Option<ContentHash>,
}

/// Why a program did not describe itself.
#[derive(Debug)]
pub(super) struct NotDescribed {
    pub(super) message: String,
    /// Whether the same program would fail again.
    pub(super) lasting: bool,
    /// Whether it ran out of time.
    pub(super) too_late: bool,
}

/// Why a program did not come to its own end.
#[derive(Debug, thiserror::Error)]
enum NotFinished {
    /// It was not even started.
    #[error("the skill changed since it was trusted")]
    Changed,
    #[error(transparent)]
    Process(#[from] ProcessError),
}

impl From<NotFinished> for ToolError {
    fn from(error: NotFinished) -> Self {
        let failure = |kind| Self::new(kind, error.to_string());
        match &error {
            NotFinished::Changed => {
                failure(ErrorKind::Refused).with_hint("look at the skill again, then trust it again")
            }
            NotFinished::Process(ProcessError::Start(_)) => failure(ErrorKind::Unavailable),
            NotFinished::Process(ProcessError::DeadlinePassed) => failure(ErrorKind::Timeout),
            // What it did until it was stopped is done; another attempt would write as much again.
            NotFinished::Process(ProcessError::TooMuchOutput { .. }) => {
                failure(ErrorKind::Lost).with_retryable(false)
            }
            NotFinished::Process(ProcessError::Broken(_) | ProcessError::GivenUp) => failure(ErrorKind::Lost),
        }
    }
}

impl Program {
    /// Asks the program what it can do. A description without a single sound tool is none.
    pub(super) async fn describe(&self, deadline: Instant) -> Result<Description, NotDescribed> {
        let failed = |message| NotDescribed { message, lasting: true, too_late: false };
        let answer = self.run("--describe", Vec::new(), DESCRIPTION_LIMIT, deadline).await;
        let finished = answer.map_err(|error| {
            let too_late = matches!(error, NotFinished::Process(ProcessError::DeadlinePassed));
            let too_much = matches!(error, NotFinished::Process(ProcessError::TooMuchOutput { .. }));
            NotDescribed { message: error.to_string(), lasting: too_late || too_much, too_late }
        })?;
        let text = output_text(&finished).map_err(|error| failed(error.message().to_owned()))?;
        let description = understand(&text).map_err(failed)?;
        if description.tools.is_empty() {
            return Err(failed(description.problems.join("; ")));
        }
        Ok(description)
    }

    async fn run(
        &self,
        argument: &str,
        input: Vec<u8>,
        output_limit: usize,
        deadline: Instant,
    ) -> Result<Finished, NotFinished> {
        self.check_content().await?;
        let job = Job {
            program: &self.path,
            argument,
            environment: &self.surroundings.environment,
            skill_folder: &self.skill_folder,
            working_directory: &self.surroundings.working_directory,
            input,
            output_limit,
            deadline,
        };
        Ok(run(job).await?)
    }

    /// Trust was given to a content; it may have changed since.
    async fn check_content(&self) -> Result<(), NotFinished> {
        let Some(trusted) = self.trusted_content else { return Ok(()) };
        let folder = self.skill_folder.clone();
        let current = tokio::task::spawn_blocking(move || of_skill(&folder)).await;
        if matches!(current, Ok(Ok(current)) if current == trusted) {
            Ok(())
        } else {
            Err(NotFinished::Changed)
        }
    }
}

/// One tool of a program.
#[derive(Debug)]
pub(super) struct ProgramTool {
    spec: ToolSpec,
    program: Arc<Program>,
}

impl ProgramTool {
    pub(super) fn new(spec: ToolSpec, program: Arc<Program>) -> Self {
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
            let finished = self.program.run(&self.spec.name, input, OUTPUT_LIMIT, context.deadline).await?;
            let text = output_text(&finished)?;
            let result = RawJson::parse(text).map_err(|_| {
                let seen = String::from_utf8_lossy(&finished.output);
                unreadable(format!("the program printed no JSON: {}", shortened(&one_line(&seen), 200)))
            })?;
            understood(result)
        })
    }
}

/// What the program printed, if it says that it succeeded.
fn output_text(finished: &Finished) -> Result<String, ToolError> {
    let text = String::from_utf8_lossy(&finished.output).trim().to_owned();
    if !finished.status.success() {
        let told = serde_json::from_str(&text).ok().and_then(|value: Value| error_message(&value));
        let told = told.unwrap_or_else(|| last_lines(&finished.last_words));
        let ending = ending(finished);
        // A code is the program's own word that it failed; a signal may have come after it did its work.
        let kind = if finished.status.code().is_some() { ErrorKind::Failed } else { ErrorKind::Lost };
        return Err(ToolError::new(kind, if told.is_empty() { ending } else { format!("{ending}: {told}") }));
    }
    if text.is_empty() {
        let words = last_lines(&finished.last_words);
        let words = if words.is_empty() { String::new() } else { format!(": {words}") };
        return Err(unreadable(format!("the program printed nothing{words}")));
    }
    Ok(text)
}

/// It says that it succeeded, but not with what: the answer is lost, and the next one would be no better.
fn unreadable(message: String) -> ToolError {
    ToolError::new(ErrorKind::Lost, message).with_retryable(false)
}

/// A text is shown as text; the object whose only key is `error` is a failure; anything else is shown as JSON.
fn understood(result: RawJson) -> Result<ToolOutput, ToolError> {
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
    Some(shortened(&crate::text::without_controls(object.get("error")?.as_str()?), 2_000))
}

fn ending(finished: &Finished) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (finished.status.code(), finished.status.signal()) {
        (Some(code), _) => format!("the program ended with code {code}"),
        (None, Some(signal)) => format!("the program was ended by signal {signal}"),
        (None, None) => "the program did not succeed".to_owned(),
    }
}

fn last_lines(words: &str) -> String {
    let lines: Vec<&str> = words.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.get(lines.len().saturating_sub(LAST_LINES)..).unwrap_or_default().join("\n")
}

/// A program's file name for messages.
pub(super) fn file_name(path: &Path) -> String {
    path.file_name().map(|name| one_line(&name.to_string_lossy())).unwrap_or_default()
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
