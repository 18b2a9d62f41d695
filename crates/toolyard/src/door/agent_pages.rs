//! Agents over HTTP: `/v1` for clients of OpenAI's, where a model's name is an agent's, and `/runs`.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};
use toolyard_agent::Ask;
use toolyard_core::{BoxFuture, ContentHash, RunId};
use toolyard_mcp::server::{PageAnswer, PageBody, PageRequest, Pages};

use super::{
    live_runs::{AgentDoor, LiveRuns},
    openai::{Answering, Completion},
    openai_stream::Waited,
    page_answer::{Refused, json_answer},
    run_pages,
};

/// So many requests are remembered, to know those that a client repeats by itself.
const REMEMBERED: usize = 1_000;

/// Serves agents and their runs.
pub struct AgentPages {
    runs: Arc<LiveRuns>,
    /// Which request began which run.
    begun: Mutex<VecDeque<(ContentHash, RunId)>>,
}

impl AgentPages {
    /// Serves what is behind a door.
    pub fn new(door: AgentDoor) -> Self {
        Self { runs: door.0, begun: Mutex::default() }
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
            (&Method::POST, ["runs"]) => run_pages::begin(runs, body).await,
            (&Method::GET, ["runs", _]) => run_pages::show(runs, &run()).await,
            (&Method::GET, ["runs", _, "events"]) => run_pages::listen(runs, &run(), &request.headers).await,
            (&Method::POST, ["runs", _, "approve"]) => run_pages::approve(runs, &run(), body).await,
            (&Method::POST, ["runs", _, "cancel"]) => run_pages::stop(runs, &run()).await,
            _ => Err(not_here(method, &places)),
        }
    }

    async fn complete(&self, headers: &HeaderMap, body: &str) -> Result<PageAnswer, Refused> {
        let wanted = Completion::read(body)?;
        let agent = self.runs.agent(&wanted.agent)?;
        let hash = ContentHash::of(body);
        self.check_repetition(headers, hash)?;
        let ask = Ask {
            history: wanted.history,
            who: "http".to_owned(),
            ..self.runs.agents.question(&wanted.agent, wanted.question)
        };
        let run = agent.begin(ask).await?;
        self.remember(hash, run.clone());
        let (live, hearing) = self.runs.go_on_heard(agent, &run);
        let waited = Waited { hearing, stop: live.stop };
        let answering = Answering { run, agent: wanted.agent, created: seconds() };
        if !wanted.stream {
            return Ok(json_answer(StatusCode::OK, &waited.whole(&answering).await?));
        }
        let stream = Box::pin(waited.events(answering, wanted.include_usage));
        let headers =
            vec![(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"))];
        let body = PageBody::Events { stream, only_tells: false };
        Ok(PageAnswer { status: StatusCode::OK, headers, body })
    }

    /// A request that a client repeats by itself, because its connection broke, must not do everything once more.
    fn check_repetition(&self, headers: &HeaderMap, hash: ContentHash) -> Result<(), Refused> {
        let count =
            headers.get("x-stainless-retry-count").and_then(|count| count.to_str().ok()?.parse().ok());
        if count.unwrap_or(0_u32) == 0 {
            return Ok(());
        }
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        match begun.iter().rev().find(|(known, _)| *known == hash) {
            Some((_, run)) => {
                let message = format!(
                    "this request was made before and is not carried out again by itself; see what became of it: GET /runs/{run}"
                );
                Err(Refused::failed("already_begun", message))
            }
            None => Ok(()),
        }
    }

    fn remember(&self, hash: ContentHash, run: RunId) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        if begun.len() >= REMEMBERED {
            begun.pop_front();
        }
        begun.push_back((hash, run));
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

fn not_here(method: &Method, places: &[&str]) -> Refused {
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
    let there = "there are POST /v1/chat/completions, GET /v1/models, POST /runs, GET /runs/ID, GET /runs/ID/events, \
                 POST /runs/ID/approve and POST /runs/ID/cancel";
    Refused::not_found("not_here", format!("nothing is here; {there}"))
}

fn seconds() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_secs()).unwrap_or(0)
}
