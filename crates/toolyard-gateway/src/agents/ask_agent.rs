//! The tool `ask_agent`: runs an agent, reports progress, and forwards approval and input requests to the client.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use toolyard_agent::{
    ApprovalDecision, ApprovalRequest, DEFAULT_AGENT, Effect, Language, RunEnd, RunEvent, RunOwner,
    RunRequest, RunUpdate, receipt_lines,
};
use toolyard_core::{
    CallInputError, CallInputKind, CallInputRequest, CallProgress, Caller, ContentBlock, ErrorKind, RawJson,
    RunId, ServiceCall, ToolError, ToolOutput,
};

use super::{
    ApiError,
    active_runs::{ActiveRun, ActiveRuns, START_TIMEOUT, StartError},
    config::AgentLookupError,
    conversation_owner::{mcp_conversation, mcp_owner, run_identity},
    run_observer::{RunClient, RunMessage},
    run_text::{progress_line, suspended_notice},
    service::AgentService,
};

pub(super) const ASK_AGENT: &str = "ask_agent";

/// What a client reads if its answer to an approval request was invalid.
const INVALID_ANSWER_NOTICE: &str =
    "the answer to the approval request was ignored: `decision` must be `allow`, `always` or `deny`";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskAgentArguments {
    question: String,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    conversation: Option<String>,
}

#[derive(Debug)]
pub(crate) struct AskAgent {
    runs: Arc<ActiveRuns>,
}

impl AskAgent {
    pub(crate) fn new(service: AgentService) -> Self {
        Self { runs: service.0 }
    }

    pub(super) fn definition(&self) -> RawJson {
        let names = self.runs.config.agents.names();
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
                    "conversation": {
                        "type": "string",
                        "description": "A name of your choice: the agent remembers what was asked and answered under it before",
                    },
                },
                "required": ["question"],
                "additionalProperties": false,
            },
            "annotations": {"readOnlyHint": false, "openWorldHint": true},
        })
        .into()
    }

    /// Runs the agent. The run has a task of its own, so that it stays active while the client decides on an approval.
    pub(super) async fn call(&self, call: &ServiceCall) -> Result<ToolOutput, ToolError> {
        let arguments: AskAgentArguments = call.request.parse().map_err(|error| error.on_tool(ASK_AGENT))?;
        let name = arguments.agent.as_deref().unwrap_or(DEFAULT_AGENT);
        self.runs.config.agents.refresh().await;
        let identity = call.caller.as_deref().and_then(Caller::identity).map(|identity| &**identity);
        let agent = self.runs.agent_for(name, identity);
        let agent = agent.map_err(lookup_failure)?;
        let conversation =
            arguments.conversation.as_deref().map(|name| mcp_conversation(call, name).map(Box::new));
        let request = RunRequest {
            conversation: conversation
                .transpose()
                .map_err(|error| failure(ErrorKind::InvalidArguments, error.to_string()))?,
            caller: (&*call.caller_name).into(),
            owner: Some(Box::new(RunOwner(mcp_owner(call)))),
            identity: call.caller.as_deref().and_then(Caller::identity).and_then(run_identity),
            traceparent: call.caller.as_deref().and_then(Caller::span).map(|span| span.to_string().into()),
            ..agent.request(arguments.question)
        };
        let client = call.caller.as_deref().map(RunClient::of);
        let language = Language::English.for_question(&request.question);
        let started =
            self.runs.start(agent, request, None, Instant::now() + START_TIMEOUT, move |runs, agent, run| {
                let (active, messages) = runs.spawn_observed(agent, &run, client);
                DelegatedRun {
                    run,
                    active,
                    messages,
                    progress: 0.0,
                    pending_approval: None,
                    has_invalid_answer: false,
                    language,
                    effects: Vec::new(),
                }
            });
        let mut delegated = started.await.map_err(|error| match error {
            StartError::QuotaExceeded(exceeded) if exceeded.store_error.is_none() => {
                exceeded.to_tool_error().on_tool(ASK_AGENT)
            }
            error => failure(error.kind(), error.to_string()),
        })?;
        delegated.wait(call.caller.as_deref()).await
    }
}

/// A run that a client waits for.
struct DelegatedRun {
    run: RunId,
    active: ActiveRun,
    messages: mpsc::UnboundedReceiver<RunMessage>,
    /// How many progress notifications were sent.
    progress: f64,
    /// Set while the client decides on an approval.
    pending_approval: Option<oneshot::Sender<Option<ApprovalDecision>>>,
    /// Whether the client accepted an approval request with an [`InvalidAnswer`].
    has_invalid_answer: bool,
    /// The language of the receipt.
    language: Language,
    /// The receipt, once the run is over or suspended.
    effects: Vec<Effect>,
}

impl DelegatedRun {
    async fn wait(&mut self, caller: Option<&dyn Caller>) -> Result<ToolOutput, ToolError> {
        while let Some(message) = self.messages.recv().await {
            match message {
                RunMessage::Update(update) => {
                    self.report_progress(&update, caller);
                    if let RunUpdate::Event {
                        event: RunEvent::Ended { effects: Some(effects), .. }, ..
                    } = update
                    {
                        self.effects = effects;
                    }
                }
                RunMessage::ApprovalRequest(request, sender) => {
                    self.pending_approval = Some(sender);
                    let decision = match caller {
                        Some(caller) => request_approval(caller, &request).await,
                        None => Ok(None),
                    };
                    self.has_invalid_answer |= decision.is_err();
                    if let Some(sender) = self.pending_approval.take() {
                        // The run may be over.
                        let _ = sender.send(decision.unwrap_or_default());
                    }
                }
                RunMessage::InputRequest(requests, sender) => request_input(caller, &requests, sender).await,
                RunMessage::Ended(ended) => {
                    let end = ended.map_err(|error| failure(ErrorKind::Failed, error.to_string()))?;
                    let receipt = receipt_lines(&self.effects, self.language).join("\n");
                    return tool_output(&self.run, end, &receipt, self.has_invalid_answer);
                }
            }
        }
        Err(failure(ErrorKind::Failed, format!("run {} stopped before it finished", self.run)))
    }

    fn report_progress(&mut self, update: &RunUpdate, caller: Option<&dyn Caller>) {
        let Some(caller) = caller.filter(|caller| caller.wants_progress()) else { return };
        let line = match update {
            RunUpdate::ReasoningDelta { .. } => None,
            update => progress_line(update),
        };
        if let Some(line) = line {
            self.progress += 1.0;
            let message = Some(line.trim_end().to_owned());
            caller.progress(&CallProgress { progress: self.progress, total: None, message });
        }
    }
}

impl Drop for DelegatedRun {
    fn drop(&mut self) {
        // A client that disconnects during an approval leaves the run suspended; otherwise the run is cancelled.
        if self.pending_approval.is_none() {
            self.active.cancel.cancel();
        }
    }
}

/// What the caller gets: the answer or the error, and the receipt under it.
fn tool_output(
    run: &RunId,
    end: RunEnd,
    receipt: &str,
    has_invalid_answer: bool,
) -> Result<ToolOutput, ToolError> {
    let with_receipt = |message: String| failure(ErrorKind::Failed, format!("{message}\n\n{receipt}"));
    let failed = |message: &str| with_receipt(format!("{message} (run {run})"));
    match end {
        RunEnd::Answered { answer, .. } => {
            // In a block of its own, which no markup of the answer can hide.
            let mut output = ToolOutput::text(answer);
            output.content.push(ContentBlock::text(receipt));
            Ok(output)
        }
        RunEnd::Planned => Ok(ToolOutput::text("The run has a plan; no tool was called.")),
        RunEnd::Suspended { waiting_for } => {
            let notice = suspended_notice(run, &waiting_for);
            let text =
                if has_invalid_answer { format!("{INVALID_ANSWER_NOTICE}\n\n{notice}") } else { notice };
            Ok(ToolOutput::text(text))
        }
        RunEnd::Failed { message, hint, .. } => {
            let error = failed(&message);
            Err(match hint {
                Some(hint) => error.with_operator_hint(hint),
                None => error,
            })
        }
        RunEnd::Cancelled => Err(with_receipt(format!("run {run} was cancelled"))),
        other => Err(failed(&other.to_string())),
    }
}

/// The error for an agent that cannot be used, as the HTTP API has it: without the operator's settings.
fn lookup_failure(error: AgentLookupError) -> ToolError {
    let kind = match &error {
        AgentLookupError::Unknown { .. } => ErrorKind::InvalidArguments,
        AgentLookupError::NoDefaultModel | AgentLookupError::Model(_) => ErrorKind::Failed,
    };
    let ApiError { message, hint, .. } = ApiError::from(error);
    let error = failure(kind, message);
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

fn failure(kind: ErrorKind, message: String) -> ToolError {
    ToolError::new(kind, message).on_tool(ASK_AGENT)
}

/// Forwards input requests of a tool to the client, until the tool gives up.
async fn request_input(
    caller: Option<&dyn Caller>,
    requests: &[CallInputRequest],
    mut sender: oneshot::Sender<Result<Vec<RawJson>, CallInputError>>,
) {
    let Some(caller) = caller else { return };
    tokio::select! {
        responses = caller.request_input(requests) => drop(sender.send(responses)),
        () = sender.closed() => {}
    }
}

/// An approval request was accepted without one of the decisions of its form.
#[derive(Debug, PartialEq, Eq)]
struct InvalidAnswer;

async fn request_approval(
    caller: &dyn Caller,
    request: &ApprovalRequest,
) -> Result<Option<ApprovalDecision>, InvalidAnswer> {
    let input_request = CallInputRequest {
        key: format!("approval-{}", request.id),
        source: "toolyard".into(),
        kind: CallInputKind::Elicitation,
        params: Some(elicitation(request).into()),
    };
    let responses = caller.request_input(std::slice::from_ref(&input_request)).await.unwrap_or_default();
    responses.first().map_or(Ok(None), |response| decision(&response.to_value()))
}

fn elicitation(request: &ApprovalRequest) -> Value {
    let ApprovalRequest { step, tool, source, arguments, effects, notes, .. } = request;
    let notes: String = notes.iter().map(|note| format!(". Note: {note}")).collect();
    json!({
        "mode": "form",
        "message": format!("May the agent call {tool} of {source} ({effects})? Step {step}, with {arguments}{notes}"),
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

/// The decision in an elicitation result; `None` if the user made none.
fn decision(result: &Value) -> Result<Option<ApprovalDecision>, InvalidAnswer> {
    match (
        result.get("action").and_then(Value::as_str),
        result.pointer("/content/decision").and_then(Value::as_str),
    ) {
        (Some("accept"), Some("allow")) => Ok(Some(ApprovalDecision::Allow)),
        (Some("accept"), Some("always")) => Ok(Some(ApprovalDecision::AllowAlways)),
        (Some("accept"), Some("deny")) | (Some("decline"), _) => Ok(Some(ApprovalDecision::Deny)),
        (Some("accept"), _) => Err(InvalidAnswer),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_unambiguous_result_is_a_decision() {
        let accept = |word: &str| json!({"action": "accept", "content": {"decision": word}});
        assert_eq!(decision(&accept("allow")), Ok(Some(ApprovalDecision::Allow)));
        assert_eq!(decision(&accept("always")), Ok(Some(ApprovalDecision::AllowAlways)));
        assert_eq!(decision(&accept("deny")), Ok(Some(ApprovalDecision::Deny)));
        assert_eq!(decision(&json!({"action": "decline"})), Ok(Some(ApprovalDecision::Deny)));
        for undecided in [json!({"action": "cancel"}), json!(null)] {
            assert_eq!(decision(&undecided), Ok(None), "{undecided}");
        }
        for unclear in [accept("yes"), json!({"action": "accept"})] {
            assert_eq!(decision(&unclear), Err(InvalidAnswer), "{unclear}");
        }
    }

    #[test]
    fn an_invalid_approval_answer_is_reported() {
        let text = |has_invalid_answer| {
            let end = RunEnd::Suspended { waiting_for: vec!["2".to_owned()] };
            tool_output(&"01J".into(), end, "", has_invalid_answer).unwrap().to_text()
        };
        assert!(text(true).starts_with(INVALID_ANSWER_NOTICE), "{}", text(true));
        assert!(text(true).ends_with(&text(false)), "{}", text(true));
    }
}
