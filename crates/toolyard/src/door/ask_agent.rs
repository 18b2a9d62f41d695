//! The tool `ask_agent`: a client delegates a question to an agent, hears how far it is, and is asked what must be allowed.

use std::{fmt, sync::Arc};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use toolyard_agent::{ApprovalDecision, ApprovalQuestion, Ask, DEFAULT_AGENT, RunEnd, RunNews};
use toolyard_core::{
    CallProgress, CallQuestion, Caller, ErrorKind, RawJson, RunId, ServiceCall, ToolError, ToolOutput,
    Unanswered,
};

use super::{
    ears::{Client, Heard},
    live_runs::{AgentDoor, LiveRun, LiveRuns},
    openai::{thought, waits},
};

/// What the tool is called.
pub(super) const ASK_AGENT: &str = "ask_agent";

/// What a client asks for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    question: String,
    #[serde(default)]
    agent: Option<String>,
}

/// The tool `ask_agent`.
pub(super) struct AskAgent {
    runs: Arc<LiveRuns>,
}

impl fmt::Debug for AskAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AskAgent")
    }
}

impl AskAgent {
    pub(super) fn new(door: AgentDoor) -> Self {
        Self { runs: door.0 }
    }

    /// What a client is told of it.
    pub(super) fn definition(&self) -> RawJson {
        let names = self.runs.agents.names();
        json!({
            "name": ASK_AGENT,
            "title": "Ask an agent",
            "description": "Give a question or task to an agent that plans, calls the tools behind this server, checks their \
                            results and answers. Good for work of several steps. Steps that change something are asked about.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "question": {"type": "string", "description": "The question or task, with everything that must be known for it"},
                    "agent": {
                        "type": "string", "enum": names,
                        "description": format!("Which agent; {DEFAULT_AGENT} if none is named"),
                    },
                },
                "required": ["question"],
                "additionalProperties": false,
            },
            "annotations": {"readOnlyHint": false, "openWorldHint": true},
        })
        .into()
    }

    /// Asks. The run goes on in a task of its own, so that it stays ours while the client thinks about a question.
    pub(super) async fn call(&self, call: &ServiceCall) -> Result<ToolOutput, ToolError> {
        let arguments: Arguments =
            call.request.arguments.read().map_err(|error| {
                failure(ErrorKind::InvalidArguments, format!("invalid arguments: {error}"))
            })?;
        let name = arguments.agent.as_deref().unwrap_or(DEFAULT_AGENT);
        let agent =
            self.runs.agent(name).map_err(|error| failure(ErrorKind::InvalidArguments, error.to_string()))?;
        let ask = Ask { who: call.who.to_string(), ..self.runs.agents.question(name, arguments.question) };
        let client = call.caller.as_deref().map(|caller| Client {
            capabilities: caller.capabilities(),
            conversation: caller.conversation(),
        });
        let begun = self.runs.begin(agent, ask, None, |runs, agent, run| {
            let (live, hearing) = runs.go_on_asked(agent, &run, client);
            Delegated { run, live, hearing, progress: 0.0, answering: None }
        });
        let mut delegated = begun.await.map_err(|error| failure(error.kind(), error.to_string()))?;
        delegated.wait(call.caller.as_deref()).await
    }
}

/// A run that somebody waits for.
struct Delegated {
    run: RunId,
    live: LiveRun,
    hearing: mpsc::UnboundedReceiver<Heard>,
    progress: f64,
    /// A question that the client thinks about.
    answering: Option<oneshot::Sender<Option<ApprovalDecision>>>,
}

impl Delegated {
    async fn wait(&mut self, caller: Option<&dyn Caller>) -> Result<ToolOutput, ToolError> {
        while let Some(heard) = self.hearing.recv().await {
            match heard {
                Heard::News(news) => self.tell(&news, caller),
                Heard::Asks(question, answer) => {
                    self.answering = Some(answer);
                    let decision = match caller {
                        Some(caller) => ask(caller, &question).await,
                        None => None,
                    };
                    if let Some(answer) = self.answering.take() {
                        // A run that is over does not need it.
                        let _ = answer.send(decision);
                    }
                }
                Heard::ToolAsks(questions, answer) => pass_on(caller, &questions, answer).await,
                Heard::Ended(ended) => {
                    let ended = ended.map_err(|error| failure(ErrorKind::Failed, error.to_string()))?;
                    return output(&self.run, ended);
                }
            }
        }
        Err(failure(ErrorKind::Failed, format!("run {} was left as it is", self.run)))
    }

    /// Says how far it is.
    fn tell(&mut self, news: &RunNews, caller: Option<&dyn Caller>) {
        let Some(caller) = caller.filter(|caller| caller.wants_progress()) else { return };
        let message = match news {
            RunNews::ReasoningDelta { .. } => None,
            news => thought(news),
        };
        if let Some(message) = message {
            self.progress += 1.0;
            let message = Some(message.trim_end().to_owned());
            caller.progress(&CallProgress { progress: self.progress, total: None, message });
        }
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        // Whoever leaves while a question is open leaves the run waiting for an answer; otherwise nobody wants it any more.
        if self.answering.is_none() {
            self.live.stop.cancel();
        }
    }
}

/// What became of a run, for a client.
fn output(run: &RunId, end: RunEnd) -> Result<ToolOutput, ToolError> {
    match end {
        RunEnd::Answered { answer, .. } => Ok(ToolOutput::text(answer)),
        RunEnd::Planned => Ok(ToolOutput::text("there is a plan, and nothing was done")),
        RunEnd::Suspended { waiting } => Ok(ToolOutput::text(waits(run, &waiting))),
        RunEnd::Failed { message, hint } => {
            let error = failure(ErrorKind::Failed, format!("{message} (run {run})"));
            Err(match hint {
                Some(hint) => error.with_hint(hint),
                None => error,
            })
        }
        RunEnd::Capped { message, .. } => Err(failure(ErrorKind::Failed, format!("{message} (run {run})"))),
        RunEnd::Cancelled => Err(failure(ErrorKind::Failed, format!("run {run} was cancelled"))),
    }
}

fn failure(kind: ErrorKind, message: String) -> ToolError {
    ToolError::new(kind, message).on_tool(ASK_AGENT)
}

/// Asks the client what a tool wants to know, unless the tool gives up meanwhile.
async fn pass_on(
    caller: Option<&dyn Caller>,
    questions: &[CallQuestion],
    mut answer: oneshot::Sender<Result<Vec<RawJson>, Unanswered>>,
) {
    let Some(caller) = caller else { return };
    tokio::select! {
        answers = caller.ask(questions) => drop(answer.send(answers)),
        () = answer.closed() => {}
    }
}

/// Asks the client's person whether a call may be made.
async fn ask(caller: &dyn Caller, question: &ApprovalQuestion) -> Option<ApprovalDecision> {
    let asked = CallQuestion {
        key: format!("approval-{}", question.id),
        source: "toolyard".into(),
        method: "elicitation/create".to_owned(),
        params: Some(elicitation(question).into()),
    };
    let answers = caller.ask(std::slice::from_ref(&asked)).await.ok()?;
    decided(&answers.first()?.to_value())
}

fn elicitation(question: &ApprovalQuestion) -> Value {
    let ApprovalQuestion { step, tool, source, arguments, effects, notes, .. } = question;
    let notes: String = notes.iter().map(|note| format!(". Note: {note}")).collect();
    json!({
        "mode": "form",
        "message": format!("May the agent call {tool} of {source}? It {effects}. Step {step}, with {arguments}{notes}"),
        "requestedSchema": {
            "type": "object",
            "properties": {"decision": {
                "type": "string", "title": "Decision", "enum": ["allow", "always", "deny"],
                "description": "allow this call, every call of this tool in this run, or none",
            }},
            "required": ["decision"],
        },
    })
}

/// What an answer means; nothing where nobody answered.
fn decided(answer: &Value) -> Option<ApprovalDecision> {
    match (
        answer.get("action").and_then(Value::as_str),
        answer.pointer("/content/decision").and_then(Value::as_str),
    ) {
        (Some("accept"), Some("allow")) => Some(ApprovalDecision::Allow),
        (Some("accept"), Some("always")) => Some(ApprovalDecision::AllowAlways),
        (Some("accept"), Some("deny")) | (Some("decline"), _) => Some(ApprovalDecision::Deny),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_answer_decides() {
        let of = |value: Value| decided(&value);
        let accept = |word: &str| json!({"action": "accept", "content": {"decision": word}});
        assert_eq!(of(accept("allow")), Some(ApprovalDecision::Allow));
        assert_eq!(of(accept("always")), Some(ApprovalDecision::AllowAlways));
        assert_eq!(of(accept("deny")), Some(ApprovalDecision::Deny));
        assert_eq!(of(json!({"action": "decline"})), Some(ApprovalDecision::Deny));
        for unclear in [accept("yes"), json!({"action": "accept"}), json!({"action": "cancel"}), json!(null)]
        {
            assert_eq!(decided(&unclear), None, "{unclear}");
        }
    }
}
