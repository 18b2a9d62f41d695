//! Executes a step's call through the journal, and verifies its result.

use std::sync::Arc;

use toolyard_core::{
    ArgumentExample, CallerIdentity, Capability, ContentBlock, ErrorKind, PolicyDecision, PolicyRequest,
    PolicySubject, RawJson, SourceId, ToolError, ToolOutput,
    telemetry::{RunningOperation, SpanContext},
};
use toolyard_hub::{Budget, CallOptions, ToolCandidate, definition_hash};
use toolyard_model::ModelSynthesizer;

use super::{
    super::{context::Context, operation::end_step, quota_wait::QuotaWait},
    prepare::PreparedCall,
    preview,
    progress::StepCaller,
    resolved_tool::{ResolvedTool, agent_profile},
};
use crate::{
    AgentParts, ExecutionAgent, Permission, StepRun, Verification, VerificationAgent, VerificationInput,
    agent::{MeteredModel, disclosed_sources},
    reference::references,
    values::{blocking::run_blocking_if_large, result_shape, step_value},
};
use serde_json::Value;

/// Larger values are dropped from memory as soon as no waiting step needs them.
pub(in crate::driver) const MAX_RETAINED_VALUE_CHARS: usize = 64 << 10;

/// Step ids and result previews of steps that made the same call before.
pub(in crate::driver) type EarlierResults = Vec<(String, String)>;

#[derive(Debug)]
pub(in crate::driver) struct StepCall {
    pub(in crate::driver) step: StepRun,
    pub(in crate::driver) prepared: Box<PreparedCall>,
    /// The name of the caller, for the audit log.
    pub(in crate::driver) caller_name: String,
    /// What the tool is used for, stored as a past request: the step's description, else the question.
    pub(in crate::driver) past_request: String,
    /// On whose behalf the call is made.
    pub(in crate::driver) owner: String,
    /// In whose name the tool is called, if callers are told apart; also for policies.
    pub(in crate::driver) identity: Option<Arc<CallerIdentity>>,
    pub(in crate::driver) earlier: EarlierResults,
}

#[derive(Debug)]
pub(in crate::driver) enum StepCallOutcome {
    Done {
        source: Option<SourceId>,
        preview: String,
        size: usize,
        /// The result shape, stored for later plans; only of a verified result.
        shape: Option<String>,
        /// The arguments, stored for later plans of the same owner.
        example: Option<Box<ArgumentExample>>,
        verification: Verification,
    },
    Failed(ToolError),
    /// There is neither such a tool nor one with the same capability.
    NoTool(ToolError),
}

pub(in crate::driver) async fn execute(context: Context<'_>, call: StepCall) -> StepCallOutcome {
    let is_known_tool = call.prepared.tool.source.is_some();
    let operation = context.start_step(&call.step.step.id, &call.step.step.tool_type, is_known_tool);
    let span = operation.as_ref().and_then(RunningOperation::context).or(context.span);
    let outcome = execute_in(context, call, span).await;
    end_step(
        operation,
        match &outcome {
            StepCallOutcome::Done { .. } => None,
            StepCallOutcome::Failed(error) | StepCallOutcome::NoTool(error) => Some(error),
        },
    );
    outcome
}

async fn execute_in(context: Context<'_>, call: StepCall, span: Option<SpanContext>) -> StepCallOutcome {
    let StepCall { step, prepared, caller_name, past_request, owner, identity, earlier } = call;
    let responder = context.watcher.responder(&step.step.id);
    let step_caller = StepCaller::new(&context, &step.step.id, responder, identity.clone());
    // Merging results of several sources is on the same account as the run.
    let model = MeteredModel::new(&context.agent.parts, identity.clone());
    let options = CallOptions::default()
        .with_timeout(context.agent.tool_timeout)
        .with_budget(Budget::Unlimited)
        .with_caller(Arc::new(step_caller))
        .within(Arc::new(agent_profile(context.parts)))
        .with_approved_definitions(prepared.tool.definition_hashes.clone())
        .on_behalf_of(caller_name)
        .on_behalf_of_identity(identity)
        .by_agent(context.parts.config.name.as_str())
        .for_user_request(past_request)
        .caused_by(span)
        .with_synthesizer(Arc::new(ModelSynthesizer::new(Arc::new(model))));
    let (outcome, is_redacted) = match prepared.recorded_outcome() {
        Some(recorded) => recorded,
        None => (Box::pin(call_within_quota(&context, &step, &prepared, &options)).await, false),
    };
    match outcome {
        Ok(output) => {
            let schema = prepared.tool.output_schema.clone();
            let mut outcome = process_output(&context, &step, schema, output, earlier).await;
            if let StepCallOutcome::Done { source: Some(source), example, verification, .. } = &mut outcome
                && verification.verified
            {
                let scope = context.parts.config.learning_scope(&owner);
                *example = argument_example(context.parts, &step, &prepared, scope, source).map(Box::new);
            }
            if is_redacted {
                // A redacted value can be shown but not used. Steps that refer to it read the journal and fail there.
                context.values.evict(&step.journal_name());
            }
            outcome
        }
        Err(error) => {
            let is_unknown = matches!(error.kind(), ErrorKind::UnknownTool | ErrorKind::UnknownCapability);
            if is_unknown && prepared.tool.source.is_none() {
                StepCallOutcome::NoTool(error)
            } else {
                StepCallOutcome::Failed(error)
            }
        }
    }
}

/// Calls the tool; waits for its quota if that is soon free again, such as that of calls at the same time.
async fn call_within_quota(
    context: &Context<'_>,
    step: &StepRun,
    prepared: &PreparedCall,
    options: &CallOptions,
) -> Result<ToolOutput, ToolError> {
    let wait = QuotaWait::begin();
    loop {
        let outcome = call_tool(context, step, prepared, options).await;
        let retry_after = match &outcome {
            Err(error) if error.kind() == ErrorKind::QuotaExceeded => error.retry_after(),
            _ => None,
        };
        match retry_after {
            Some(delay) if wait.wait(delay).await => {}
            _ => return outcome,
        }
    }
}

/// Calls the tool by name, or another one with its capability if there is no such tool. The arguments of a tool that exists
/// were meant for its sources alone, so its failure is final. Returns the journaled outcome if the call was already made.
async fn call_tool(
    context: &Context<'_>,
    step: &StepRun,
    prepared: &PreparedCall,
    options: &CallOptions,
) -> Result<ToolOutput, ToolError> {
    let (parts, name) = (context.parts, step.journal_name());
    let capability = ExecutionAgent::default()
        .infer_capability(&step.step, &parts.hub)
        .filter(|_| prepared.tool.source.is_none() && prepared.tool.read_only)
        .filter(|capability| may_substitute(parts, capability, prepared, options.identity.as_ref()));
    let (request, capability) = (&prepared.request, capability.as_ref());
    let result = parts.hub.execute_step_or_by_capability(
        &*parts.log,
        context.lease,
        &name,
        request,
        capability,
        options,
    );
    result.await
}

/// Whether tools with this capability may replace a missing tool: no read-only one of them needs an approval, nor passes
/// non-public data outside.
fn may_substitute(
    parts: &AgentParts,
    capability: &Capability,
    prepared: &PreparedCall,
    identity: Option<&Arc<CallerIdentity>>,
) -> bool {
    let (snapshot, profile) = (parts.hub.snapshot(), agent_profile(parts));
    let substitutes = snapshot.find_by_capability(capability.as_str());
    let mut substitutes = substitutes.iter().filter(|tool| tool.hints.read_only && profile.offers(tool));
    let policy = parts.hub.policy();
    let subject = PolicySubject { identity, agent: Some(&parts.config.name), profile: &profile.name };
    let needs_approval = |tool: &ToolCandidate| {
        let (tool, arguments) = (tool.policy_tool(), &prepared.request.arguments);
        let decision =
            policy.as_ref().map(|policy| policy.decide(&PolicyRequest { subject, tool, arguments }));
        matches!(decision, Some(PolicyDecision::Ask(_)))
    };
    substitutes.all(|tool| {
        let (source, kind) = (tool.source_id(), tool.source.info.kind);
        let permission = parts.rules.permission(&tool.name, source.as_str(), tool.hints);
        let destination = parts.rules.destination(&tool.name, source, kind, tool.hints);
        permission == Permission::Allow
            && !needs_approval(tool)
            && disclosed_sources(destination.as_slice(), &prepared.argument_sources).is_empty()
    })
}

async fn process_output(
    context: &Context<'_>,
    step: &StepRun,
    schema: Option<RawJson>,
    output: ToolOutput,
    earlier: EarlierResults,
) -> StepCallOutcome {
    let structured_bytes = output.structured.as_ref().map_or(0, |structured| structured.get().len());
    let text_bytes = output.content.iter().filter_map(ContentBlock::as_text).map(str::len).sum::<usize>();
    let (planned_step, source) = (step.clone(), output.meta.source.clone());
    let processed = run_blocking_if_large(structured_bytes.max(text_bytes), move || {
        let text = output.to_text();
        let value = step_value(output.structured.as_ref(), &text);
        let verification = verify_by_rule(&planned_step, &value, &text, schema.as_ref(), &earlier);
        let shape = result_shape(&value).filter(|_| verification.verified);
        // Characters of the text. A large structured value with a short text counts by its bytes, so that it is dropped from
        // memory too.
        let large_structured = if structured_bytes > MAX_RETAINED_VALUE_CHARS { structured_bytes } else { 0 };
        let size = text.chars().count().max(large_structured);
        (
            value,
            StepCallOutcome::Done {
                source,
                preview: preview(&text),
                size,
                shape,
                example: None,
                verification,
            },
        )
    });
    let Some((value, outcome)) = processed.await else {
        return StepCallOutcome::Failed(ToolError::new(
            ErrorKind::Internal,
            "processing the tool's output was aborted",
        ));
    };
    context.values.put(step.journal_name(), value);
    outcome
}

/// The arguments as an example for later plans, if they can only be about the task and the tool: the first plan wrote them,
/// before any result was seen, and they refer to none. So no text of a tool gets into a later prompt by them.
fn argument_example(
    parts: &AgentParts,
    step: &StepRun,
    prepared: &PreparedCall,
    scope: String,
    source: &SourceId,
) -> Option<ArgumentExample> {
    let is_of_first_plan = step.round == 0 && step.attempt <= 1;
    let has_own_words = prepared.argument_sources.is_empty() && references(&step.step.arguments).is_empty();
    if !is_of_first_plan || !has_own_words {
        return None;
    }
    let (request, snapshot) = (&prepared.request, parts.hub.snapshot());
    let candidate = snapshot.find_in(&request.tool_name, source.as_str())?;
    let definition = definition_hash(candidate.spec());
    ArgumentExample::new(scope, &*request.tool_name, source.clone(), definition, &request.arguments)
}

/// Verifies a logged result, after the process that made the call died before it verified it.
pub(in crate::driver) async fn verify(
    context: Context<'_>,
    step: StepRun,
    earlier: EarlierResults,
) -> Verification {
    let value = context.values.get(&*context.parts.log, &context.lease.run, &step.journal_name()).await;
    match value {
        Ok(value) => {
            let schema = ResolvedTool::resolve(context.parts, &step.step.tool_type).output_schema;
            let size = step.size();
            let verified = run_blocking_if_large(size, move || {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                verify_by_rule(&step, &value, &text, schema.as_ref(), &earlier)
            });
            verified.await.unwrap_or_default()
        }
        // The result can be shown but not used; steps that refer to it get the same error.
        Err(error) => Verification { issues: vec![error.to_string()], ..Verification::default() },
    }
}

pub(in crate::driver) fn verify_by_rule(
    step: &StepRun,
    value: &Value,
    text: &str,
    output_schema: Option<&RawJson>,
    earlier: &[(String, String)],
) -> Verification {
    let earlier: Vec<(&str, &str)> =
        earlier.iter().map(|(step, text)| (step.as_str(), text.as_str())).collect();
    let input = VerificationInput {
        step: &step.step,
        changes: step.may_change(),
        value,
        text,
        output_schema,
        earlier: &earlier,
    };
    VerificationAgent::default().verify(&input)
}
