//! Sends one model request, streams its reply, and counts its tokens.

use futures_util::StreamExt as _;
use tokio::time::Instant;
use toolyard_core::{CallerIdentity, QuotaExceeded};
use toolyard_model::{
    FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelReply, ModelRequest, ModelStream,
};

use super::{
    super::{context::Context, operation::end_model_task, quota_wait::QuotaWait},
    answer_stream::AnswerStream,
    model_io::{build_request, data_owner, question},
    step_view::{StepView, load_views},
};
use crate::{
    Agent, AgentParts, ModelTask, Run, RunError, RunEvent, RunRequest, RunUpdate, RunWatcher,
    agent::UncountedReply,
    discovery::{ToolExperience, search_texts},
};

const MAX_REPLY_BYTES: usize = 1 << 20;
/// A reply may always have this size, however few tokens are left.
const MIN_REPLY_LIMIT_BYTES: usize = 4 << 10;
/// Upper bound for the average length of a token.
const MAX_TOKEN_BYTES: u64 = 8;
/// A remaining budget at or above this is not sent as the request's `max_tokens`, because some models reject large values.
const MAX_SENT_TOKEN_LIMIT: u64 = 16_384;

/// How many tools' result shapes a planner may see.
const MAX_RESULT_SHAPES: usize = 2_000;
/// How many tools' examples a planner may see.
const MAX_ARGUMENT_EXAMPLES: usize = 2_000;

#[derive(Debug)]
pub(in crate::driver) struct ModelOutcome {
    pub(in crate::driver) reply: Result<ModelReply, ModelError>,
    /// None if no request was sent.
    pub(in crate::driver) sent: Option<Box<ModelRequest>>,
    /// The part of the answer that was streamed to the watcher.
    pub(in crate::driver) streamed: String,
    pub(in crate::driver) milliseconds: u64,
    /// Set if no request was sent because a quota is used up or cannot be checked.
    pub(in crate::driver) quota_exceeded: Option<Box<QuotaExceeded>>,
}

impl ModelOutcome {
    fn without_request(reply: Result<ModelReply, ModelError>) -> Self {
        Self { reply, sent: None, streamed: String::new(), milliseconds: 0, quota_exceeded: None }
    }
}

pub(in crate::driver) async fn call_model(context: Context<'_>, run: Run, task: ModelTask) -> ModelOutcome {
    let identity = run.request().and_then(|request| request.identity.as_deref());
    if let Err(exceeded) = admit(context.parts, identity).await {
        let error = ModelError::new(
            context.parts.model.name(),
            ModelErrorKind::Busy,
            format!("was not called: {exceeded}"),
        );
        return ModelOutcome { quota_exceeded: Some(exceeded), ..ModelOutcome::without_request(Err(error)) };
    }
    let started = Instant::now();
    let task_operation = context.start_model_task(&task);
    let views = load_views(&context, &run, &task).await;
    let experience = match &task {
        ModelTask::Plan { .. } => load_experience(context.parts, &run).await,
        _ => ToolExperience::default(),
    };
    let request = Box::new(limited_request(context.parts, &run, &task, &views, &experience));
    context.watcher.on_update(&RunUpdate::ModelRequested { task: task.clone() });
    let mut stream = AnswerStream::new(&task, context.parts.model.tool_calling());
    let max_bytes = reply_limit(remaining_tokens(&run));
    let operation = context.start_model_call(task_operation.as_ref(), &request);
    let mut uncounted = UncountedReply::new(context.parts, identity, &request);
    let events = context.parts.model.generate(&request);
    let received = receive_reply(events, context.watcher, &mut stream, max_bytes, &mut uncounted.reply).await;
    let reply = uncounted.finish(received).await;
    if let Some(operation) = operation {
        operation.end(&*context.parts.model, &reply);
    }
    end_model_task(task_operation, &reply);
    let milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let streamed = stream.into_streamed();
    ModelOutcome { reply, sent: Some(request), streamed, milliseconds, quota_exceeded: None }
}

impl Agent {
    /// The first request to the model of a run that answers this request, and its task. The model is sent nothing, and nothing is
    /// recorded. A hub with an embedder has the request embedded to find tools.
    pub async fn first_model_request(
        &self,
        request: RunRequest,
    ) -> Result<(ModelTask, ModelRequest), RunError> {
        let mut run = Run::new();
        run.apply(&RunEvent::Requested { request })?;
        let agent = self.for_run(&run);
        let task = ModelTask::Plan { round: 0, repair: false };
        let experience = load_experience(&agent.parts, &run).await;
        let sent = limited_request(&agent.parts, &run, &task, &[], &experience);
        Ok((task, sent))
    }
}

/// The request of a task, with the tokens that are left.
fn limited_request(
    parts: &AgentParts,
    run: &Run,
    task: &ModelTask,
    views: &[StepView],
    experience: &ToolExperience,
) -> ModelRequest {
    let mut request = build_request(parts, run, task, views, experience);
    request.max_tokens = token_limit(request.max_tokens, remaining_tokens(run));
    request
}

/// Whether the quotas allow a model call. If only the store cannot be asked, waits for it.
async fn admit(parts: &AgentParts, identity: Option<&CallerIdentity>) -> Result<(), Box<QuotaExceeded>> {
    let wait = QuotaWait::begin();
    loop {
        let admitted = parts.admit_model_use(identity).await;
        match &admitted {
            Err(exceeded) if exceeded.store_error.is_some() && wait.wait(exceeded.retry_after).await => {}
            _ => return admitted,
        }
    }
}

/// What earlier calls tell about the tools. Planning searches for tools, so what it needs is loaded, too.
async fn load_experience(parts: &AgentParts, run: &Run) -> ToolExperience {
    let searches = run.tool_searches().iter().map(String::as_str).chain([question(run)]);
    let searched: Vec<&str> = searches.flat_map(search_texts).collect();
    parts.hub.wait_until_searchable(&searched).await;
    let shapes = match &parts.result_shapes {
        Some(shapes) => shapes.recent(data_owner(run), MAX_RESULT_SHAPES).await,
        None => Vec::new(),
    };
    let owner = run.request().map(RunRequest::owner_text).unwrap_or_default();
    let examples = match &parts.argument_examples {
        Some(examples) => examples.of_owner(&parts.config.learning_scope(owner), MAX_ARGUMENT_EXAMPLES).await,
        None => Vec::new(),
    };
    ToolExperience { shapes, examples }
}

fn remaining_tokens(run: &Run) -> u64 {
    let usage = run.usage().model;
    let limit = run.request().map_or(0, |request| request.limits.tokens);
    limit.saturating_sub(usage.input.saturating_add(usage.output))
}

fn token_limit(requested: Option<u32>, remaining: u64) -> Option<u32> {
    let remaining =
        (remaining < MAX_SENT_TOKEN_LIMIT).then(|| u32::try_from(remaining.max(1)).unwrap_or(u32::MAX));
    match (requested, remaining) {
        (Some(requested), Some(remaining)) => Some(requested.min(remaining)),
        (requested, remaining) => requested.or(remaining),
    }
}

/// How many bytes of a reply are received before it is truncated.
fn reply_limit(remaining_tokens: u64) -> usize {
    usize::try_from(remaining_tokens.saturating_mul(MAX_TOKEN_BYTES))
        .unwrap_or(MAX_REPLY_BYTES)
        .clamp(MIN_REPLY_LIMIT_BYTES, MAX_REPLY_BYTES)
}

async fn receive_reply(
    mut events: ModelStream<'_>,
    watcher: &dyn RunWatcher,
    answer: &mut AnswerStream,
    max_bytes: usize,
    reply: &mut ModelReply,
) -> Result<(), ModelError> {
    let mut size: usize = 0;
    while let Some(event) = events.next().await {
        let event = event?;
        size = size.saturating_add(event_bytes(&event));
        if size > max_bytes {
            reply.finish_reason = FinishReason::Length;
            break;
        }
        send_update(watcher, answer, &event);
        reply.apply(event);
        // Yields to other tasks even if the model never pauses.
        tokio::task::consume_budget().await;
    }
    Ok(())
}

/// The size of an event; at least 1, so that empty events count too.
fn event_bytes(event: &ModelEvent) -> usize {
    1 + match event {
        ModelEvent::Text(text) | ModelEvent::Reasoning(text) => text.len(),
        ModelEvent::ToolCall(delta) => delta.arguments.len() + delta.name.as_ref().map_or(0, String::len),
        _ => 0,
    }
}

fn send_update(watcher: &dyn RunWatcher, answer: &mut AnswerStream, event: &ModelEvent) {
    match event {
        ModelEvent::Text(text) => {
            let text = answer.push(text);
            if !text.is_empty() {
                watcher.on_update(&RunUpdate::AnswerDelta { text, tentative: answer.is_tentative() });
            }
        }
        ModelEvent::Reasoning(text) => {
            watcher.on_update(&RunUpdate::ReasoningDelta { text: text.clone() });
        }
        _ => {}
    }
}
