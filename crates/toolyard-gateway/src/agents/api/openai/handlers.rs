//! Handlers of the OpenAI-compatible API: `POST /v1/chat/completions`, `POST /v1/responses` and `GET /v1/models`.

use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;
use futures_util::{FutureExt as _, Stream};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use tokio::time::Instant;
use toolyard_agent::{RunEnd, RunOwner, RunRequest};
use toolyard_core::{CallerIdentity, RunId, RunLog};
use toolyard_mcp_server::{RouteBody, RouteRequest, RouteResponse};
use toolyard_model::{ModelMessage, Role};

use super::{
    answer::{AnswerFormat, AnswerRequest, AnsweringRun},
    answer_stream::{PendingAnswer, finished_events},
    completion::parse_completion,
    response::parse_response_request,
};
use crate::{
    agents::{
        active_runs::{ActiveRuns, START_TIMEOUT},
        api::{
            error::{ApiError, before, json_response},
            requested_conversation,
            runs::{access::check_access, state::outcome},
        },
        config::AgentLookupError,
        conversation_owner::{http_owner, run_identity},
        idempotency::{IdempotencyError, RequestCache, RequestIdentity, RequestLookup},
        run_text::run_of_suspended_notice,
        unix_time::now_milliseconds,
    },
    api::{extract::Requester, traceparent},
};

/// How many suspended runs of a conversation are looked up. The client writes the history, so it could name any number.
const MAX_RUN_LOOKUPS: usize = 20;

/// `POST /v1/chat/completions`.
pub(in crate::agents::api) async fn complete(
    runs: &Arc<ActiveRuns>,
    requests: &RequestCache,
    request: &RouteRequest,
    requester: &Requester,
) -> Result<RouteResponse, ApiError> {
    let (asked, format) = parse_completion(&request.body)?;
    answer(runs, requests, ("/v1/chat/completions", request, requester), asked, format).await
}

/// `POST /v1/responses`.
pub(in crate::agents::api) async fn respond(
    runs: &Arc<ActiveRuns>,
    requests: &RequestCache,
    request: &RouteRequest,
    requester: &Requester,
) -> Result<RouteResponse, ApiError> {
    let (asked, format) = parse_response_request(&request.body)?;
    answer(runs, requests, ("/v1/responses", request, requester), asked, format).await
}

/// Answers a question that was sent to an endpoint, with a run that ends when the client disconnects.
async fn answer(
    runs: &Arc<ActiveRuns>,
    requests: &RequestCache,
    (endpoint, request, requester): (&'static str, &RouteRequest, &Requester),
    mut asked: AnswerRequest,
    format: impl AnswerFormat,
) -> Result<RouteResponse, ApiError> {
    let agent = runs.agent_for(&asked.agent, Some(&request.identity))?;
    let conversation = requested_conversation(request, asked.conversation.as_deref())?;
    let owner = http_owner(request.identity.owner_hash_ref());
    let traceparent = traceparent(&request.headers);
    let identity = RequestIdentity::from_request(endpoint, request)?;
    let log = runs.config.log.as_ref();
    let deadline = Instant::now() + START_TIMEOUT;
    let reservation = match before(deadline, requests.reserve(identity, log)).await? {
        RequestLookup::New(reservation) => reservation,
        RequestLookup::Duplicate(run) => return respond_to_duplicate(log, asked, format, run).await,
    };
    let request = RunRequest {
        history: before(
            deadline,
            resolve_suspended_notices(runs, &request.identity, std::mem::take(&mut asked.history))
                .map(Ok::<_, ApiError>),
        )
        .await?,
        conversation,
        temperature_hundredths: asked.temperature_hundredths,
        caller: requester.audit_name().as_ref().into(),
        identity: run_identity(&request.identity),
        owner: Some(Box::new(RunOwner(owner))),
        traceparent,
        ..agent.request(asked.question.clone())
    };
    let started = runs.start(agent, request, Some(reservation), deadline, |runs, agent, run| {
        let (active, messages) = runs.spawn_observed(agent, &run, None);
        (run, PendingAnswer { messages, cancel: active.cancel })
    });
    let (run, pending) = started.await?;
    let run = answering_run(run, &asked);
    if !asked.stream {
        let answer = pending.wait(&run).await?;
        return Ok(json_response(StatusCode::OK, &format.whole(&run, &answer)));
    }
    Ok(event_stream(pending.into_events(run, format)))
}

fn answering_run(run: RunId, asked: &AnswerRequest) -> AnsweringRun {
    let (agent, max_tokens) = (asked.agent.clone(), asked.max_tokens);
    AnsweringRun { run, agent, created: now_milliseconds() / 1_000, max_tokens }
}

/// The answer of a run that an earlier, equal request started.
async fn respond_to_duplicate(
    log: &dyn RunLog,
    asked: AnswerRequest,
    format: impl AnswerFormat,
    run: RunId,
) -> Result<RouteResponse, ApiError> {
    let Some((end, tally)) = outcome(log, &run).await? else {
        return Err(IdempotencyError::AlreadyStarted(run).into());
    };
    let run = answering_run(run, &asked);
    if asked.stream {
        return Ok(event_stream(finished_events(run, format, tally, end)));
    }
    let answer = run.finish(end, &tally)?;
    Ok(json_response(StatusCode::OK, &format.whole(&run, &answer)))
}

/// Replaces notices about suspended runs by the answers that these runs have by now, and drops those without one. The client
/// writes the history, so a notice about a run that the caller may not see is dropped, too.
pub(in crate::agents::api) async fn resolve_suspended_notices(
    runs: &ActiveRuns,
    identity: &CallerIdentity,
    history: Vec<ModelMessage>,
) -> Vec<ModelMessage> {
    let (mut resolved, mut looked_up) = (Vec::with_capacity(history.len()), HashSet::new());
    for message in history.into_iter().rev() {
        let suspended_run = match message.role {
            Role::Assistant => run_of_suspended_notice(&message.text),
            _ => None,
        };
        let Some(run) = suspended_run else {
            resolved.push(message);
            continue;
        };
        if looked_up.len() >= MAX_RUN_LOOKUPS || !looked_up.insert(run.clone()) {
            continue;
        }
        if check_access(runs, identity, &run).await.is_err() {
            continue;
        }
        let end = outcome(runs.config.log.as_ref(), &run).await.ok().flatten().map(|(end, _)| end);
        if let Some(answer) = end.as_ref().and_then(RunEnd::answer) {
            resolved.push(ModelMessage::new(Role::Assistant, answer));
        }
    }
    resolved.reverse();
    resolved
}

/// `GET /v1/models`: agents are listed as models.
pub(in crate::agents::api) fn models(runs: &ActiveRuns, identity: &CallerIdentity) -> RouteResponse {
    let models: Vec<Value> = runs.agent_names(Some(identity)).iter().map(|name| model_json(name)).collect();
    json_response(StatusCode::OK, &json!({"object": "list", "data": models}))
}

/// `GET /v1/models/NAME`.
pub(in crate::agents::api) fn model(
    runs: &ActiveRuns,
    name: &str,
    identity: &CallerIdentity,
) -> Result<RouteResponse, ApiError> {
    let known = runs.agent_names(Some(identity));
    if !known.iter().any(|agent| agent == name) {
        return Err(AgentLookupError::Unknown { name: name.to_owned(), known }.into());
    }
    Ok(json_response(StatusCode::OK, &model_json(name)))
}

fn model_json(name: &str) -> Value {
    json!({"id": name, "object": "model", "created": 0, "owned_by": "toolyard"})
}

fn event_stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> RouteResponse {
    let headers = vec![(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"))];
    let body = RouteBody::Events { stream: Box::pin(stream), ends_on_shutdown: false };
    RouteResponse { status: StatusCode::OK, headers, body }
}
