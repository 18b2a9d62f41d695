//! Agents over HTTP: `/v1` for clients of OpenAI's, where a model's name is an agent's, and `/runs`.

use std::{
    collections::HashSet,
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};
use toolyard_agent::{Ask, RunEnd};
use toolyard_core::{BoxFuture, RunId};
use toolyard_mcp::server::{PageAnswer, PageBody, PageRequest, Pages};
use toolyard_model::{ModelMessage, Role};

use super::{
    begun::{Begun, Known, Request, already_begun},
    live_runs::{AgentDoor, LiveRuns},
    openai::{Answering, Completion, run_waited_for},
    openai_stream::{Waited, told_again},
    page_answer::{Refused, json_answer},
    run_pages,
};

/// So many runs that somebody was told to wait for are looked at again.
const MOST_SETTLED: usize = 20;

/// Serves agents and their runs.
pub struct AgentPages {
    runs: Arc<LiveRuns>,
    begun: Begun,
}

impl AgentPages {
    /// Serves what is behind a door.
    pub fn new(door: AgentDoor) -> Self {
        Self { runs: door.0, begun: Begun::default() }
    }

    async fn route(&self, request: PageRequest) -> Result<PageAnswer, Refused> {
        let (runs, method, body) = (&self.runs, &request.method, request.body.as_str());
        let places: Vec<&str> = request.path.trim_matches('/').split('/').collect();
        let run = || RunId::from(places.get(1).copied().unwrap_or_default());
        match (method, places.as_slice()) {
            (&Method::POST, ["v1", "chat", "completions"]) => self.complete(&request.headers, body).await,
            (&Method::GET, ["v1", "models"]) => Ok(json_answer(StatusCode::OK, &self.models())),
            (&Method::GET, ["v1", "models", name]) => {
                runs.agents.config(name)?;
                Ok(json_answer(StatusCode::OK, &model(name)))
            }
            (&Method::POST, ["runs"]) => run_pages::begin(runs, &self.begun, &request.headers, body).await,
            (&Method::GET, ["runs", _]) => run_pages::show(runs, &run()).await,
            (&Method::GET, ["runs", _, "events"]) => run_pages::listen(runs, &run(), &request.headers).await,
            (&Method::POST, ["runs", _, "approve"]) => run_pages::approve(runs, &run(), body).await,
            (&Method::POST, ["runs", _, "cancel"]) => run_pages::stop(runs, &run()).await,
            _ => Err(not_here(method, &places, runs.approve)),
        }
    }

    async fn complete(&self, headers: &HeaderMap, body: &str) -> Result<PageAnswer, Refused> {
        let wanted = Completion::read(body)?;
        let agent = self.runs.agent(&wanted.agent)?;
        let request = Request::read("/v1/chat/completions", headers, body)?;
        let begins = match self.begun.look(request, self.runs.agents.log().as_ref()).await? {
            Known::New(begins) => begins,
            Known::Same(run) => return self.told_again(&wanted, run).await,
        };
        let ask = Ask {
            history: self.settled(wanted.history).await,
            who: "http".to_owned(),
            ..self.runs.agents.question(&wanted.agent, wanted.question)
        };
        let (run, waited) = self
            .runs
            .begin(agent, ask, Some(begins), |runs, agent, run| {
                let (live, hearing) = runs.go_on_heard(agent, &run);
                (run, Waited { hearing, stop: live.stop })
            })
            .await?;
        let answering = Answering { run, agent: wanted.agent, created: seconds() };
        if !wanted.stream {
            return Ok(json_answer(StatusCode::OK, &waited.whole(&answering).await?));
        }
        Ok(streamed(waited.events(answering, wanted.include_usage)))
    }

    /// What became of a run that was begun by the same request; nothing is done once more.
    async fn told_again(&self, wanted: &Completion, run: RunId) -> Result<PageAnswer, Refused> {
        let Some((end, usage)) = run_pages::outcome(&self.runs, &run).await? else {
            return Err(already_begun(&run));
        };
        let answering = Answering { run, agent: wanted.agent.clone(), created: seconds() };
        if wanted.stream {
            return Ok(streamed(told_again(answering, wanted.include_usage, usage, end)));
        }
        Ok(json_answer(StatusCode::OK, &answering.whole(&end, usage)?))
    }

    /// What was said before. Where all we said is that a run waits, its answer stands if there is one by now. Only the
    /// latest such runs are looked at, each once: whoever asks writes the history.
    async fn settled(&self, history: Vec<ModelMessage>) -> Vec<ModelMessage> {
        let (mut settled, mut seen) = (Vec::with_capacity(history.len()), HashSet::new());
        for message in history.into_iter().rev() {
            let waited = match message.role {
                Role::Assistant => run_waited_for(&message.text),
                _ => None,
            };
            let Some(run) = waited else {
                settled.push(message);
                continue;
            };
            if seen.len() >= MOST_SETTLED || !seen.insert(run.clone()) {
                continue;
            }
            if let Ok(Some((RunEnd::Answered { answer, .. }, _))) = run_pages::outcome(&self.runs, &run).await
            {
                settled.push(ModelMessage::new(Role::Assistant, answer));
            }
        }
        settled.reverse();
        settled
    }

    fn models(&self) -> Value {
        let names = self.runs.agents.names();
        json!({"object": "list", "data": names.iter().map(|name| model(name)).collect::<Vec<_>>()})
    }
}

impl fmt::Debug for AgentPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentPages").finish_non_exhaustive()
    }
}

impl Pages for AgentPages {
    fn has(&self, path: &str) -> bool {
        ["/v1", "/runs"].iter().any(|place| {
            path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    fn answer(&self, request: PageRequest) -> BoxFuture<'_, PageAnswer> {
        Box::pin(async move { self.route(request).await.unwrap_or_else(PageAnswer::from) })
    }
}

/// An agent as a client of OpenAI's lists it.
fn model(name: &str) -> Value {
    json!({"id": name, "object": "model", "created": 0, "owned_by": "toolyard"})
}

fn streamed(stream: impl futures_util::Stream<Item = bytes::Bytes> + Send + 'static) -> PageAnswer {
    let headers = vec![(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"))];
    let body = PageBody::Events { stream: Box::pin(stream), only_tells: false };
    PageAnswer { status: StatusCode::OK, headers, body }
}

fn not_here(method: &Method, places: &[&str], approve: bool) -> Refused {
    let known = matches!(
        places,
        ["v1", "chat", "completions"]
            | ["v1", "models"]
            | ["runs"]
            | ["runs", _]
            | ["runs", _, "events" | "approve" | "cancel"]
    );
    if known {
        let message = format!("{method} is not for this address");
        return Refused { status: StatusCode::METHOD_NOT_ALLOWED, ..Refused::bad("", message) };
    }
    let there =
        "there are POST /v1/chat/completions, GET /v1/models, POST /runs, GET /runs/ID, GET /runs/ID/events";
    let words = if approve { "" } else { " (to say no)" };
    Refused::not_found(
        "not_here",
        format!("nothing is here; {there}, POST /runs/ID/approve{words} and POST /runs/ID/cancel"),
    )
}

fn seconds() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_secs()).unwrap_or(0)
}

#[cfg(test)]
#[path = "agent_pages_tests.rs"]
mod tests;
