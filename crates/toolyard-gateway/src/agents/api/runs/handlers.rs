//! Handlers of `/runs`: start a run, show it, follow its events, resolve an unknown outcome, cancel it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use http::{HeaderMap, StatusCode};
use tokio::{sync::broadcast::error::RecvError, time::Instant};
use toolyard_agent::{
    AGENT_RUN_KIND, Agent, AgentError, DEFAULT_AGENT, Language, Run, RunEnd, RunEvent, RunOwner, RunRequest,
    RunUpdate, cancel_run, load_run, receipt_lines, replay_updates, request_cancellation, review_line,
};
use toolyard_core::{
    ApprovalRecord, CallerIdentity, JournalError, LoggedEvent, Resolution, RunId, RunLog, RunState,
};
use toolyard_mcp_server::{RouteBody, RouteRequest, RouteResponse};

use super::{
    access::check_access,
    approvals::pending_of_run,
    bodies::{
        CancelledRun, ResolutionBody, ResolvedStep, RunDetails, RunEventLog, RunPlan, StartRunBody,
        StartedRun, UnknownStep, UnknownSteps,
    },
    event_stream::run_events,
    events::{ApiEffect, ApiReview, RunEventMapper, run_event_schema},
    list::{EventLogQuery, UnknownStepQuery},
    state::{ApiRunState, READ_TIMEOUT, RunSummary, logged_events, logged_updates, outcome},
    steps::run_steps,
};
use crate::{
    agents::{
        active_runs::{ActiveRuns, START_TIMEOUT},
        api::{
            chat_message::history,
            error::{ApiError, before, json_of, json_response},
            requested_conversation,
        },
        conversation_owner::{http_owner, run_identity},
        idempotency::{RequestCache, RequestIdentity, RequestLookup},
    },
    api::{
        error_code::ErrorCode,
        extract::{Requester, parse_body},
        pagination::{cut_page, long_page_limit},
        traceparent,
    },
};

/// How long a cancelled run may take to end before the client is told that it is still ending.
const CANCEL_GRACE: Duration = Duration::from_secs(5);
/// How often the log of a run is read that another process is to cancel.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// `POST /runs`. Repeating the request with the same idempotency key returns the same run.
pub(in crate::agents::api) async fn start(
    runs: &Arc<ActiveRuns>,
    requests: &RequestCache,
    request: &RouteRequest,
    requester: &Requester,
) -> Result<RouteResponse, ApiError> {
    let start: StartRunBody = parse_body(&request.body)?;
    if start.question.trim().is_empty() {
        return Err(ApiError::invalid_param("question", "`question` is empty"));
    }
    let history = history("history", &start.history)?;
    let name = start.agent.as_deref().unwrap_or(DEFAULT_AGENT);
    let agent = runs.agent_for(name, Some(&request.identity))?;
    let conversation = requested_conversation(request, start.conversation.as_deref())?;
    let owner = http_owner(request.identity.owner_hash_ref());
    let traceparent = traceparent(&request.headers);
    let identity = RequestIdentity::from_request("/runs", request)?;
    let deadline = Instant::now() + START_TIMEOUT;
    let reservation = match before(deadline, requests.reserve(identity, runs.config.log.as_ref())).await? {
        RequestLookup::New(reservation) => reservation,
        RequestLookup::Duplicate(run) => return duplicate_response(runs.config.log.as_ref(), &run).await,
    };
    let request = RunRequest {
        detached: true,
        history,
        conversation,
        caller: requester.audit_name().as_ref().into(),
        identity: run_identity(&request.identity),
        owner: Some(Box::new(RunOwner(owner))),
        traceparent,
        plan_only: start.plan_only,
        dry_run: start.dry_run,
        ..agent.request(start.question)
    };
    let run = runs.start(agent, request, Some(reservation), deadline, |runs, agent, run| {
        runs.spawn(agent, &run);
        run
    });
    Ok(started_response(&run.await?, ApiRunState::Running))
}

pub(in crate::agents::api) fn started_response(run: &RunId, state: ApiRunState) -> RouteResponse {
    let started = StartedRun { run: run.to_string(), state, events: format!("/api/v1/runs/{run}/events") };
    json_of(StatusCode::ACCEPTED, &started)
}

/// The response to a request that started this run before.
async fn duplicate_response(log: &dyn RunLog, run: &RunId) -> Result<RouteResponse, ApiError> {
    let record = before(Instant::now() + READ_TIMEOUT, log.run(run)).await?;
    let end = outcome(log, run).await?.map(|(end, _)| end);
    Ok(started_response(run, ApiRunState::new(record.state, end.as_ref())))
}

/// `GET /runs/ID`.
pub(in crate::agents::api) async fn show(runs: &ActiveRuns, run: &RunId) -> Result<RouteResponse, ApiError> {
    // The state is read before the events, so that a run that is over is never shown without its end.
    let record = before(Instant::now() + READ_TIMEOUT, runs.config.log.run(run)).await?;
    let events = logged_events(runs.config.log.as_ref(), run).await?;
    let updates: Vec<RunUpdate> = replay_updates(&events).collect();
    let steps = run_steps(logged_with_time(&events, &updates));
    let state_of_steps = replayed(&updates);
    let summary = RunSummary::new(updates);
    let deadline = Instant::now() + READ_TIMEOUT;
    let unknown = before(deadline, runs.config.log.unknown_steps_of(run)).await?;
    let pending_approvals = before(deadline, pending_of_run(runs, run, &state_of_steps)).await?;
    let (message, hint) = summary.failure();
    let message = message.map(str::to_owned);
    let state = ApiRunState::new(record.state, summary.end.as_ref());
    let answer = summary.answer().map(str::to_owned);
    let sources = summary.sources().to_vec();
    let request = summary.request;
    let effects = state_of_steps.effects();
    let question = request.as_ref().map(|request| request.question.as_str()).unwrap_or_default();
    let language = Language::English.for_question(question);
    let has_receipt = answer.is_some() || !matches!(state, ApiRunState::Running | ApiRunState::Planned);
    let receipt = if has_receipt { receipt_lines(&effects, language) } else { Vec::new() };
    let details = RunDetails {
        run: run.to_string(),
        state,
        agent: request.as_ref().map(|request| request.agent.clone()),
        question: request.as_ref().map(|request| request.question.clone()),
        conversation: request.and_then(|request| Some(request.conversation?.name.clone())),
        created_at: record.created_at,
        answer,
        sources,
        opinion: summary.tally.review.as_ref().map(|review| review_line(review, language)),
        receipt,
        effects: effects.into_iter().map(ApiEffect::from).collect(),
        review: summary.tally.review.map(ApiReview::from),
        message,
        hint,
        plan: summary.plan.map(|steps| RunPlan { steps }),
        steps,
        pending_approvals,
        unknown_steps: unknown.iter().map(UnknownStep::of).collect(),
        usage: summary.tally.usage.into(),
        last_event: summary.last_event,
    };
    Ok(json_of(StatusCode::OK, &details))
}

/// The state after these events, up to the first one that does not fit.
fn replayed(updates: &[RunUpdate]) -> Run {
    let mut run = Run::new();
    for update in updates {
        let RunUpdate::Event { event, .. } = update else { continue };
        if run.apply(event).is_err() {
            break;
        }
    }
    run
}

/// The events that can be read, each with the time when it was logged.
fn logged_with_time<'a>(
    logged: &[LoggedEvent],
    updates: &'a [RunUpdate],
) -> impl Iterator<Item = (i64, &'a RunEvent)> {
    let times: HashMap<i64, i64> = logged.iter().map(|event| (event.number, event.at)).collect();
    updates.iter().filter_map(move |update| match update {
        RunUpdate::Event { number, event, .. } => Some((times.get(number).copied()?, event)),
        _ => None,
    })
}

/// `GET /runs/ID/log`: the events after a number. Never waits for further ones.
pub(in crate::agents::api) async fn event_log(
    runs: &ActiveRuns,
    run: &RunId,
    query: &EventLogQuery,
) -> Result<RouteResponse, ApiError> {
    let limit = long_page_limit(query.limit)?;
    let deadline = Instant::now() + READ_TIMEOUT;
    let log = runs.config.log.as_ref();
    let record = before(deadline, log.run(run)).await?;
    if record.kind != AGENT_RUN_KIND {
        return Err(AgentError::OtherKind { run: run.clone(), kind: record.kind }.into());
    }
    let first = query.after.map_or(0, |after| after.saturating_add(1).max(0));
    let mut logged = before(deadline, log.events(run, first)).await?;
    let next = cut_page(&mut logged, limit, |event| event.number.to_string());
    let mapper = RunEventMapper { run: run.clone(), created_at: Some(record.created_at) };
    let events = replay_updates(&logged).filter_map(|update| mapper.event(update)).collect();
    Ok(json_of(StatusCode::OK, &RunEventLog { events, next }))
}

/// `GET /runs/ID/events`, from the event after `Last-Event-ID` or `?after=` on. If a finished run has no more events, the answer is
/// 204, which tells the `EventSource` of a browser to stop reconnecting.
pub(in crate::agents::api) async fn follow(
    runs: &Arc<ActiveRuns>,
    run: &RunId,
    headers: &HeaderMap,
    after: Option<i64>,
) -> Result<RouteResponse, ApiError> {
    // The header is newer than the parameter: an `EventSource` that reconnects sends both.
    let header = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.trim().parse::<i64>().ok());
    let last = header.or(after);
    let record = before(Instant::now() + READ_TIMEOUT, runs.config.log.run(run)).await?;
    let updates = logged_updates(runs.config.log.as_ref(), run).await?;
    let from = last.map_or(0, |last| last.saturating_add(1).max(0));
    if let Some(RunUpdate::Event { number, event: RunEvent::Ended { end, .. }, .. }) = updates.last()
        && !matches!(end, RunEnd::Suspended { .. })
        && from > *number
    {
        return Ok(RouteResponse {
            status: StatusCode::NO_CONTENT,
            headers: Vec::new(),
            body: RouteBody::Empty,
        });
    }
    let mapper = RunEventMapper { run: run.clone(), created_at: Some(record.created_at) };
    let stream = Box::pin(run_events(Arc::clone(runs), mapper, from));
    let body = RouteBody::Events { stream, ends_on_shutdown: true };
    Ok(RouteResponse { status: StatusCode::OK, headers: Vec::new(), body })
}

/// `GET /api/v1/events.schema.json`.
pub(in crate::agents::api) fn event_schema() -> RouteResponse {
    json_response(StatusCode::OK, run_event_schema().as_value())
}

/// `GET /unknown-steps`: all steps whose outcome is unknown, of agents and of single calls.
pub(in crate::agents::api) async fn unknown(
    runs: &ActiveRuns,
    identity: &CallerIdentity,
    query: &UnknownStepQuery,
) -> Result<RouteResponse, ApiError> {
    let limit = long_page_limit(query.limit)?;
    let all = before(Instant::now() + READ_TIMEOUT, runs.config.log.unknown_steps()).await?;
    let mut steps = Vec::new();
    for step in &all {
        if check_access(runs, identity, &step.run).await.is_ok() {
            steps.push(UnknownStep::of(step));
        }
    }
    steps.sort_by_cached_key(UnknownStep::cursor);
    if let Some(after) = &query.after {
        steps.retain(|step| step.cursor() > *after);
    }
    let next = cut_page(&mut steps, limit, UnknownStep::cursor);
    Ok(json_of(StatusCode::OK, &UnknownSteps { steps, next }))
}

/// `POST /unknown-steps`: records whether a step with an unknown outcome took effect, and resumes the run.
pub(in crate::agents::api) async fn resolve(
    runs: &Arc<ActiveRuns>,
    body: ResolutionBody,
    requester: &Requester,
) -> Result<RouteResponse, ApiError> {
    let ResolutionBody { run, step, outcome } = body;
    let run = &RunId::from(run);
    check_access(runs, &requester.identity, run).await?;
    if outcome == Resolution::NotDone && !runs.config.clients_may_approve && !requester.is_operator() {
        // The call may be made again, which is as good as an approval.
        let message = "HTTP clients may only resolve steps as `done`; the operator of this gateway may permit a call to be repeated";
        return Err(ApiError {
            status: StatusCode::FORBIDDEN,
            code: Some(ErrorCode::ApprovalNotPermitted),
            ..ApiError::invalid_param("outcome", message)
        });
    }
    let log = runs.config.log.as_ref();
    let record = before(Instant::now() + READ_TIMEOUT, log.run(run)).await?;
    // A single call has nothing to resume.
    let agent = match record.kind == AGENT_RUN_KIND && record.state == RunState::Open {
        true => agent_to_resume(runs, run).await?,
        false => None,
    };
    log.resolve(run, &step, outcome, &requester.audit_name()).await.map_err(|error| match error {
        JournalError::NotResolvable { .. } => {
            ApiError::not_found(ErrorCode::UnknownStepNotFound, error.to_string())
        }
        error => error.into(),
    })?;
    runs.notify_decision(run);
    let is_resumed = agent.map(|agent| runs.spawn(agent, run)).is_some();
    let resolved = ResolvedStep { run: run.to_string(), step, outcome, resumed: is_resumed };
    Ok(json_of(StatusCode::ACCEPTED, &resolved))
}

/// The agent that continues a run after a decision: none if this process may not take the run over, because its rules, profile or
/// tools differ, or because `toolyard ask` started the run.
pub(in crate::agents::api) async fn agent_to_resume(
    runs: &ActiveRuns,
    run: &RunId,
) -> Result<Option<Agent>, ApiError> {
    let loading = load_run(runs.config.log.as_ref(), run);
    let (state, _) = before(Instant::now() + READ_TIMEOUT, loading).await?;
    let agent = state.request().and_then(|request| runs.agent(&request.agent).ok());
    Ok(agent.filter(|agent| agent.may_take_over(&state)))
}

/// `POST /runs/ID/cancel`, whichever process drives the run.
pub(in crate::agents::api) async fn cancel(
    runs: &ActiveRuns,
    run: &RunId,
    requester: &Requester,
) -> Result<RouteResponse, ApiError> {
    let log = runs.config.log.as_ref();
    logged_updates(log, run).await?;
    let cancelled_response =
        |status| Ok(json_of(status, &CancelledRun { run: run.to_string(), cancelled: true }));
    if let Some(active) = runs.find(run) {
        active.cancel.cancel();
        let mut updates = active.subscribe();
        drop(active);
        let ended = async { while !matches!(updates.recv().await, Err(RecvError::Closed)) {} };
        if tokio::time::timeout(CANCEL_GRACE, ended).await.is_err() {
            return cancelled_response(StatusCode::ACCEPTED);
        }
        if matches!(
            logged_updates(log, run).await?.last(),
            Some(RunUpdate::Event { event: RunEvent::Ended { end: RunEnd::Cancelled, .. }, .. })
        ) {
            return cancelled_response(StatusCode::OK);
        }
        // The run was released or had finished before it could be cancelled.
    }
    let owner = format!("{}-cancels", runs.config.owner);
    match cancel_run(log, runs.config.approvals.as_ref(), run, &owner).await {
        Ok(()) => cancelled_response(StatusCode::OK),
        Err(AgentError::Journal(JournalError::Leased { .. })) => {
            request_cancellation(runs.config.approvals.as_ref(), run, &requester.audit_name()).await?;
            runs.notify_decision(run);
            match is_cancelled_elsewhere(runs, run).await? {
                true => cancelled_response(StatusCode::OK),
                false => cancelled_response(StatusCode::ACCEPTED),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether the process of the cluster that drives a run has cancelled it within a short time.
async fn is_cancelled_elsewhere(runs: &ActiveRuns, run: &RunId) -> Result<bool, ApiError> {
    let until = Instant::now() + CANCEL_GRACE;
    while runs.config.peers.is_some() && Instant::now() < until {
        let last = before(Instant::now() + READ_TIMEOUT, runs.config.log.last_event(run)).await?;
        if let Some(Ok(RunEvent::Ended { end, .. })) = last.map(|last| last.event.read()) {
            return Ok(matches!(end, RunEnd::Cancelled));
        }
        tokio::time::sleep(CANCEL_POLL_INTERVAL).await;
    }
    Ok(false)
}

pub(in crate::agents::api) async fn pending_approvals(
    runs: &ActiveRuns,
    run: &RunId,
) -> Result<Vec<ApprovalRecord>, ApiError> {
    let mut approvals = runs
        .config
        .approvals
        .approvals_of_run(run)
        .await
        .map_err(|error| ApiError::failed(ErrorCode::ApprovalsUnavailable, error.to_string()))?;
    approvals.retain(|approval| approval.outcome.is_none());
    Ok(approvals)
}
