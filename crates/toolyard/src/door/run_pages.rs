//! Runs over HTTP: begin one, see how it stands, hear what happens, allow what it waits for, cancel it.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use toolyard_agent::{
    AgentError, Ask, DEFAULT_AGENT, RunEnd, RunEvent, RunNews, answer_question, ask_to_stop, cancel, replay,
};
use toolyard_core::{JournalError, Question, RunId};
use toolyard_mcp::server::{PageAnswer, PageBody};
use toolyard_model::{ModelMessage, Usage};

use super::{
    begun::{Begun, Known, Request},
    live_runs::LiveRuns,
    openai::add_usage,
    page_answer::{Refused, json_answer},
    run_events::events,
};

/// How long a cancelled run may take to end before whoever cancelled it is answered.
const CANCELLING: Duration = Duration::from_secs(5);

/// A question for `POST /runs`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    question: String,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    history: Vec<ModelMessage>,
    #[serde(default)]
    plan_only: bool,
    #[serde(default)]
    dry_run: bool,
}

/// A person's word for `POST /runs/ID/approve`: on one question, on one step, or on the only one that waits.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Word {
    #[serde(default)]
    question: Option<i64>,
    #[serde(default)]
    step: Option<String>,
    allow: bool,
}

/// Begins a run, and works on it. The same request under the same key of its client begins nothing more.
pub(super) async fn begin(
    runs: &Arc<LiveRuns>,
    begun: &Begun,
    headers: &HeaderMap,
    body: &str,
) -> Result<PageAnswer, Refused> {
    let begin: Begin = read(body)?;
    if begin.question.trim().is_empty() {
        return Err(Refused::bad("question", "nothing is asked"));
    }
    let name = begin.agent.as_deref().unwrap_or(DEFAULT_AGENT);
    let agent = runs.agent(name)?;
    let request = Request::read("/runs", headers, body)?;
    let begins = match begun.look(request, runs.agents.log().as_ref()).await? {
        Known::New(begins) => begins,
        Known::Same(run) => return Ok(begun_as(&run)),
    };
    let ask = Ask {
        detached: true,
        history: begin.history,
        who: "http".to_owned(),
        plan_only: begin.plan_only,
        dry_run: begin.dry_run,
        ..runs.agents.question(name, begin.question)
    };
    let run = runs.begin(agent, ask, Some(begins), |runs, agent, run| {
        runs.go_on(agent, &run);
        run
    });
    Ok(begun_as(&run.await?))
}

fn begun_as(run: &RunId) -> PageAnswer {
    let places = json!({"run": run, "events": format!("/runs/{run}/events")});
    json_answer(StatusCode::ACCEPTED, &places)
}

/// How a run ended or waits, and what it used; nothing as long as it goes on.
pub(super) async fn outcome(runs: &LiveRuns, run: &RunId) -> Result<Option<(RunEnd, Usage)>, Refused> {
    let (mut end, mut usage) = (None, Usage::default());
    for news in kept(runs, run).await? {
        add_usage(&mut usage, &news);
        match news {
            RunNews::Event { event: RunEvent::Ended { end: ended }, .. } => end = Some(ended),
            RunNews::Event { event: RunEvent::Resumed { .. }, .. } => end = None,
            _ => {}
        }
    }
    Ok(end.map(|end| (end, usage)))
}

/// How a run stands.
pub(super) async fn show(runs: &Arc<LiveRuns>, run: &RunId) -> Result<PageAnswer, Refused> {
    let record = runs.agents.log().run(run).await.map_err(|error| Refused::from(AgentError::from(error)))?;
    let events = kept(runs, run).await?;
    let (mut usage, mut end, mut asked, mut plan) = (Usage::default(), Value::Null, None, Value::Null);
    for news in &events {
        add_usage(&mut usage, news);
        let RunNews::Event { event, .. } = news else { continue };
        match event {
            RunEvent::Asked { ask } => asked = Some(ask.clone()),
            RunEvent::Planned { plan: newest, .. } => plan = json!(newest),
            RunEvent::Ended { end: ended } => end = json!(ended),
            RunEvent::Resumed { .. } => end = Value::Null,
            _ => {}
        }
    }
    let waiting: Vec<Value> = waiting(runs, run)
        .await?
        .iter()
        .map(|question| json!({"question": question.id, "step": question.step, "text": question.text}))
        .collect();
    let facts = json!({
        "run": run,
        "state": record.state,
        "begun": record.created_at,
        "worked_on_here": runs.find(run).is_some(),
        "agent": asked.as_ref().map(|ask| &ask.agent),
        "question": asked.as_ref().map(|ask| &ask.question),
        "plan": plan,
        "waiting": waiting,
        "usage": usage,
        "end": end,
        "events": events.len(),
    });
    Ok(json_answer(StatusCode::OK, &facts))
}

/// What happens in a run, from the transition on that a client did not see.
pub(super) async fn listen(
    runs: &Arc<LiveRuns>,
    run: &RunId,
    headers: &HeaderMap,
) -> Result<PageAnswer, Refused> {
    kept(runs, run).await?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.trim().parse::<i64>().ok());
    let from = last.map_or(0, |last| last.saturating_add(1).max(0));
    let stream = Box::pin(events(Arc::clone(runs), run.clone(), from));
    let body = PageBody::Events { stream, only_tells: true };
    Ok(PageAnswer { status: StatusCode::OK, headers: Vec::new(), body })
}

/// Takes a person's word, and goes on with the run.
pub(super) async fn approve(runs: &Arc<LiveRuns>, run: &RunId, body: &str) -> Result<PageAnswer, Refused> {
    let word: Word = read(body)?;
    if word.allow && !runs.approve {
        // Whoever may ask would otherwise decide about it alone.
        let message = "what an agent asks is not allowed here but by the person who runs this hub; it can only be denied";
        return Err(Refused {
            status: StatusCode::FORBIDDEN,
            code: Some("not_yours_to_allow"),
            ..Refused::bad("allow", message)
        });
    }
    let events = kept(runs, run).await?;
    let is_meant = |question: &Question| {
        word.question.is_none_or(|id| question.id == id)
            && word.step.as_deref().is_none_or(|step| question.step.as_deref() == Some(step))
    };
    let meant: Vec<Question> = waiting(runs, run).await?.into_iter().filter(is_meant).collect();
    if meant.is_empty() {
        return Err(Refused::not_found("nothing_waits", format!("run {run} waits for no such word")));
    }
    if meant.len() > 1 {
        let several = format!("run {run} waits for {} words: name the question or the step", meant.len());
        return Err(Refused::bad("several_wait", several));
    }
    for question in &meant {
        answer_question(
            runs.agents.log().as_ref(),
            runs.agents.approvals().as_ref(),
            question.id,
            word.allow,
            "http",
        )
        .await?;
    }
    let name = events.iter().find_map(|news| match news {
        RunNews::Event { event: RunEvent::Asked { ask }, .. } => Some(ask.agent.clone()),
        _ => None,
    });
    runs.go_on(runs.agent(&name.unwrap_or_default())?, run);
    let answered: Vec<i64> = meant.iter().map(|question| question.id).collect();
    Ok(json_answer(StatusCode::ACCEPTED, &json!({"run": run, "answered": answered, "allowed": word.allow})))
}

/// Cancels a run, whoever works on it.
pub(super) async fn stop(runs: &Arc<LiveRuns>, run: &RunId) -> Result<PageAnswer, Refused> {
    kept(runs, run).await?;
    let cancelled = |status| Ok(json_answer(status, &json!({"run": run, "cancelled": true})));
    if let Some(live) = runs.find(run) {
        live.stop.cancel();
        let mut left = live.listen();
        drop(live);
        // It is told when it is over; a run that takes its time goes on ending.
        let ended = async { while !matches!(left.recv().await, Err(RecvError::Closed)) {} };
        if tokio::time::timeout(CANCELLING, ended).await.is_err() {
            return cancelled(StatusCode::ACCEPTED);
        }
        let ends = kept(runs, run).await?;
        if matches!(
            ends.last(),
            Some(RunNews::Event { event: RunEvent::Ended { end: RunEnd::Cancelled }, .. })
        ) {
            return cancelled(StatusCode::OK);
        }
        // It was being laid down already, or over.
    }
    let owner = format!("{}-cancels", runs.agents.owner());
    match cancel(runs.agents.log().as_ref(), run, &owner).await {
        Ok(()) => cancelled(StatusCode::OK),
        Err(AgentError::Journal(JournalError::Held { .. })) => {
            ask_to_stop(runs.agents.approvals().as_ref(), run, "http").await?;
            cancelled(StatusCode::ACCEPTED)
        }
        Err(error) => Err(error.into()),
    }
}

fn read<'a, T: Deserialize<'a>>(body: &'a str) -> Result<T, Refused> {
    serde_json::from_str(body)
        .map_err(|error| Refused::bad("", format!("the body cannot be understood: {error}")))
}

/// Everything that was kept of a run of an agent; a run that is not there is said not to be.
async fn kept(runs: &LiveRuns, run: &RunId) -> Result<Vec<RunNews>, Refused> {
    let events = runs.agents.log().events(run, 0).await;
    let events = events.map_err(|error| Refused::from(AgentError::from(error)))?;
    if events.is_empty() {
        return Err(Refused::not_found("run_not_found", format!("there is no run {run} of an agent")));
    }
    Ok(replay(&events).collect())
}

async fn waiting(runs: &LiveRuns, run: &RunId) -> Result<Vec<Question>, Refused> {
    let all = runs.agents.approvals().of_run(run).await;
    let all = all.map_err(|error| Refused::failed("questions_unreadable", error))?;
    Ok(all.into_iter().filter(|question| question.answer.is_none()).collect())
}
