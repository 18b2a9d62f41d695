//! A step's call made ready: its arguments complete, and what is compared when a person decides.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Map, Value};
use toolyard_core::{
    ContentHash, ErrorKind, RawJson, SourceId, StepAnswer, StepRecord, StepState, ToolCallRequest, ToolError,
    ToolOutput, params, redact_json,
};

use super::{
    aside::aside,
    call::{cut, preview},
    happened::Happened,
    session::Context,
    standing::{Standing, stricter},
    thinking,
};
use crate::{
    Approval, Permission, Phase, ResolvedJson, Run, StepRun, references, resolve_json, values::ValueError,
};

/// So much of arguments is shown.
const SHOWN_ARGUMENTS: usize = 500;
/// So much of arguments is shown to whoever decides about them.
const WHOLE_ARGUMENTS: usize = 64 << 10;
/// How what was taken away as a secret begins.
pub(super) const REDACTED: &str = "[redacted:";

/// A call that could be made now.
#[derive(Debug, Clone)]
pub(super) struct Prepared {
    pub(super) request: ToolCallRequest,
    /// Its arguments, secrets removed, cut.
    pub(super) shown: String,
    /// A short hash of tool and arguments: calls that have the same are identical.
    pub(super) call: String,
    /// A hash of the tool as it is now and the arguments: what a person allows is this.
    pub(super) subject: String,
    pub(super) standing: Standing,
    /// What the journal knows of the call already: nothing is decided about it any more then.
    pub(super) journalled: Option<Box<StepRecord>>,
    /// Where something else was taken than what its arguments say or refer to, in words.
    pub(super) notes: Vec<String>,
    /// Its arguments as a person who decides sees them: secrets removed, whole where that is possible.
    pub(super) whole: String,
}

impl Prepared {
    /// What came of the call, if it was made before and is over; whether secrets are missing in it.
    pub(super) fn known(&self) -> Option<(Result<ToolOutput, ToolError>, bool)> {
        let known = self.journalled.as_ref()?;
        let over = matches!(known.state, StepState::Done | StepState::Failed);
        if !over || known.arguments != ContentHash::of(self.request.arguments.get()) {
            return None;
        }
        let answer: StepAnswer = known.outcome.as_ref()?.read().ok()?;
        Some((answer.into_outcome(), known.redacted))
    }
}

/// Why a step's call cannot be made.
#[derive(Debug, Clone)]
pub(super) struct Unprepared {
    pub(super) message: String,
    pub(super) kind: ErrorKind,
}

/// What is done with a call that could be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Start,
    Deny,
    Rehearse,
    /// A person is to be asked; the number of the question if that was done already.
    Ask(Option<i64>),
}

/// Decides about a call by what is known now, and by what was known when it was planned: the stricter counts.
pub(super) fn verdict(run: &Run, step: &StepRun, prepared: &Prepared) -> Verdict {
    let standing = &prepared.standing;
    let dry_run = run.ask().is_some_and(|ask| ask.dry_run);
    if prepared.journalled.is_some() {
        return Verdict::Start;
    }
    // A plan that is written anew may hold what was done already.
    let again = !standing.read_only && run.has_done(&prepared.call, &step.step.id);
    let always = run.is_always_allowed(&standing.identity);
    match stricter(standing.permission, step.facts.permission) {
        Permission::Deny => Verdict::Deny,
        _ if dry_run && !standing.read_only => Verdict::Rehearse,
        Permission::Allow if !again => Verdict::Start,
        Permission::Allow | Permission::Ask => match &step.approval {
            _ if always && !again => Verdict::Start,
            Approval::Allowed { call } if *call == prepared.subject => Verdict::Start,
            Approval::Asked { question, call, .. } if *call == prepared.subject => {
                Verdict::Ask(Some(*question))
            }
            _ => Verdict::Ask(None),
        },
    }
}

/// A step whose call is to be prepared, and where the values are that it needs.
#[derive(Debug)]
pub(super) struct Wanted {
    step: StepRun,
    /// Steps it refers to, and their names in the journal.
    needs: Vec<(String, String)>,
    /// How large their values are together, in characters.
    size: usize,
}

impl Wanted {
    pub(super) fn of(run: &Run, step: &StepRun) -> Self {
        let referred = references(&step.step.arguments);
        let mut needs: Vec<(String, String)> = Vec::new();
        let mut size: usize = 0;
        for other in referred.iter().filter_map(|reference| run.step(&reference.step)) {
            if other.has_value() && needs.iter().all(|(id, _)| *id != other.step.id) {
                needs.push((other.step.id.clone(), other.journal_name()));
                size = size.saturating_add(other.size());
            }
        }
        Self { step: step.clone(), needs, size }
    }
}

/// Makes a step's call ready.
pub(super) async fn prepare(context: Context<'_>, wanted: Wanted) -> Happened {
    let step = wanted.step.step.id.clone();
    Happened::Prepared { step, outcome: prepared(&context, &wanted).await.map(Box::new) }
}

async fn prepared(context: &Context<'_>, wanted: &Wanted) -> Result<Prepared, Unprepared> {
    let step = &wanted.step;
    let tool = &step.step.tool_type;
    let standing = Standing::of(context.parts, tool);
    let ResolvedJson { arguments, notes: guessed } = arguments(context, wanted, &standing).await?;
    let notes = step.facts.notes.iter().cloned().chain(guessed).collect();
    let mut request = ToolCallRequest::new(tool, arguments);
    request.id = format!("{}.{}", context.lease.run, step.journal_name());
    // What changes something is called where the person or the rules know it to be, and nowhere else.
    let named = standing.source.as_ref().filter(|source| !SourceId::is_native_hint(source.as_str()));
    request.source = named.filter(|_| !standing.read_only).map(ToString::to_string);
    let text = request.arguments.get().as_bytes();
    let call: String = hash([tool.as_bytes(), text]).chars().take(16).collect();
    let subject = hash([standing.identity.as_bytes(), text]);
    let shown = shown_arguments(&request.arguments, SHOWN_ARGUMENTS);
    let whole = shown_arguments(&request.arguments, WHOLE_ARGUMENTS);
    let journalled = match step.phase {
        Phase::Started => journalled(context, &step.journal_name()).await?,
        Phase::Waiting | Phase::Ended(_) => None,
    };
    Ok(Prepared { request, shown, call, subject, standing, journalled, notes, whole })
}

fn hash<const N: usize>(parts: [&[u8]; N]) -> String {
    ContentHash::of_parts(parts).to_string()
}

/// What is known of a call that is over. One that may be made still is decided about like any other.
async fn journalled(context: &Context<'_>, name: &str) -> Result<Option<Box<StepRecord>>, Unprepared> {
    let known = context.parts.log.step(&context.lease.run, name).await;
    let over = |step: &StepRecord| {
        matches!(step.state, StepState::Done | StepState::Failed | StepState::Unknown)
            || (step.state == StepState::Started && !step.repeatable)
    };
    known.map(|known| known.filter(over).map(Box::new)).map_err(|error| ValueError::from(error).into())
}

impl From<ValueError> for Unprepared {
    fn from(error: ValueError) -> Self {
        Self { message: error.to_string(), kind: ErrorKind::Refused }
    }
}

/// The arguments with all references resolved.
async fn arguments(
    context: &Context<'_>,
    wanted: &Wanted,
    standing: &Standing,
) -> Result<ResolvedJson, Unprepared> {
    let step = &wanted.step.step;
    let given: Map<String, Value> = if step.arguments.is_empty() {
        thinking::prepare_tool_input(step, standing.input_schema.as_ref()).unwrap_or_default()
    } else {
        step.arguments.clone()
    };
    let mut values: HashMap<String, Arc<Value>> = HashMap::new();
    for (id, name) in &wanted.needs {
        let value = context.values.get(&*context.parts.log, &context.lease.run, name).await?;
        values.insert(id.clone(), value);
    }
    let taken = standing.input_schema.as_ref().map(|schema| params(&schema.to_value())).unwrap_or_default();
    let resolve = move || resolve_json(&given, &taken, &|id| values.get(id).map(Arc::clone));
    let resolved = aside(wanted.size, resolve).await.ok_or_else(|| {
        let message = "its arguments could not be put together".to_owned();
        Unprepared { message, kind: ErrorKind::Internal }
    })?;
    let resolved = resolved
        .map_err(|error| Unprepared { message: error.to_string(), kind: ErrorKind::InvalidArguments })?;
    // What a model reasoned out and what tools said before a crash is known only without its secrets.
    if context.resumed && resolved.arguments.get().contains(REDACTED) {
        let message =
            "its arguments held a secret, which is never written down, and the process that knew it is gone";
        return Err(Unprepared { message: message.to_owned(), kind: ErrorKind::Refused });
    }
    for note in &resolved.notes {
        tracing::info!(run = %context.lease.run, step = step.id, note, "a reference was read generously");
    }
    Ok(resolved)
}

/// The beginning of arguments, secrets removed; of large ones no more is looked at than is shown.
fn shown_arguments(arguments: &RawJson, most: usize) -> String {
    if arguments.get().len() <= 32 * most {
        return cut(redact_json(arguments).0.get(), most);
    }
    preview(arguments.get())
}
