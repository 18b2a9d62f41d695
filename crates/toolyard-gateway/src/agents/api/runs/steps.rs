//! The steps of a run as its events leave them: a pure fold, so that a page shows a run that is over like one under way.

use serde::Serialize;
use serde_json::{Map, Value};
use toolyard_agent::{NO_TOOL, Plan, PlannedTool, RunEnd, RunEvent, Step, StepEnd, Verification};
use toolyard_core::{Resolution, redact};
use utoipa::ToSchema;

use super::{
    arguments::RecordedArguments,
    events::{UNKNOWN_END, client_hint},
};

/// Longer texts of a step are truncated to this many characters; the log has no more than previews anyway.
const MAX_TEXT_CHARACTERS: usize = 2_000;

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::agents::api) enum ApiStepState {
    /// It is not started yet.
    Waiting,
    Running,
    Done,
    /// It failed, or its output reports an error.
    Failed,
    /// Its call was denied.
    Denied,
    /// Its call may have taken effect; a user must resolve it.
    Unknown,
    /// It was not started, and will not be.
    Skipped,
    /// Its call was not made because the run is a dry run.
    Simulated,
    /// Its call waits for an approval.
    NeedsApproval,
}

/// A step of a run.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(in crate::agents::api) struct RunStep {
    id: String,
    /// The tool that it calls; null if a model reasons out the result.
    tool: Option<String>,
    /// The source that answered, or else the planned one.
    source: Option<String>,
    description: String,
    /// The steps that must finish first.
    depends_on: Vec<String>,
    state: ApiStepState,
    /// When its latest attempt began.
    started_at: Option<i64>,
    /// How long its latest attempt took, once it ended.
    duration_ms: Option<u64>,
    /// The arguments, secrets redacted: those of the plan until the step is started. Null if there are none, or if `arguments_text` is set.
    #[schema(value_type = Option<Object>)]
    arguments: Option<Map<String, Value>>,
    /// The arguments as text, in place of `arguments`, if they are shortened or have hidden characters; these are escaped.
    arguments_text: Option<String>,
    /// The beginning of the result.
    output: Option<String>,
    /// Each time that the step was started, oldest first.
    attempts: Vec<StepAttempt>,
    verification: Option<StepVerification>,
    /// Why it has no result.
    error: Option<String>,
    /// What to do about it.
    hint: Option<String>,
    /// Repairs of the plan, references that were resolved approximately, and why a step was not called.
    notes: Vec<String>,
    #[serde(skip)]
    planned_arguments: Map<String, Value>,
    #[serde(skip)]
    is_read_only: bool,
}

/// One start of a step.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(in crate::agents::api) struct StepAttempt {
    started_at: i64,
    /// Null until it ends.
    duration_ms: Option<u64>,
    /// The arguments, secrets redacted. Null if there are none, or if `arguments_text` is set.
    #[schema(value_type = Option<Object>)]
    arguments: Option<Map<String, Value>>,
    /// The arguments as text, in place of `arguments`, if they are shortened or have hidden characters; these are escaped.
    arguments_text: Option<String>,
    /// Why it failed; null if it did not, or has not ended.
    error: Option<String>,
}

/// The verdict on a result.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(in crate::agents::api) struct StepVerification {
    /// Whether the result may be used.
    verified: bool,
    /// From 0 to 1.
    confidence: f64,
    issues: Vec<String>,
}

/// The steps after some events of a run, each with the time when it was logged. Steps of earlier plans stay in the list.
pub(in crate::agents::api) fn run_steps<'a>(
    events: impl IntoIterator<Item = (i64, &'a RunEvent)>,
) -> Vec<RunStep> {
    let mut steps = Vec::new();
    events.into_iter().for_each(|(at, event)| apply(&mut steps, at, event));
    steps
}

fn apply(steps: &mut Vec<RunStep>, at: i64, event: &RunEvent) {
    match event {
        RunEvent::Planned { plan, tools } => apply_plan(steps, plan, |step| tools.get(step)),
        RunEvent::Ended { end, .. } => steps.iter_mut().for_each(|step| step.end_with_run(end)),
        RunEvent::StepStarted { step, arguments_preview, notes, .. } => {
            with_step(steps, step, |step| step.start(at, arguments_preview, notes));
        }
        RunEvent::StepEnded { step, outcome, milliseconds } => {
            with_step(steps, step, |step| step.finish(outcome, *milliseconds));
        }
        RunEvent::StepRepaired { step, arguments, notes } => {
            with_step(steps, step, |step| step.repair(arguments, notes));
        }
        RunEvent::RepairFailed { step, reason } => with_step(steps, step, |step| {
            step.notes.push(text(&format!("no better arguments were found: {reason}")));
        }),
        RunEvent::StepResolved { step, resolution } => {
            with_step(steps, step, |step| step.resolve(*resolution));
        }
        RunEvent::Verified { step, verification } => with_step(steps, step, |step| step.verify(verification)),
        RunEvent::ApprovalRequested { step, .. } => with_step(steps, step, |step| {
            if matches!(step.state, ApiStepState::Waiting | ApiStepState::Running) {
                step.state = ApiStepState::NeedsApproval;
            }
        }),
        RunEvent::ApprovalDecided { step, .. } => with_step(steps, step, |step| {
            if step.state == ApiStepState::NeedsApproval {
                step.state = if step.is_open() { ApiStepState::Running } else { ApiStepState::Waiting };
            }
        }),
        _ => {}
    }
}

fn with_step(steps: &mut [RunStep], id: &str, change: impl FnOnce(&mut RunStep)) {
    if let Some(step) = steps.iter_mut().find(|step| step.id == id) {
        change(step);
    }
}

/// A new plan keeps steps with a result and replaces the others.
fn apply_plan<'a>(steps: &mut Vec<RunStep>, plan: &Plan, tool_of: impl Fn(&str) -> Option<&'a PlannedTool>) {
    for step in steps.iter_mut().filter(|step| step.is_pending()) {
        step.state = ApiStepState::Skipped;
        step.notes.push("a new plan replaced it".to_owned());
    }
    for planned in &plan.steps {
        let new = RunStep::new(planned, tool_of(&planned.id));
        match steps.iter_mut().find(|step| step.id == planned.id) {
            Some(step) if step.state == ApiStepState::Done && step.is_same_call(&new) => {}
            // The attempts of the earlier step under this id stay visible.
            Some(step) => {
                let attempts = std::mem::take(&mut step.attempts);
                *step = RunStep { attempts, ..new };
                step.close_attempt(None, None);
            }
            None => steps.push(new),
        }
    }
}

impl RunStep {
    fn new(step: &Step, tool: Option<&PlannedTool>) -> Self {
        let arguments = planned_arguments(&step.arguments);
        Self {
            id: step.id.clone(),
            tool: (step.tool_type != NO_TOOL).then(|| step.tool_type.clone()),
            source: tool.and_then(|tool| tool.source.as_ref()).map(ToString::to_string),
            description: text(&step.description),
            depends_on: step.dependencies.clone(),
            state: ApiStepState::Waiting,
            started_at: None,
            duration_ms: None,
            arguments: arguments.object,
            arguments_text: arguments.text,
            output: None,
            attempts: Vec::new(),
            verification: None,
            error: None,
            hint: None,
            notes: tool.map(|tool| tool.notes.iter().map(|note| text(note)).collect()).unwrap_or_default(),
            planned_arguments: step.arguments.clone(),
            is_read_only: tool.is_some_and(|tool| tool.read_only) || step.tool_type == NO_TOOL,
        }
    }

    fn is_same_call(&self, other: &Self) -> bool {
        self.tool == other.tool && self.planned_arguments == other.planned_arguments
    }

    /// Whether it was started and has not ended.
    fn is_open(&self) -> bool {
        self.started_at.is_some() && self.duration_ms.is_none()
    }

    /// Whether it has neither ended nor been given up.
    fn is_pending(&self) -> bool {
        matches!(self.state, ApiStepState::Waiting | ApiStepState::Running | ApiStepState::NeedsApproval)
    }

    fn start(&mut self, at: i64, arguments: &str, notes: &[String]) {
        let arguments = RecordedArguments::of(&text(arguments));
        self.state = ApiStepState::Running;
        (self.started_at, self.duration_ms) = (Some(at), None);
        (self.output, self.error, self.hint, self.verification) = (None, None, None, None);
        for note in notes.iter().map(|note| text(note)) {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        self.attempts.push(StepAttempt {
            started_at: at,
            duration_ms: None,
            arguments: arguments.object.clone(),
            arguments_text: arguments.text.clone(),
            error: None,
        });
        (self.arguments, self.arguments_text) = (arguments.object, arguments.text);
    }

    fn finish(&mut self, outcome: &StepEnd, milliseconds: u64) {
        (self.output, self.hint, self.verification) = (None, None, None);
        let (state, error) = match outcome {
            StepEnd::Done { source, preview, reasoned, .. } => {
                self.output = Some(text(preview));
                self.source = source.as_ref().map(ToString::to_string).or_else(|| self.source.take());
                if *reasoned {
                    self.notes.push(
                        "a model reasoned out the result, because the tool could not be used".to_owned(),
                    );
                }
                (ApiStepState::Done, None)
            }
            StepEnd::Failed { message, hint, .. } => {
                self.hint = client_hint(hint.clone()).map(|hint| text(&hint));
                (ApiStepState::Failed, Some(text(message)))
            }
            StepEnd::Skipped { because } => {
                self.notes.push(text(&format!("step `{because}` has no result")));
                (ApiStepState::Skipped, None)
            }
            StepEnd::Denied { by } => (ApiStepState::Denied, Some(text(&format!("denied by {by}")))),
            StepEnd::Unknown { message } => (ApiStepState::Unknown, Some(text(message))),
            StepEnd::Simulated => {
                self.notes.push("the call was not made, because the run is a dry run".to_owned());
                (ApiStepState::Simulated, None)
            }
            _ => (ApiStepState::Unknown, Some(UNKNOWN_END.to_owned())),
        };
        self.state = state;
        if self.is_open() {
            self.duration_ms = Some(milliseconds);
            self.close_attempt(Some(milliseconds), error.as_deref());
        }
        self.error = error;
    }

    /// Ends the latest attempt, unless it ended already.
    fn close_attempt(&mut self, milliseconds: Option<u64>, error: Option<&str>) {
        if let Some(attempt) = self.attempts.last_mut().filter(|attempt| attempt.duration_ms.is_none()) {
            attempt.duration_ms = milliseconds;
            attempt.error = error.map(str::to_owned);
        }
    }

    fn repair(&mut self, arguments: &Map<String, Value>, notes: &[String]) {
        self.state = ApiStepState::Waiting;
        self.planned_arguments = arguments.clone();
        let shown = planned_arguments(arguments);
        (self.arguments, self.arguments_text) = (shown.object, shown.text);
        (self.output, self.error, self.hint, self.verification) = (None, None, None, None);
        // The old ones are about the old arguments.
        self.notes = notes.iter().map(|note| text(note)).collect();
    }

    fn resolve(&mut self, resolution: Resolution) {
        if self.state != ApiStepState::Unknown {
            return;
        }
        self.error = None;
        match resolution {
            // The call returns the answer of the user, and ends once more.
            Resolution::Done if self.started_at.is_some() => {
                self.state = ApiStepState::Running;
                self.duration_ms = None;
                if let Some(attempt) = self.attempts.last_mut() {
                    (attempt.duration_ms, attempt.error) = (None, None);
                }
            }
            Resolution::Done | Resolution::NotDone => self.state = ApiStepState::Waiting,
        }
    }

    fn verify(&mut self, verification: &Verification) {
        if self.state != ApiStepState::Done {
            return;
        }
        if verification.reported_error && !verification.verified {
            self.state = ApiStepState::Failed;
            self.error = Some(text(&verification.issues.join("; ")));
        }
        self.verification = Some(StepVerification {
            verified: verification.verified,
            confidence: verification.confidence,
            issues: verification.issues.iter().map(|issue| text(issue)).collect(),
        });
    }

    fn end_with_run(&mut self, end: &RunEnd) {
        if !self.is_pending() || matches!(end, RunEnd::Suspended { .. } | RunEnd::Planned) {
            return;
        }
        if !self.is_open() {
            self.state = ApiStepState::Skipped;
            return;
        }
        self.state = if self.is_read_only { ApiStepState::Failed } else { ApiStepState::Unknown };
        self.error = Some("the run ended before the step did".to_owned());
    }
}

/// The arguments of a plan as they are shown.
fn planned_arguments(arguments: &Map<String, Value>) -> RecordedArguments {
    if arguments.is_empty() {
        return RecordedArguments::default();
    }
    RecordedArguments::of(&text(&Value::Object(arguments.clone()).to_string()))
}

/// A text without secrets, truncated.
fn text(text: &str) -> String {
    let text = redact(text);
    match text.char_indices().nth(MAX_TEXT_CHARACTERS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.into_owned(),
    }
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
