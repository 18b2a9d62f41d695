//! Runs at the limit of a process, and runs that are started, followed, decided and cancelled at another process of a cluster.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use http::{HeaderMap, Method};
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use toolyard_agent::ApprovalRules;
use toolyard_cluster::testing::{MemoryCluster, MemoryPeers};
use toolyard_core::{
    BoxFuture, CallContext, RunId, RunState, SourceInfo, SourceKind, Tool, ToolCallRequest, ToolError,
    ToolHints, ToolOutput, ToolSpec,
};
use toolyard_hub::{Profile, ToolHub};
use toolyard_mcp_server::{HttpRoutes as _, RouteBody, RouteRequest, RouteResponse};
use toolyard_model::{ModelReply, ScriptedModel, ToolCalling};

use super::{AgentService, RUN_PEER_SERVICE, cluster_owner, testing::TestAgents};
use crate::HttpApi;

/// A tool whose calls last until the gate opens.
struct Hold {
    spec: ToolSpec,
    gate: watch::Receiver<bool>,
}

impl Tool for Hold {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let mut gate = self.gate.clone();
        Box::pin(async move {
            gate.wait_for(|is_open| *is_open).await.unwrap();
            Ok(ToolOutput::text("held"))
        })
    }
}

fn tool(name: &str, gate: &watch::Receiver<bool>) -> Arc<dyn Tool> {
    let spec = ToolSpec::new(name, "Wait for the gate").with_hints(ToolHints::default());
    Arc::new(Hold { spec: spec.without_inferred_capabilities(), gate: gate.clone() })
}

/// Agents that call `hold`, which waits for the gate; and `write`, which needs an approval and does not wait, if the question
/// asks for it.
fn gated_agents() -> (TestAgents, watch::Sender<bool>) {
    let (sender, gate) = watch::channel(false);
    let (_, open) = watch::channel(true);
    let mut agents = TestAgents::in_memory();
    let hub = ToolHub::default();
    // Of two sources, so that the calls do not wait for each other.
    for (name, gate) in [("hold", &gate), ("write", &open)] {
        hub.register(SourceInfo::new(name, SourceKind::Mcp).trusted(true), vec![tool(name, gate)]);
    }
    agents.parts.hub = Arc::new(hub);
    agents.parts.rules = ApprovalRules { allow: vec!["hold".to_owned()], ..ApprovalRules::default() };
    agents.parts.model = Arc::new(ScriptedModel::new(ToolCalling::Schema, |request| {
        let text: String = request.messages.iter().map(|message| message.text.as_str()).collect();
        let step = |name: &str| json!({"id": name, "tool_type": name, "arguments": {}, "dependencies": [], "description": name});
        let mut steps = vec![step("hold")];
        if text.contains("and write") {
            steps.push(step("write"));
        }
        let plan = json!({"steps": steps}).to_string();
        let reply = if request.schema.is_some() { plan } else { "All is done.".to_owned() };
        Ok(ModelReply { text: reply, ..ModelReply::default() })
    }));
    (agents, sender)
}

/// A process with its HTTP API.
struct Process {
    service: AgentService,
    api: HttpApi,
    owner: String,
}

impl Process {
    fn start(agents: &TestAgents, owner: &str) -> Self {
        let agents = agents.in_process(owner);
        let service = agents.service_with(Profile::default(), true);
        tokio::spawn(service.orphan_adopter().run(drop));
        Self { api: HttpApi::of_agents(service.clone()), service, owner: owner.to_owned() }
    }

    /// A process of a cluster, which executes so many runs at once.
    fn join(
        agents: &TestAgents,
        cluster: &MemoryCluster,
        number: u64,
        max_runs: usize,
    ) -> (Self, Arc<MemoryPeers>) {
        let peers = cluster.join(number);
        let mut agents = agents.clone();
        agents.max_runs = max_runs;
        agents.peers = Some(Arc::clone(&peers) as _);
        let process = Self::start(&agents, &cluster_owner("process", number));
        peers.serve(RUN_PEER_SERVICE, process.service.peer_service());
        (process, peers)
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> RouteResponse {
        let request = RouteRequest {
            method,
            path: path.to_owned(),
            query: String::new(),
            identity: Arc::default(),
            headers: HeaderMap::new(),
            body: body.to_string(),
        };
        self.api.handle(request).await
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let response = self.send(Method::POST, path, body).await;
        let RouteBody::Json(text) = response.body else { panic!("no JSON") };
        (response.status.as_u16(), serde_json::from_slice(&text).unwrap())
    }

    async fn start_run(&self, question: &str) -> RunId {
        let (status, started) = self.post("/runs", &json!({"question": question})).await;
        assert_eq!(status, 202, "{started}");
        started["run"].as_str().unwrap().into()
    }
}

/// Waits until a process drives the run; returns its name and how long that took.
async fn driver(agents: &TestAgents, run: &RunId) -> (String, Duration) {
    let began = Instant::now();
    let waiting = async {
        loop {
            let record = agents.log().run(run).await.unwrap();
            if record.leased && record.fence > 1 {
                return record.owner.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let owner = timeout(Duration::from_mins(1), waiting).await.expect("nobody drives the run");
    (owner, began.elapsed())
}

async fn wait_for_state(agents: &TestAgents, run: &RunId, state: RunState) {
    let waiting = async {
        while agents.log().run(run).await.unwrap().state != state {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_mins(1), waiting).await.expect("the run does not end");
}

#[tokio::test(start_paused = true)]
async fn a_run_beyond_the_limit_waits_until_another_one_ends() {
    let (mut agents, gate) = gated_agents();
    agents.max_runs = 1;
    let process = Process::start(&agents, "only");
    let first = process.start_run("hold").await;
    driver(&agents, &first).await;
    let waiting = process.start_run("hold").await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let record = agents.log().run(&waiting).await.unwrap();
    assert_eq!((record.state, record.owner), (RunState::Open, None), "it waits");
    gate.send_replace(true);
    let ended = Instant::now();
    wait_for_state(&agents, &first, RunState::Done).await;
    wait_for_state(&agents, &waiting, RunState::Done).await;
    assert!(ended.elapsed() < Duration::from_secs(1), "it starts at once: {:?}", ended.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_process_of_the_cluster_with_capacity_takes_a_queued_run_at_once() {
    let (agents, gate) = gated_agents();
    let cluster = MemoryCluster::new();
    let (full, _peers) = Process::join(&agents, &cluster, 1, 1);
    let (also_full, _more_peers) = Process::join(&agents, &cluster, 2, 0);
    let (free, _other_peers) = Process::join(&agents, &cluster, 3, 2);
    let first = full.start_run("hold").await;
    assert_eq!(driver(&agents, &first).await.0, full.owner);
    for process in [&full, &also_full] {
        let run = process.start_run("hold").await;
        let (owner, delay) = driver(&agents, &run).await;
        assert_eq!(owner, free.owner);
        assert!(delay < Duration::from_millis(500), "{delay:?}");
    }
    let waiting = full.start_run("hold").await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(!agents.log().run(&waiting).await.unwrap().leased, "all are at their limit");
    gate.send_replace(true);
    wait_for_state(&agents, &waiting, RunState::Done).await;
}

#[tokio::test(start_paused = true)]
async fn a_queued_run_is_found_without_a_notice() {
    let (agents, _gate) = gated_agents();
    let cluster = MemoryCluster::new();
    let (full, _peers) = Process::join(&agents, &cluster, 1, 0);
    // Of no cluster, so that it gets no notice.
    let free = Process::start(&agents, "free");
    let run = full.start_run("hold").await;
    let (owner, delay) = driver(&agents, &run).await;
    assert_eq!(owner, free.owner);
    assert!(delay < Duration::from_secs(5), "{delay:?}");
}

#[tokio::test(start_paused = true)]
async fn a_run_is_followed_live_at_another_process() {
    let (agents, gate) = gated_agents();
    let cluster = MemoryCluster::new();
    let (driving, _peers) = Process::join(&agents, &cluster, 1, 9);
    let (other, _other_peers) = Process::join(&agents, &cluster, 2, 9);
    let run = driving.start_run("hold").await;
    driver(&agents, &run).await;
    let names = async |process: &Process| {
        let response = process.send(Method::GET, &format!("/runs/{run}/events"), &json!({})).await;
        let RouteBody::Events { stream, .. } = response.body else { panic!("no stream") };
        let text = String::from_utf8(stream.collect::<Vec<_>>().await.concat()).unwrap();
        let names = text.lines().filter_map(|line| line.strip_prefix("event: "));
        names.map(str::to_owned).collect::<Vec<String>>()
    };
    let opened = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        gate.send_replace(true);
    };
    let (here, elsewhere, ()) = tokio::join!(names(&driving), names(&other), opened);
    assert!(here.iter().any(|name| name == "answer_delta"), "{here:?}");
    assert_eq!(here, elsewhere, "both see the same, also what is not logged");
}

#[tokio::test(start_paused = true)]
async fn a_run_is_cancelled_through_another_process_without_waiting_for_its_heartbeat() {
    let (agents, _gate) = gated_agents();
    let cluster = MemoryCluster::new();
    let (driving, _peers) = Process::join(&agents, &cluster, 1, 9);
    let (other, _other_peers) = Process::join(&agents, &cluster, 2, 9);
    let run = driving.start_run("hold").await;
    driver(&agents, &run).await;
    let began = Instant::now();
    let (status, answer) = other.post(&format!("/runs/{run}/cancel"), &json!({})).await;
    assert_eq!((status, &answer["cancelled"]), (200, &json!(true)));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    wait_for_state(&agents, &run, RunState::Cancelled).await;
}

#[tokio::test(start_paused = true)]
async fn an_approval_at_another_process_reaches_the_one_that_drives_the_run() {
    let (agents, gate) = gated_agents();
    let cluster = MemoryCluster::new();
    let (driving, _peers) = Process::join(&agents, &cluster, 1, 9);
    let (other, _other_peers) = Process::join(&agents, &cluster, 2, 9);
    let run = driving.start_run("hold and write").await;
    let approvals = &agents.parts.approvals;
    let pending = async {
        loop {
            if let Some(pending) = approvals.pending_approvals().await.unwrap().first() {
                return pending.id;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let approval = timeout(Duration::from_secs(5), pending).await.expect("no approval is requested");
    let (status, decided) =
        other.post(&format!("/api/v1/approvals/{approval}"), &json!({"allow": true})).await;
    assert_eq!(status, 202, "{decided}");
    let began = Instant::now();
    let written = async {
        loop {
            let steps = agents.log().steps(&run).await.unwrap();
            if steps.iter().any(|step| step.tool == "write" && step.ended_at.is_some()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_mins(1), written).await.expect("the approved call is not made");
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(driver(&agents, &run).await.0, driving.owner, "the run stays where it is");
    gate.send_replace(true);
    wait_for_state(&agents, &run, RunState::Done).await;
}
