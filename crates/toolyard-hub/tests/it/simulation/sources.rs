//! Simulated sources: tools that behave by the plan and record in a ledger what they receive.

use std::{collections::BTreeMap, future::pending, panic::resume_unwind, sync::Arc, time::Duration};

use fastrand::Rng;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep};
use toolyard_core::{
    BoxFuture, CallContext, ErrorKind, SourceInfo, SourceKind, SourceSignal, Tool, ToolCallRequest,
    ToolError, ToolHints, ToolOutput, ToolSpec,
};

use super::plan::{DeclaredHint, Definition, Mode, Parameters, Plan, SourcePlan, ToolPlan};

/// One call as a tool received it.
#[derive(Debug)]
pub(crate) struct LedgerEntry {
    /// The number of the call, from its arguments.
    pub(crate) call: usize,
    pub(crate) source: usize,
    pub(crate) version: u64,
    pub(crate) tool: String,
    pub(crate) begun_at: u64,
    /// When it ended or was dropped.
    pub(crate) ended_at: Option<u64>,
    /// Whether the server received the call, and so executes it, whatever happens to the response.
    pub(crate) is_executed: bool,
    pub(crate) ending: Ending,
}

/// How one call of a tool ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Answered,
    /// The tool reported a failure.
    Failed,
    NotSent,
    RateLimited(Duration),
    /// No response, or a panic. Also the state until the call ends.
    Lost,
}

/// What sources, callers and checks share.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) plan: Plan,
    started: Instant,
    state: Mutex<WorldState>,
}

#[derive(Debug)]
struct WorldState {
    rng: Rng,
    /// What happened, in order. Equal for equal seeds.
    log: Vec<String>,
    ledger: Vec<LedgerEntry>,
    /// The phase in which a source, or one of its tools if it is native, answered last.
    answered_in: BTreeMap<HealthKey, usize>,
    /// How often each source was removed: a source that is registered again has a new circuit breaker.
    removals: Vec<u64>,
}

/// What has a circuit breaker of its own: source, removals of the source, and tool if the source is native.
type HealthKey = (usize, u64, String);

impl World {
    pub(crate) fn new(plan: Plan) -> Self {
        let state = WorldState {
            rng: Rng::with_seed(plan.seed),
            log: Vec::new(),
            ledger: Vec::new(),
            answered_in: BTreeMap::new(),
            removals: vec![0; plan.sources.len()],
        };
        Self { plan, started: Instant::now(), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, WorldState> {
        self.state.lock()
    }

    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap()
    }

    pub(crate) async fn sleep_until(&self, milliseconds: u64) {
        tokio::time::sleep_until(self.started + Duration::from_millis(milliseconds)).await;
    }

    pub(crate) fn note(&self, event: &str) {
        let line = format!("{:>6} {event}", self.now());
        self.state().log.push(line);
    }

    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.state().log)
    }

    pub(crate) fn take_ledger(&self) -> Vec<LedgerEntry> {
        std::mem::take(&mut self.state().ledger)
    }

    /// Whether calls of the tool must succeed from now on, while the source is in its present phase: it is healthy, and since it
    /// became so it has answered a call, which closed its circuit.
    pub(crate) fn is_proven_healthy(&self, source: usize, tool: &str) -> bool {
        let (phase, mode) = self.plan.sources[source].phase_at(self.now());
        let health_key = self.health_key(source, self.removals(source), tool);
        mode == Mode::Healthy && self.state().answered_in.get(&health_key) == Some(&phase)
    }

    pub(crate) fn count_removal(&self, source: usize) {
        self.state().removals[source] += 1;
    }

    fn removals(&self, source: usize) -> u64 {
        self.state().removals[source]
    }

    fn health_key(&self, source: usize, removals: u64, tool: &str) -> HealthKey {
        let is_native = self.plan.sources[source].kind == SourceKind::Native;
        (source, removals, if is_native { tool.to_owned() } else { String::new() })
    }

    fn random(&self, range: std::ops::Range<u64>) -> u64 {
        self.state().rng.u64(range)
    }

    async fn pause(&self, milliseconds: std::ops::Range<u64>) {
        let pause = self.random(milliseconds);
        sleep(Duration::from_millis(pause)).await;
    }
}

/// The source as the hub registers it.
pub(crate) fn hub_source(
    world: &Arc<World>,
    source: usize,
    version: u64,
    definition: &Definition,
) -> (SourceInfo, Vec<Arc<dyn Tool>>) {
    let removals = world.removals(source);
    let SourcePlan { id, kind, exclusive, .. } = &world.plan.sources[source];
    let info = SourceInfo::new(id.as_str(), *kind).trusted(definition.trusted).exclusive(*exclusive);
    let tool = |plan: &ToolPlan| -> Arc<dyn Tool> {
        Arc::new(SimulatedTool { spec: spec(plan), source, version, removals, world: Arc::clone(world) })
    };
    (info, definition.tools.iter().map(tool).collect())
}

fn spec(plan: &ToolPlan) -> ToolSpec {
    let hints = match plan.hint {
        DeclaredHint::Nothing => ToolHints::default(),
        DeclaredHint::ReadOnly => ToolHints::READ_ONLY,
        DeclaredHint::Idempotent => ToolHints::IDEMPOTENT,
        DeclaredHint::Destructive => ToolHints { destructive: Some(true), ..ToolHints::default() },
    };
    let spec = ToolSpec::new(plan.name.as_str(), "").with_hints(hints);
    let requires = |name: &str| serde_json::json!({"type": "object", "properties": {name: {"type": "integer"}}, "required": [name]});
    match plan.parameters {
        Parameters::Any => spec,
        Parameters::RequiresId => spec.with_input_schema(requires("call")),
        Parameters::RejectsAll => spec.with_input_schema(requires("folder")),
    }
}

/// The name of a call in arguments and answers.
pub(crate) fn call_name(number: usize) -> String {
    format!("call-{number}")
}

struct SimulatedTool {
    spec: ToolSpec,
    source: usize,
    version: u64,
    removals: u64,
    world: Arc<World>,
}

/// A call that a tool has received; recorded as ended when dropped.
struct ReceivedCall<'a> {
    tool: &'a SimulatedTool,
    call: usize,
    index: usize,
}

impl<'a> ReceivedCall<'a> {
    fn new(tool: &'a SimulatedTool, request: &ToolCallRequest, context: &CallContext, mode: Mode) -> Self {
        let call = request.arguments.to_value()["call"]
            .as_u64()
            .and_then(|call| usize::try_from(call).ok())
            .unwrap();
        let world = &tool.world;
        let (id, version, name) = (&world.plan.sources[tool.source].id, tool.version, &*tool.spec.name);
        world.note(&format!(
            "{name}@{id} v{version} receives call-{call}, attempt {}: {mode:?}",
            context.attempt
        ));
        let begun_at = world.now();
        let mut state = world.state();
        state.ledger.push(LedgerEntry {
            call,
            source: tool.source,
            version,
            tool: name.to_owned(),
            begun_at,
            ended_at: None,
            is_executed: false,
            ending: Ending::Lost,
        });
        Self { tool, call, index: state.ledger.len() - 1 }
    }

    fn change(&self, change: impl FnOnce(&mut LedgerEntry)) {
        change(&mut self.tool.world.state().ledger[self.index]);
    }

    fn execute(&self) {
        self.change(|entry| entry.is_executed = true);
    }

    fn answer(&self) -> ToolOutput {
        self.change(|entry| entry.ending = Ending::Answered);
        let (world, source, name) = (&self.tool.world, self.tool.source, &self.tool.spec.name);
        let (phase, _) = world.plan.sources[source].phase_at(world.now());
        let health_key = world.health_key(source, self.tool.removals, name);
        world.state().answered_in.insert(health_key, phase);
        ToolOutput::text(format!("{} {name} v{}", call_name(self.call), self.tool.version))
    }

    fn fail(&self, ending: Ending, error: ToolError) -> ToolError {
        self.change(|entry| entry.ending = ending);
        error
    }

    async fn behave(&self, mode: Mode) -> Result<ToolOutput, ToolError> {
        let world = &self.tool.world;
        if !matches!(mode, Mode::NotSent | Mode::RateLimited | Mode::Down) {
            self.execute();
        }
        let unavailable = || ToolError::new(ErrorKind::Unavailable, "cannot reach the server");
        match mode {
            Mode::Healthy | Mode::Flaky => {
                world.pause(1..80).await;
                Ok(self.answer())
            }
            Mode::Slow => {
                world.pause(400..6_000).await;
                Ok(self.answer())
            }
            Mode::Hanging => pending().await,
            Mode::NotSent => {
                world.pause(0..20).await;
                Err(self.fail(Ending::NotSent, unavailable().mark_never_sent()))
            }
            Mode::Down => {
                world.pause(500..2_000).await;
                Err(self.fail(Ending::NotSent, unavailable().mark_never_sent()))
            }
            Mode::Failing => {
                world.pause(1..80).await;
                Err(self.fail(Ending::Failed, ToolError::failed("no such note")))
            }
            Mode::LosingResponses => {
                world.pause(1..800).await;
                let kind = if world.random(0..2) == 0 { ErrorKind::ResponseLost } else { ErrorKind::Timeout };
                Err(ToolError::new(kind, "the connection broke"))
            }
            Mode::Panicking => {
                world.pause(0..80).await;
                scripted_panic()
            }
            Mode::RateLimited => {
                world.pause(1..20).await;
                let delay = Duration::from_millis(world.random(100..3_000));
                let error = unavailable().with_source_signal(SourceSignal::Healthy).with_retry_after(delay);
                Err(self.fail(Ending::RateLimited(delay), error))
            }
        }
    }
}

impl Drop for ReceivedCall<'_> {
    fn drop(&mut self) {
        let (id, now) = (&self.tool.world.plan.sources[self.tool.source].id, self.tool.world.now());
        let mut ending = Ending::Lost;
        self.change(|entry| {
            entry.ended_at = Some(now);
            ending = entry.ending;
        });
        self.tool.world.note(&format!("{}@{id} ends call-{}: {ending:?}", self.tool.spec.name, self.call));
    }
}

/// Panics without a message on stderr.
fn scripted_panic() -> ! {
    resume_unwind(Box::new("as planned"))
}

impl Tool for SimulatedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let mode = match self.world.plan.sources[self.source].phase_at(self.world.now()).1 {
            Mode::Flaky => {
                // The last fault is `Flaky`, whose place `Healthy` takes.
                let index = usize::try_from(self.world.random(0..Mode::FAULTS.len() as u64)).unwrap();
                Some(Mode::FAULTS[index]).filter(|mode| *mode != Mode::Flaky).unwrap_or(Mode::Healthy)
            }
            mode => mode,
        };
        let received = ReceivedCall::new(self, request, context, mode);
        if mode == Mode::Panicking && self.world.random(0..4) == 0 {
            // Before there is a future.
            received.execute();
            scripted_panic();
        }
        Box::pin(async move { received.behave(mode).await })
    }
}
