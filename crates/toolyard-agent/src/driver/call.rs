//! A step's call: its arguments made complete, what it is compared with when a person decides, and its execution.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Map, Value};
use tokio::time::Instant;
use toolyard_core::{
    Capability, ContentHash, ErrorKind, RawJson, ResultForm, SourceId, StepRecord, StepState,
    ToolCallRequest, ToolError, ToolOutput, params, redact, redact_json,
};
use toolyard_hub::{Budget, CallOptions};

use super::{
    happened::{CallEnd, Happened},
    progress::StepCaller,
    session::Context,
    standing::{Standing, profile, stricter},
    thinking,
};
use crate::{
    AgentParts, Approval, Permission, Phase, Run, StepRun, Verification, references, resolve_json,
    result_form, step_value, values::ValueError,
};

/// So much of arguments is shown.
const SHOWN_ARGUMENTS: usize = 500;
/// So much of arguments is shown to whoever decides about them.
const WHOLE_ARGUMENTS: usize = 64 << 10;
/// So much of a value is shown.
const PREVIEW: usize = 500;
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
    /// What the journal knows of a call that is over, so that nothing is decided about it any more.
    pub(super) journalled: Option<Journalled>,
    /// Its arguments as a person who decides sees them: secrets removed, whole where that is possible.
    pub(super) whole: String,
}

/// What the journal knows of a call that is over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Journalled {
    /// Whether secrets were taken out of its result, so that it is not what the tool said.
    redacted: bool,
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
}

impl Wanted {
    pub(super) fn of(run: &Run, step: &StepRun) -> Self {
        let referred = references(&step.step.arguments);
        let mut needs: Vec<(String, String)> = Vec::new();
        for other in referred.iter().filter_map(|reference| run.step(&reference.step)) {
            if other.has_value() && needs.iter().all(|(id, _)| *id != other.step.id) {
                needs.push((other.step.id.clone(), other.journal_name()));
            }
        }
        Self { step: step.clone(), needs }
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
    let arguments = arguments(context, wanted, &standing).await?;
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
        _ => None,
    };
    Ok(Prepared { request, shown, call, subject, standing, journalled, whole })
}

fn hash<const N: usize>(parts: [&[u8]; N]) -> String {
    ContentHash::of_parts(parts).to_string()
}

/// What is known of a call that is over. One that may be made still is decided about like any other.
async fn journalled(context: &Context<'_>, name: &str) -> Result<Option<Journalled>, Unprepared> {
    let known = context.parts.log.step(&context.lease.run, name).await.map_err(ValueError::from)?;
    let over = |step: &StepRecord| {
        matches!(step.state, StepState::Done | StepState::Failed | StepState::Unknown)
            || (step.state == StepState::Started && !step.repeatable)
    };
    Ok(known.filter(over).map(|step| Journalled { redacted: step.redacted }))
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
) -> Result<RawJson, Unprepared> {
    let step = &wanted.step.step;
    let given: Map<String, Value> = if step.arguments.is_empty() {
        thinking::prepare_tool_input(step, standing.input_schema.as_ref()).unwrap_or_default()
    } else {
        step.arguments.clone()
    };
    let mut values: HashMap<&str, Arc<Value>> = HashMap::new();
    for (id, name) in &wanted.needs {
        let value = context.values.get(&*context.parts.log, &context.lease.run, name).await?;
        values.insert(id, value);
    }
    let taken = standing.input_schema.as_ref().map(|schema| params(&schema.to_value())).unwrap_or_default();
    let resolved = resolve_json(&given, &taken, &|id| values.get(id).map(Arc::clone));
    let resolved = resolved
        .map_err(|error| Unprepared { message: error.to_string(), kind: ErrorKind::InvalidArguments })?;
    // What a model reasoned out and what tools said before a crash is known only without its secrets.
    if context.resumed && resolved.arguments.get().contains(REDACTED) {
        return Err(secret_is_gone());
    }
    for note in &resolved.notes {
        tracing::info!(run = %context.lease.run, step = step.id, note, "a reference was read generously");
    }
    Ok(resolved.arguments)
}

fn secret_is_gone() -> Unprepared {
    let message =
        "its arguments held a secret, which is never written down, and the process that knew it is gone";
    Unprepared { message: message.to_owned(), kind: ErrorKind::Refused }
}

/// Makes a call, as a step that the journal knows.
pub(super) async fn call(
    context: Context<'_>,
    step: StepRun,
    prepared: Box<Prepared>,
    question: String,
    earlier: Vec<(String, String)>,
) -> Happened {
    let began = Instant::now();
    let caller = context.watcher.caller(&step.step.id);
    let caller = StepCaller::new(&context.lease.run, &step.step.id, context.progress.clone(), caller);
    let purpose = if step.step.description.is_empty() { question } else { step.step.description.clone() };
    let options = CallOptions::default()
        .with_timeout(context.agent.patience)
        .with_budget(Budget::Whole)
        .with_caller(Arc::new(caller))
        .within(Arc::new(profile(context.parts)))
        .judged(prepared.standing.definitions.clone())
        .on_behalf_of(context.parts.config.name.as_str())
        .for_request(purpose);
    let capability = thinking::infer_capability(&step.step)
        .filter(|capability| prepared.standing.read_only && may_be_asked(context.parts, capability));
    let (parts, name) = (context.parts, step.journal_name());
    let made = parts.hub.execute_step_or_by_capability(
        &*parts.log,
        context.lease,
        &name,
        &prepared.request,
        capability.as_ref(),
        &options,
    );
    let outcome = match Box::pin(made).await {
        Ok(output) => {
            let redacted = prepared.journalled.is_some_and(|known| known.redacted);
            done(&context, &step, &prepared.standing, &output, redacted, &earlier)
        }
        Err(error) => failed(error, &prepared.standing),
    };
    let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Happened::Called { step: step.step.id, outcome: Box::new(outcome), milliseconds }
}

/// Whether everybody who could stand in for a tool may be called without a person.
fn may_be_asked(parts: &AgentParts, capability: &Capability) -> bool {
    let (snapshot, profile) = (parts.hub.snapshot(), profile(parts));
    let stand_ins = snapshot.find_by_capability(capability.as_str());
    let mut stand_ins = stand_ins.iter().filter(|tool| tool.hints.read_only && profile.offers(tool));
    stand_ins.all(|tool| {
        let permission = parts.rules.permission(&tool.name, tool.source_id().as_str(), tool.hints);
        permission == Permission::Allow
    })
}

/// Remembers what a good result looks like, so that the next plan can refer to its parts.
pub(super) async fn learn(context: Context<'_>, form: ResultForm) -> Happened {
    if let Some(forms) = &context.parts.forms {
        forms.learn(&form).await;
    }
    Happened::Learned
}

fn failed(error: ToolError, standing: &Standing) -> CallEnd {
    let nobody = matches!(error.kind(), ErrorKind::UnknownTool | ErrorKind::UnknownCapability);
    if nobody && standing.source.is_none() { CallEnd::NoTool(error) } else { CallEnd::Failed(error) }
}

fn done(
    context: &Context<'_>,
    step: &StepRun,
    standing: &Standing,
    output: &ToolOutput,
    redacted: bool,
    earlier: &[(String, String)],
) -> CallEnd {
    let text = output.to_text();
    let value = step_value(output.structured.as_ref(), &text);
    // Whoever needs what secrets were taken out of hears so when it is looked for.
    let value = if redacted { Arc::new(value) } else { context.values.put(step.journal_name(), value) };
    let looked_at = thinking::verify(&step.step, &value, &text, standing.output_schema.as_ref(), earlier);
    CallEnd::Done {
        source: output.meta.source.clone(),
        preview: preview(&text),
        size: text.chars().count(),
        form: result_form(&value).filter(|_| looked_at.verified),
        verification: looked_at,
    }
}

/// The beginning of arguments, secrets removed; of large ones no more is looked at than is shown.
fn shown_arguments(arguments: &RawJson, most: usize) -> String {
    if arguments.get().len() <= 32 * most {
        return cut(redact_json(arguments).0.get(), most);
    }
    preview(arguments.get())
}

/// The beginning of a text, secrets removed.
pub(super) fn preview(text: &str) -> String {
    // Somewhat more is looked at, so that a secret is not recognised too late only because it was cut.
    let beginning: String = text.chars().take(4 * PREVIEW).collect();
    cut(&redact(&beginning), PREVIEW)
}

fn cut(text: &str, most: usize) -> String {
    let mut characters = text.chars();
    let mut shown: String = characters.by_ref().take(most).collect();
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

/// Looks at the result of a step that another process carried out.
pub(super) async fn look(context: Context<'_>, step: StepRun, earlier: Vec<(String, String)>) -> Happened {
    let value = context.values.get(&*context.parts.log, &context.lease.run, &step.journal_name()).await;
    let verification = match value {
        Ok(value) => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let schema = Standing::of(context.parts, &step.step.tool_type).output_schema;
            thinking::verify(&step.step, &value, &text, schema.as_ref(), &earlier)
        }
        // It can be shown and not be used; whoever needs it hears why.
        Err(error) => Verification { issues: vec![error.to_string()], ..Verification::default() },
    };
    Happened::Looked { step: step.step.id, verification }
}
