//! OpenAI's chat completions as data: what is asked, and what is answered. Pure.

use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_agent::{RunEnd, RunEvent, RunNews};
use toolyard_core::RunId;
use toolyard_model::{ModelMessage, Role, Usage};

use super::page_answer::Refused;

/// A request for a completion. What it holds besides is about how a model is asked, which the agent knows itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Wanted {
    model: String,
    messages: Vec<Said>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    n: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Said {
    role: String,
    content: Value,
}

/// What a client wants.
#[derive(Debug, PartialEq)]
pub(super) struct Completion {
    /// The agent.
    pub(super) agent: String,
    pub(super) question: String,
    /// What was said before it.
    pub(super) history: Vec<ModelMessage>,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
}

impl Completion {
    /// Reads a request.
    pub(super) fn read(body: &str) -> Result<Self, Refused> {
        let wanted: Wanted = serde_json::from_str(body)
            .map_err(|error| Refused::bad("", format!("the body cannot be understood: {error}")))?;
        if wanted.n.is_some_and(|n| n != 1) {
            return Err(Refused::bad("n", "an agent gives one answer: leave `n` out"));
        }
        let mut messages = wanted.messages;
        let last = messages.pop().ok_or_else(|| Refused::bad("messages", "nothing is asked"))?;
        if last.role != "user" {
            return Err(Refused::bad("messages", "the last message must be the user's"));
        }
        let question = text_of(&last.content)?;
        if question.trim().is_empty() {
            return Err(Refused::bad("messages", "the last message is empty"));
        }
        let mut history = Vec::new();
        for said in &messages {
            history.extend(told(said)?);
        }
        Ok(Self {
            agent: wanted.model,
            question,
            history,
            stream: wanted.stream.unwrap_or(false),
            include_usage: wanted.stream_options.and_then(|options| options.include_usage).unwrap_or(false),
        })
    }
}

/// An earlier message as the agent is told it; what tools of the client said is not for our agent.
fn told(said: &Said) -> Result<Option<ModelMessage>, Refused> {
    let text = text_of(&said.content)?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    Ok(match said.role.as_str() {
        "user" => Some(ModelMessage::new(Role::User, text)),
        "assistant" => Some(ModelMessage::new(Role::Assistant, text)),
        // The agent has a system prompt of its own, and many models take only one.
        "system" | "developer" => {
            Some(ModelMessage::new(Role::User, format!("(For this conversation: {})", text.trim())))
        }
        "tool" | "function" => None,
        other => return Err(Refused::bad("messages", format!("nobody here has the role `{other}`"))),
    })
}

/// The text of a message: as it is, or in parts.
fn text_of(content: &Value) -> Result<String, Refused> {
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            let text = |part: &Value| match part.get("type").and_then(Value::as_str) {
                Some("text" | "input_text") | None => {
                    Ok(part.get("text").and_then(Value::as_str).unwrap_or_default().to_owned())
                }
                Some(kind) => Err(Refused::bad("messages", format!("agents read text only, no `{kind}`"))),
            };
            Ok(parts.iter().map(text).collect::<Result<Vec<_>, _>>()?.join("\n"))
        }
        _ => Err(Refused::bad("messages", "the content of a message is a text or a list of parts")),
    }
}

/// What is the same in every answer to one request.
#[derive(Debug, Clone)]
pub(super) struct Answering {
    pub(super) run: RunId,
    pub(super) agent: String,
    /// Seconds since 1970.
    pub(super) created: i64,
}

/// What an end is for a chat: a text and why there is no more of it, or an error.
pub(super) fn finished(run: &RunId, end: &RunEnd) -> Result<(String, &'static str), Refused> {
    match end {
        RunEnd::Answered { answer, cut_off, .. } => {
            Ok((answer.clone(), if *cut_off { "length" } else { "stop" }))
        }
        RunEnd::Planned => Ok((String::new(), "stop")),
        RunEnd::Suspended { waiting } => Ok((waits(run, waiting), "stop")),
        RunEnd::Capped { message, .. } => Ok((format!("{message} (run {run})"), "length")),
        RunEnd::Failed { message, hint } => {
            let hint = hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
            Err(Refused::failed("run_failed", format!("{message}{hint} (run {run})")))
        }
        RunEnd::Cancelled => Err(Refused::failed("run_cancelled", format!("run {run} was cancelled"))),
    }
}

/// How what somebody is told begins whose question waits for a person.
const WAITS: &str = "This waits for a person: ";

/// What somebody is told whose question waits for a person.
pub(super) fn waits(run: &RunId, waiting: &[String]) -> String {
    let what = if waiting.is_empty() { String::new() } else { format!(" ({})", waiting.join(", ")) };
    // A model may read this: it is told what is the matter, and not how it could be allowed.
    format!(
        "{WAITS}a step would change something and must be allowed first{what}. It goes on once that is decided (run {run})."
    )
}

/// The run that a message of ours was about, if all it said is that the run waits.
pub(super) fn run_waited_for(message: &str) -> Option<RunId> {
    let (_, notice) = message.trim_end().rsplit_once(WAITS)?;
    let run = notice.strip_suffix(").")?.rsplit_once("(run ")?.1;
    let is_name = !run.is_empty() && run.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_name.then(|| RunId::from(run))
}

impl Answering {
    /// A whole answer.
    pub(super) fn whole(&self, end: &RunEnd, usage: Usage) -> Result<Value, Refused> {
        let (text, reason) = finished(&self.run, end)?;
        let waits = matches!(end, RunEnd::Suspended { .. });
        Ok(json!({
            "id": self.id(),
            "object": "chat.completion",
            "created": self.created,
            "model": self.agent,
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": text, "refusal": null},
                "logprobs": null,
                "finish_reason": reason,
            }],
            "usage": usage_value(usage),
            "toolyard": {"run": self.run, "waits_for_a_person": waits},
        }))
    }

    /// A piece of an answer.
    pub(super) fn chunk(&self, delta: &Value, reason: Option<&str>) -> Value {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason});
        self.chunk_of(&json!([choice]), &Value::Null)
    }

    /// The last piece, which only says what it cost.
    pub(super) fn usage_chunk(&self, usage: Usage) -> Value {
        self.chunk_of(&json!([]), &usage_value(usage))
    }

    fn chunk_of(&self, choices: &Value, usage: &Value) -> Value {
        json!({
            "id": self.id(),
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.agent,
            "choices": choices,
            "usage": usage,
        })
    }

    fn id(&self) -> String {
        format!("chatcmpl-{}", self.run)
    }
}

fn usage_value(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input.saturating_add(usage.output),
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    })
}

/// What a run has used, added up from its news.
pub(super) fn add_usage(usage: &mut Usage, news: &RunNews) {
    match news {
        RunNews::Event { event: RunEvent::ModelAnswered { reply, .. }, .. } => {
            *usage = usage.plus(reply.usage);
        }
        RunNews::Event { event: RunEvent::ModelFailed { usage: used, .. }, .. } => {
            *usage = usage.plus(*used);
        }
        _ => {}
    }
}

/// What of the news a chat shows while the answer is not there yet: a line when something is over.
pub(super) fn thought(news: &RunNews) -> Option<String> {
    use toolyard_agent::StepEnd as E;
    let event = match news {
        RunNews::ReasoningDelta { text } => return Some(text.clone()),
        RunNews::Event { event, .. } => event,
        _ => return None,
    };
    match event {
        RunEvent::Planned { plan, .. } => {
            let steps = plan.steps.iter().map(|step| format!("{} ({})", step.id, step.tool_type));
            Some(format!("plan: {}\n", steps.collect::<Vec<_>>().join(", ")))
        }
        RunEvent::StepEnded { step, outcome, .. } => Some(match outcome {
            E::Done { .. } => format!("{step}: done\n"),
            E::Failed { message, .. } | E::Unknown { message } => format!("{step}: {message}\n"),
            E::Skipped { because } => format!("{step}: not begun, because {because} failed\n"),
            E::Denied { by } => format!("{step}: denied by {by}\n"),
            E::Rehearsed => format!("{step}: not called, only rehearsed\n"),
        }),
        _ => None,
    }
}

#[cfg(test)]
#[path = "openai_tests.rs"]
mod tests;
