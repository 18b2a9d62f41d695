//! Works on a run while somebody watches, and says what became of it.

use std::time::Duration;

use toolyard::{AgentsError, ModelsError, Toolyard};
use toolyard_agent::{Agent, AgentError, CancelToken, RunEnd};
use toolyard_core::{JournalError, RunId};
use toolyard_model::{ModelError, ModelErrorKind};

use crate::{
    failure::{Code, Failure},
    output::Output,
    progress::interrupted,
    run_view::{RowState, RunTree, View},
};

/// How long a run stays that of a command after it was killed; somebody waits for it at the keyboard.
const LEASE: Duration = Duration::from_secs(6);
/// How often wheels turn.
const TURN: Duration = Duration::from_millis(120);

/// An agent for a command, and the name of the model that it thinks with.
pub(super) fn agent(yard: &Toolyard, name: &str, model: Option<&str>) -> Result<(Agent, String), Failure> {
    let agents = yard.agents();
    let agent = agents.agent(name, model)?.with_lease(LEASE);
    Ok((agent, agents.model_name(name, model)?))
}

/// Says of a model that nobody tested that it should be.
pub(super) fn advise(yard: &Toolyard, model: &str, output: &Output) {
    let models = yard.agents().models();
    if models.described(model).is_some_and(|settings| models.tool_calling(settings).is_none()) {
        output.talk(&format!(
            "note: how {model} calls tools best is not known yet: toolyard models test {model}"
        ));
    }
}

/// Works on a run until it ends or waits for a person. Ctrl-c cancels it; once more, and it is left as it is.
pub(super) async fn drive(
    agent: &Agent,
    run: &RunId,
    view: &View<'_>,
    stop: &CancelToken,
) -> Result<RunEnd, Failure> {
    let mut work = std::pin::pin!(agent.drive(run, view, stop));
    loop {
        let mut interrupted = std::pin::pin!(interrupted());
        loop {
            tokio::select! {
                ended = &mut work => return Ok(ended?),
                () = tokio::time::sleep(TURN) => view.tick(),
                () = &mut interrupted => break,
            }
        }
        if stop.is_cancelled() {
            let message = format!("stopped at once; run {run} is left as it is");
            return Err(Failure::new(Code::Interrupted, message)
                .with_hint(format!("go on with it: toolyard runs resume {run}")));
        }
        stop.cancel();
        view.say("cancelling: calls that are under way are given up, what was done stays done; again to stop at once");
    }
}

/// Prints the answer, where the run is, and what to do if there is no answer.
pub(super) fn finish(run: &RunId, end: &RunEnd, view: View<'_>, output: &Output) -> Result<(), Failure> {
    let told = conclude(run, end, view, output);
    if output.wants_json() {
        return told;
    }
    if let Err(failure) = &told {
        failure.tell(output);
    }
    output.talk(&format!("run {run}   resume, inspect or replay: toolyard runs show {run}"));
    told.map_err(Failure::silent)
}

/// Prints the answer.
pub(super) fn conclude(run: &RunId, end: &RunEnd, view: View<'_>, output: &Output) -> Result<(), Failure> {
    let (tree, streamed) = view.end();
    if output.wants_json() {
        return outcome(run, end, &tree).map_err(Failure::silent);
    }
    if let RunEnd::Answered { answer, .. } = end {
        if streamed.trim() == answer.trim() {
            // It was shown as it came.
            output.piece("\n");
        } else {
            if !streamed.is_empty() {
                output.piece("\n");
            }
            output.foreign(answer);
        }
    }
    outcome(run, end, &tree)
}

/// What an end means for whoever asked.
fn outcome(run: &RunId, end: &RunEnd, tree: &RunTree) -> Result<(), Failure> {
    match end {
        RunEnd::Answered { .. } | RunEnd::Planned => Ok(()),
        RunEnd::Failed { message, hint } => {
            let has = |state| tree.rows.iter().any(|row| row.state == state);
            let code = match () {
                () if has(RowState::Denied) && !has(RowState::Failed) => Code::Refused,
                () if tree.rows.is_empty() && tree.model_problem.is_some() => Code::Unreachable,
                () => Code::Failed,
            };
            let failure = Failure::new(code, message.clone());
            Err(match hint {
                Some(hint) => failure.with_hint(hint.clone()),
                None => failure,
            })
        }
        RunEnd::Suspended { waiting } => Err(suspended(run, waiting, tree)),
        RunEnd::Cancelled => {
            let failure = Failure::new(Code::Interrupted, "the run was cancelled");
            Err(match tree.rows.iter().find(|row| row.state == RowState::Unknown) {
                Some(row) => failure.with_hint(format!(
                    "nobody knows whether {} took effect; if you do: toolyard runs resolve {run} {} done|not-done",
                    row.id, row.id
                )),
                None => failure,
            })
        }
        RunEnd::Capped { message, .. } => {
            let agent = tree.asked.as_ref().map(|ask| ask.agent.clone()).unwrap_or_default();
            let hint = format!("raise it in toolyard.toml: limits of [agents.{agent}]");
            Err(Failure::new(Code::Failed, message.clone()).with_hint(hint))
        }
    }
}

/// A run that waits for a person: for a word on what may be done, or on what was done.
fn suspended(run: &RunId, waiting: &[String], tree: &RunTree) -> Failure {
    let asks: Vec<&str> =
        tree.rows.iter().filter(|row| row.state == RowState::Asks).map(|row| row.tool.as_str()).collect();
    let unknown: Vec<&str> =
        tree.rows.iter().filter(|row| row.state == RowState::Unknown).map(|row| row.id.as_str()).collect();
    match (asks.as_slice(), unknown.as_slice()) {
        ([], [step, ..]) => Failure::new(
            Code::Unknown,
            format!("nobody knows whether {} took effect; the run waits for your word", unknown.join(", ")),
        )
        .with_hint(format!(
            "toolyard runs resolve {run} {step} done|not-done, then: toolyard runs resume {run}"
        )),
        _ => {
            let what = if asks.is_empty() { waiting.join(", ") } else { asks.join(", ") };
            Failure::new(Code::Waits, format!("the run is suspended: it waits for a person to allow {what}"))
                .with_hint(format!("toolyard runs approve {run}   (or, to say no: --deny)"))
        }
    }
}

impl From<AgentError> for Failure {
    fn from(error: AgentError) -> Self {
        let (code, hint) = match &error {
            AgentError::Journal(JournalError::UnknownRun(_))
            | AgentError::Over(_)
            | AgentError::OtherKind { .. } => (Code::BadUse, error.hint()),
            _ => (Code::Failed, error.hint()),
        };
        let failure = Self::new(code, error.to_string());
        match hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        use ModelErrorKind as K;
        let code = match error.kind {
            K::Unreachable | K::Timeout | K::Busy | K::Unauthorized => Code::Unreachable,
            _ => Code::Failed,
        };
        let failure = Self::new(code, error.to_string());
        match error.hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

impl From<AgentsError> for Failure {
    fn from(error: AgentsError) -> Self {
        match error {
            AgentsError::Unknown { ref name, .. } => {
                let hint = format!("describe it in toolyard.toml: [agents.{name}]");
                Self::new(Code::BadUse, error.to_string()).with_hint(hint)
            }
            AgentsError::Models(error) => error.into(),
            other => Self::new(Code::Failed, other.to_string()),
        }
    }
}

/// What to write where there is no model yet.
const FIRST_MODEL: &str = "\
give it one in your toolyard.toml, or with `toolyard models add`:
    [models.local]
    url = \"http://127.0.0.1:11434/v1\"      # Ollama; llama.cpp has http://127.0.0.1:8080/v1
    model = \"qwen2.5:7b\"
  or
    [models.gpt]
    url = \"https://api.openai.com/v1\"
    model = \"gpt-5-mini\"
    key = \"${OPENAI_API_KEY}\"";

impl From<ModelsError> for Failure {
    fn from(error: ModelsError) -> Self {
        let failure = |error: &ModelsError| Self::new(Code::BadUse, error.to_string());
        match error {
            ModelsError::None => failure(&error).with_hint(FIRST_MODEL),
            ModelsError::Several { ref known } => {
                let first = known.first().map(String::as_str).unwrap_or_default();
                let hint =
                    format!("say which with --model, or in toolyard.toml: default_model = \"{first}\"");
                failure(&error).with_hint(hint)
            }
            ModelsError::Settings(error) => error.into(),
            error => failure(&error).with_hint("list them: toolyard models list"),
        }
    }
}
