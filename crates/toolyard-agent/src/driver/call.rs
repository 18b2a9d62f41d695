//! A step's call: made once and known to the journal, its result looked at.

use std::sync::Arc;

use tokio::time::Instant;
use toolyard_core::{
    Capability, ContentBlock, ErrorKind, RawJson, ResultForm, ToolError, ToolOutput, redact,
};
use toolyard_hub::{Budget, CallOptions};

use super::{
    aside::aside,
    happened::{CallEnd, Happened, LARGE},
    prepare::Prepared,
    progress::StepCaller,
    session::Context,
    standing::{Standing, profile},
    thinking,
};
use crate::{AgentParts, Permission, Run, StepRun, Verification, result_form, step_value};

/// So much of a value is shown.
const PREVIEW: usize = 500;

/// What a call is for, and on whose behalf it is made.
#[derive(Debug)]
pub(super) struct Purpose {
    question: String,
    who: String,
}

impl Purpose {
    pub(super) fn of(run: &Run, agent: &str) -> Self {
        let ask = run.ask().cloned().unwrap_or_default();
        let who = if ask.who.is_empty() { agent.to_owned() } else { ask.who };
        Self { question: ask.question, who }
    }
}

/// Makes a call, as a step that the journal knows.
pub(super) async fn call(
    context: Context<'_>,
    step: StepRun,
    prepared: Box<Prepared>,
    purpose: Purpose,
    earlier: Vec<(String, String)>,
) -> Happened {
    let began = Instant::now();
    let caller = context.watcher.caller(&step.step.id);
    let caller = StepCaller::new(&context.lease.run, &step.step.id, context.progress.clone(), caller);
    let Purpose { question, who } = purpose;
    let purpose = if step.step.description.is_empty() { question } else { step.step.description.clone() };
    let options = CallOptions::default()
        .with_timeout(context.agent.patience)
        .with_budget(Budget::Whole)
        .with_caller(Arc::new(caller))
        .within(Arc::new(profile(context.parts)))
        .judged(prepared.standing.definitions.clone())
        .on_behalf_of(who)
        .for_request(purpose);
    let (outcome, redacted) = match prepared.known() {
        Some(known) => known,
        None => (Box::pin(made(&context, &step, &prepared, &options)).await, false),
    };
    let outcome = match outcome {
        Ok(output) => {
            let schema = prepared.standing.output_schema.clone();
            let outcome = done(&context, &step, schema, output, earlier).await;
            if redacted {
                // It can be shown and not be used; whoever needs it hears why.
                context.values.forget(&step.journal_name());
            }
            outcome
        }
        Err(error) => failed(error, &prepared.standing),
    };
    let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Happened::Called { step: step.step.id, outcome: Box::new(outcome), milliseconds }
}

/// By name, else by capability, unless the journal knows better.
async fn made(
    context: &Context<'_>,
    step: &StepRun,
    prepared: &Prepared,
    options: &CallOptions,
) -> Result<ToolOutput, ToolError> {
    let (parts, name) = (context.parts, step.journal_name());
    let capability = thinking::infer_capability(&step.step)
        .filter(|capability| prepared.standing.read_only && may_be_asked(parts, capability));
    let (request, capability) = (&prepared.request, capability.as_ref());
    let made = parts.hub.execute_step_or_by_capability(
        &*parts.log,
        context.lease,
        &name,
        request,
        capability,
        options,
    );
    made.await
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

async fn done(
    context: &Context<'_>,
    step: &StepRun,
    schema: Option<RawJson>,
    output: ToolOutput,
    earlier: Vec<(String, String)>,
) -> CallEnd {
    let structured = output.structured.as_ref().map_or(0, |structured| structured.get().len());
    let texts = output.content.iter().filter_map(ContentBlock::as_text).map(str::len).sum::<usize>();
    let (plan, source) = (step.step.clone(), output.meta.source.clone());
    let looked_at = aside(structured.max(texts), move || {
        let text = output.to_text();
        let value = step_value(output.structured.as_ref(), &text);
        let verification = thinking::verify(&plan, &value, &text, schema.as_ref(), &earlier);
        let form = result_form(&value).filter(|_| verification.verified);
        // What is large beside a short text counts; people are told the length of the text.
        let size = text.chars().count().max(if structured > LARGE { structured } else { 0 });
        (value, CallEnd::Done { source, preview: preview(&text), size, form, verification })
    });
    let Some((value, end)) = looked_at.await else {
        return CallEnd::Failed(ToolError::new(ErrorKind::Internal, "its answer could not be looked at"));
    };
    context.values.put(step.journal_name(), value);
    end
}

/// The beginning of a text, secrets removed.
pub(super) fn preview(text: &str) -> String {
    // Somewhat more is looked at, so that a secret is not recognised too late only because it was cut.
    let beginning: String = text.chars().take(4 * PREVIEW).collect();
    cut(&redact(&beginning), PREVIEW)
}

pub(super) fn cut(text: &str, most: usize) -> String {
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
            let schema = Standing::of(context.parts, &step.step.tool_type).output_schema;
            let (plan, size) = (step.step.clone(), step.size());
            let verified = aside(size, move || {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                thinking::verify(&plan, &value, &text, schema.as_ref(), &earlier)
            });
            verified.await.unwrap_or_default()
        }
        // It can be shown and not be used; whoever needs it hears why.
        Err(error) => Verification { issues: vec![error.to_string()], ..Verification::default() },
    };
    Happened::Looked { step: step.step.id, verification }
}
