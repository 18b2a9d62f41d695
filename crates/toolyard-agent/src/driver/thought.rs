//! One request to a model: made, heard while it is answered, and measured.

use futures_util::StreamExt as _;
use tokio::time::Instant;
use toolyard_model::{FinishReason, ModelError, ModelEvent, ModelReply, ModelRequest, Usage};

use super::{caps::tokens_left, happened::Happened, saying::Saying, session::Context, thinking};
use crate::{AgentParts, ModelTask, Run, RunNews, RunWatcher};

/// However much a run may use: no reply is longer than this, in bytes.
const LONGEST: usize = 1 << 20;
/// A reply may always be so long, in bytes.
const SHORTEST: usize = 4 << 10;
/// No token is longer than this on average, in bytes.
const TOKEN: u64 = 8;
/// Models are told of a limit only below this: some refuse larger ones.
const WORTH_SAYING: u64 = 16_384;

/// So many tools' results are known by their looks.
const MOST_FORMS: usize = 2_000;

/// Asks a model for something.
pub(super) async fn think(context: Context<'_>, run: Run, task: ModelTask) -> Happened {
    let began = Instant::now();
    let known = thinking::known(&context, &run, &task).await;
    let forms = match (&task, &context.parts.forms) {
        (ModelTask::Plan { .. }, Some(forms)) => forms.recent(MOST_FORMS).await,
        _ => Vec::new(),
    };
    let mut request = thinking::request(context.parts, &run, &task, &known, &forms);
    let left = tokens_left(&run);
    request.max_tokens = most_tokens(request.max_tokens, left);
    context.watcher.see(&RunNews::ModelAsked { task: task.clone() });
    let mut saying = Saying::new(&task, context.parts.model.tool_calling());
    let outcome = heard(context.parts, context.watcher, &request, &mut saying, longest(left)).await;
    let outcome = outcome.map(|reply| measured(context.parts, &request, reply));
    let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Happened::Thought { task, outcome, said: saying.into_said(), milliseconds }
}

fn most_tokens(wanted: Option<u32>, left: u64) -> Option<u32> {
    let left = (left < WORTH_SAYING).then(|| u32::try_from(left.max(1)).unwrap_or(u32::MAX));
    match (wanted, left) {
        (Some(wanted), Some(left)) => Some(wanted.min(left)),
        (wanted, left) => wanted.or(left),
    }
}

/// How many bytes are heard of a reply before it is cut off.
fn longest(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_mul(TOKEN)).unwrap_or(LONGEST).clamp(SHORTEST, LONGEST)
}

async fn heard(
    parts: &AgentParts,
    watcher: &dyn RunWatcher,
    request: &ModelRequest,
    saying: &mut Saying,
    longest: usize,
) -> Result<ModelReply, ModelError> {
    let mut stream = parts.model.generate(request);
    let mut reply = ModelReply::default();
    let mut size: usize = 0;
    while let Some(event) = stream.next().await {
        let event = event?;
        size = size.saturating_add(length(&event));
        if size > longest {
            reply.finish = FinishReason::Length;
            break;
        }
        tell(watcher, saying, &event);
        reply.take(event);
        // A model that never pauses must not keep others from their turn.
        tokio::task::consume_budget().await;
    }
    Ok(reply)
}

fn length(event: &ModelEvent) -> usize {
    1 + match event {
        ModelEvent::Text(text) | ModelEvent::Reasoning(text) => text.len(),
        ModelEvent::ToolCall(delta) => delta.arguments.len() + delta.name.as_ref().map_or(0, String::len),
        ModelEvent::Usage(_) | ModelEvent::Finished(_) => 0,
    }
}

fn tell(watcher: &dyn RunWatcher, saying: &mut Saying, event: &ModelEvent) {
    match event {
        ModelEvent::Text(text) => {
            let text = saying.push(text);
            if !text.is_empty() {
                watcher.see(&RunNews::AnswerDelta { text, tentative: saying.is_tentative() });
            }
        }
        ModelEvent::Reasoning(text) => watcher.see(&RunNews::ReasoningDelta { text: text.clone() }),
        _ => {}
    }
}

/// What a model does not count is counted here.
fn measured(parts: &AgentParts, request: &ModelRequest, mut reply: ModelReply) -> ModelReply {
    if reply.usage.input == 0 && reply.usage.output == 0 {
        let count = |text: &str| u64::try_from(parts.counter.count(text)).unwrap_or(u64::MAX);
        let input = request.messages.iter().map(|message| count(&message.text)).sum();
        let calls: u64 = reply.calls.iter().map(|call| count(&call.arguments)).sum();
        let output = count(&reply.text).saturating_add(count(&reply.reasoning)).saturating_add(calls);
        reply.usage = Usage { input, output, ..reply.usage };
    }
    reply
}
