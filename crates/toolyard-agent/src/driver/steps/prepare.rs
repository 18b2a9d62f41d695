//! Prepares a step's call: resolves its arguments, and decides whether it may be made.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Map, Value};
use toolyard_core::{
    ApprovalId, CallerIdentity, ContentHash, ErrorKind, RawJson, SourceId, StepRecord, StepResult, StepState,
    ToolCallRequest, ToolError, ToolOutput, params, redact_json,
};

use super::{
    super::context::Context,
    argument_view::{ArgumentView, ArgumentsTooLarge, view_arguments},
    preview,
    resolved_tool::{ResolvedTool, stricter},
    truncate,
};
use crate::{
    ApprovalState, DataSources, Permission, Run, StepPhase, StepRun,
    agent::{consists_of_user_text, disclosed_sources},
    planning::prepare_tool_input,
    reference::{ResolvedArguments, references, resolve_references},
    run::receipt::target_of,
    values::{ValueError, blocking::run_blocking_if_large},
};

const CALL_HASH_CHARS: usize = 16;
const MAX_ARGUMENTS_PREVIEW_CHARS: usize = 500;
/// Calls of open-world tools in one run that may be made without an approval although the model that wrote them had seen
/// non-public data, because they repeat the user's words. Selecting passages reveals a few bits per call.
const MAX_USER_TEXT_CALLS: usize = 2;
/// Prefix of the text that replaces a redacted secret.
pub(in crate::driver) const REDACTED_PREFIX: &str = "[redacted:";

/// A call that is ready to be made.
#[derive(Debug, Clone)]
pub(in crate::driver) struct PreparedCall {
    pub(in crate::driver) request: ToolCallRequest,
    pub(in crate::driver) arguments_preview: String,
    /// What the call is about, for the receipt.
    target: String,
    /// Short hash of tool and arguments, which identical calls share.
    pub(in crate::driver) call_hash: String,
    /// Hash of the tool's identity and the arguments: what an approval is about.
    pub(in crate::driver) approval_subject: String,
    pub(in crate::driver) tool: ResolvedTool,
    /// The journal's record if the call was, or may have been, made; then no approval is needed any more.
    journal_record: Option<Box<StepRecord>>,
    /// Repairs of the plan, and references that were resolved approximately.
    pub(in crate::driver) notes: Vec<String>,
    /// The arguments for approvers; `None` if the call certainly needs no approval.
    pub(in crate::driver) view: Option<Result<ArgumentView, ArgumentsTooLarge>>,
    /// Sources of the non-public data that the arguments may contain.
    pub(super) argument_sources: DataSources,
    /// Sources of the non-public data that the call may pass outside; empty if a rule allows that.
    pub(in crate::driver) disclosed: DataSources,
    /// Whether the arguments consist of the user's own words.
    is_user_text: bool,
}

/// What the log says of a call that is about to be made; of a step without one, nothing.
#[derive(Debug, Default)]
pub(in crate::driver) struct RecordedCall {
    pub(in crate::driver) arguments_preview: String,
    pub(in crate::driver) target: String,
    pub(in crate::driver) may_change: bool,
    /// Short hash of tool and arguments; empty if no call is made.
    pub(in crate::driver) call: String,
    pub(in crate::driver) notes: Vec<String>,
}

impl RecordedCall {
    pub(in crate::driver) fn of(prepared: &PreparedCall) -> Self {
        Self { call: prepared.call_hash.clone(), ..Self::simulated(prepared) }
    }

    /// A call that a dry run does not make.
    pub(in crate::driver) fn simulated(prepared: &PreparedCall) -> Self {
        Self {
            arguments_preview: prepared.arguments_preview.clone(),
            target: prepared.target.clone(),
            may_change: !prepared.tool.read_only,
            call: String::new(),
            notes: prepared.notes.clone(),
        }
    }
}

impl PreparedCall {
    /// The outcome of the call if it was already made and has ended, and whether secrets were redacted from it.
    pub(super) fn recorded_outcome(&self) -> Option<(Result<ToolOutput, ToolError>, bool)> {
        let record = self.journal_record.as_ref()?;
        let has_ended = matches!(record.state, StepState::Done | StepState::Failed);
        if !has_ended || record.arguments != ContentHash::of(self.request.arguments.get()) {
            return None;
        }
        let result: StepResult = record.outcome.as_ref()?.read().ok()?;
        Some((result.into_tool_result(), record.redacted))
    }
}

#[derive(Debug, Clone)]
pub(in crate::driver) struct PrepareError {
    pub(in crate::driver) message: String,
    pub(in crate::driver) kind: ErrorKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::driver) enum CallDecision {
    Start,
    Deny,
    Simulate,
    /// Request an approval; the id is that of a request that is already pending.
    RequestApproval(Option<ApprovalId>),
}

/// Decides by the stricter of the permissions now and when the plan was accepted.
pub(in crate::driver) fn decide_call(run: &Run, step: &StepRun, prepared: &PreparedCall) -> CallDecision {
    let tool = &prepared.tool;
    let dry_run = run.request().is_some_and(|request| request.dry_run);
    if prepared.journal_record.is_some() {
        return CallDecision::Start;
    }
    // A new plan may contain a call that an earlier one already made.
    let is_repeated = !tool.read_only && run.was_called_by_another(&prepared.call_hash, &step.step.id);
    let is_always_allowed = run.is_always_allowed(&tool.identity);
    let repeats_user = prepared.is_user_text && run.unapproved_disclosures() < MAX_USER_TEXT_CALLS;
    let is_disclosure = !prepared.disclosed.is_empty() && !repeats_user;
    match stricter(tool.permission, step.tool.permission) {
        Permission::Deny => CallDecision::Deny,
        _ if dry_run && !tool.read_only => CallDecision::Simulate,
        Permission::Allow if !is_repeated && !is_disclosure => CallDecision::Start,
        Permission::Allow | Permission::Ask => match &step.approval {
            _ if is_always_allowed && !is_repeated => CallDecision::Start,
            ApprovalState::Allowed { call } if *call == prepared.approval_subject => CallDecision::Start,
            ApprovalState::Requested { id, call, .. } if *call == prepared.approval_subject => {
                CallDecision::RequestApproval(Some(*id))
            }
            _ => CallDecision::RequestApproval(None),
        },
    }
}

/// A step to prepare, and the steps whose values it needs.
#[derive(Debug)]
pub(in crate::driver) struct StepInputs {
    step: StepRun,
    /// Id and journal name of the steps it refers to.
    needed: Vec<(String, String)>,
    /// Total size of their values in characters.
    size: usize,
    argument_sources: DataSources,
    /// What the user wrote; empty if the arguments contain no non-public data.
    user_texts: Vec<String>,
    /// Whether another step made a call of this tool, which this one may repeat.
    may_repeat: bool,
    /// For whom the run is, for policies.
    identity: Option<Arc<CallerIdentity>>,
}

impl StepInputs {
    pub(in crate::driver) fn new(run: &Run, step: &StepRun) -> Self {
        let references = references(&step.step.arguments);
        let mut needed: Vec<(String, String)> = Vec::new();
        let mut size: usize = 0;
        for other in references.iter().filter_map(|reference| run.step(&reference.step)) {
            if other.has_value() && needed.iter().all(|(id, _)| *id != other.step.id) {
                needed.push((other.step.id.clone(), other.journal_name()));
                size = size.saturating_add(other.size());
            }
        }
        let argument_sources = run.argument_sources(step);
        let request = run.request().filter(|_| !argument_sources.is_empty());
        let user_texts = request.map(|request| request.user_texts().map(str::to_owned).collect());
        let is_same_tool = |other: &StepRun| {
            other.step.id != step.step.id
                && other.step.tool_type == step.step.tool_type
                && !other.call.is_empty()
        };
        Self {
            step: step.clone(),
            needed,
            size,
            argument_sources,
            user_texts: user_texts.unwrap_or_default(),
            may_repeat: run.steps().iter().any(is_same_tool),
            identity: run.request().and_then(|request| request.identity.clone()),
        }
    }
}

pub(in crate::driver) async fn prepare(
    context: Context<'_>,
    inputs: StepInputs,
) -> Result<Box<PreparedCall>, PrepareError> {
    let step = &inputs.step;
    let tool_name = &step.step.tool_type;
    let tool = ResolvedTool::resolve(context.parts, tool_name);
    let ResolvedArguments { arguments, notes } = resolve_arguments(&context, &inputs, &tool).await?;
    // Where several sources have the name, the arguments may select one; approval is about that one.
    let tool = match &tool.source {
        Some(_) => tool,
        None => ResolvedTool::resolve_call(context.parts, tool_name, &arguments),
    };
    let tool = tool.decided_by_policy(context.parts, tool_name, &arguments, inputs.identity.as_ref());
    let notes = step.tool.notes.iter().cloned().chain(notes).collect();
    let own_name = tool.selected.as_deref().unwrap_or(tool_name);
    let mut request = ToolCallRequest::new(own_name, arguments);
    request.id = format!("{}.{}", context.lease.run, step.journal_name());
    // A call that writes goes to the source that was approved, and to no other.
    let source = tool.source.as_ref().filter(|source| !SourceId::is_native_hint(source.as_str()));
    request.source = source.filter(|_| !tool.read_only || tool.selected.is_some()).map(ToString::to_string);
    let text = request.arguments.get().as_bytes();
    let call_hash: String = hash([tool_name.as_bytes(), text]).chars().take(CALL_HASH_CHARS).collect();
    let approval_subject = hash([tool.identity.as_bytes(), text]);
    let arguments_preview = preview_arguments(&request.arguments, MAX_ARGUMENTS_PREVIEW_CHARS);
    let target = match request.arguments.to_value() {
        Value::Object(arguments) => target_of(&arguments),
        _ => String::new(),
    };
    let disclosed = disclosed_sources(&tool.destinations, &inputs.argument_sources);
    let is_user_text = !disclosed.is_empty() && is_user_text(&request.arguments, &inputs, &tool);
    let may_need_approval = stricter(tool.permission, step.tool.permission) != Permission::Allow
        || (inputs.may_repeat && !tool.read_only)
        || !disclosed.is_empty();
    let view = if may_need_approval { Some(view(&request.arguments).await?) } else { None };
    let journal_record = match step.phase {
        StepPhase::Started => unrepeatable_record(&context, &step.journal_name()).await?,
        StepPhase::Waiting | StepPhase::Ended(_) => None,
    };
    Ok(Box::new(PreparedCall {
        request,
        arguments_preview,
        target,
        call_hash,
        approval_subject,
        tool,
        journal_record,
        notes,
        view,
        argument_sources: inputs.argument_sources,
        disclosed,
        is_user_text,
    }))
}

fn is_user_text(arguments: &RawJson, inputs: &StepInputs, tool: &ResolvedTool) -> bool {
    let schema = tool.input_schema.as_ref().map(RawJson::to_value).unwrap_or_default();
    let parameters: Vec<String> = params(&schema).into_iter().map(|param| param.name).collect();
    consists_of_user_text(arguments, &parameters, inputs.user_texts.iter().map(String::as_str))
}

/// The arguments as approvers see them.
async fn view(arguments: &RawJson) -> Result<Result<ArgumentView, ArgumentsTooLarge>, PrepareError> {
    let shared = arguments.clone();
    let view = run_blocking_if_large(arguments.get().len(), move || view_arguments(&shared)).await;
    view.ok_or_else(|| {
        let message = "preparing the arguments for an approver was aborted".to_owned();
        PrepareError { message, kind: ErrorKind::Internal }
    })
}

fn hash<const N: usize>(parts: [&[u8]; N]) -> String {
    ContentHash::of_parts(parts).to_string()
}

/// The journal's record of a call that must not be made again: it ended, or its outcome is unknown. A repeatable call that
/// was only started is decided on like a new one.
async fn unrepeatable_record(
    context: &Context<'_>,
    name: &str,
) -> Result<Option<Box<StepRecord>>, PrepareError> {
    let record = context.parts.log.step(&context.lease.run, name).await;
    let must_not_repeat = |step: &StepRecord| {
        matches!(step.state, StepState::Done | StepState::Failed | StepState::Unknown)
            || (step.state == StepState::Started && !step.repeatable)
    };
    let record = record.map_err(ValueError::from)?;
    Ok(record.filter(must_not_repeat).map(Box::new))
}

impl From<ValueError> for PrepareError {
    fn from(error: ValueError) -> Self {
        Self { message: error.to_string(), kind: ErrorKind::Refused }
    }
}

async fn resolve_arguments(
    context: &Context<'_>,
    inputs: &StepInputs,
    tool: &ResolvedTool,
) -> Result<ResolvedArguments, PrepareError> {
    let step = &inputs.step.step;
    let schema = tool.input_schema.as_ref();
    let arguments: Map<String, Value> = if step.arguments.is_empty() {
        schema.and_then(|schema| prepare_tool_input(step, schema)).unwrap_or_default()
    } else {
        step.arguments.clone()
    };
    let mut values: HashMap<String, Arc<Value>> = HashMap::new();
    for (id, name) in &inputs.needed {
        let value = context.values.get(&*context.parts.log, &context.lease.run, name).await?;
        values.insert(id.clone(), value);
    }
    let parameters = schema.map(|schema| params(&schema.to_value())).unwrap_or_default();
    let resolve = move || resolve_references(&arguments, &parameters, &|id| values.get(id).map(Arc::clone));
    let resolved = run_blocking_if_large(inputs.size, resolve).await.ok_or_else(|| {
        let message = "resolving the arguments was aborted".to_owned();
        PrepareError { message, kind: ErrorKind::Internal }
    })?;
    let resolved = resolved
        .map_err(|error| PrepareError { message: error.to_string(), kind: ErrorKind::InvalidArguments })?;
    // After a restart, the replies of models and the outputs of tools are known only in redacted form.
    if context.resumed && resolved.arguments.get().contains(REDACTED_PREFIX) {
        let message =
            "the arguments contain a secret, which is never stored, and the process that had it is gone";
        return Err(PrepareError { message: message.to_owned(), kind: ErrorKind::Refused });
    }
    for note in &resolved.notes {
        tracing::info!(run = %context.lease.run, step = step.id, note, "a reference was resolved approximately");
    }
    Ok(resolved)
}

/// The beginning of arguments, secrets redacted. Very large arguments are truncated before they are redacted.
fn preview_arguments(arguments: &RawJson, max_chars: usize) -> String {
    if arguments.get().len() <= 32 * max_chars {
        return truncate(redact_json(arguments).0.get(), max_chars);
    }
    preview(arguments.get())
}
