//! What happens to the hub: callers make calls and cancel some of them, the operator changes sources and settings.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;
use toolyard_core::{CallerIdentity, CapabilityTable, SourceId, ToolCallRequest, ToolError, ToolOutput};
use toolyard_hub::{
    CallOptions, DecisionLog, HubConfig, HubSettings, OutputLimits, PendingEffect, RetryPolicy, ToolHub,
};

use super::{
    plan::{CallPlan, Change, MAX_TIMEOUT_MS, Mode, Plan, RECOVERY_AT_MS},
    routing_model::{ExpectedRoute, RoutingModel, hub_rules},
    sources::{World, call_name, hub_source},
};

/// The time between two calls that wait for the recovery of a source.
const PROBE_INTERVAL_MS: u64 = 250;
const PROBE_TIMEOUT_MS: u64 = 1_000;
/// Calls that must succeed after a source has recovered.
const CALLS_AFTER_RECOVERY: usize = 2;
/// Numbers of calls from here on are calls of this kind.
const FIRST_PROBE_NUMBER: usize = 10_000;
const MAX_PROBES_PER_SOURCE: usize = 100;

/// One call: what was to be expected when it began, and how it ended.
#[derive(Debug)]
pub(crate) struct FinishedCall {
    pub(crate) plan: CallPlan,
    pub(crate) route: ExpectedRoute,
    pub(crate) retry: RetryPolicy,
    /// The sources whose calls must succeed, and those that send nothing, as long as their phases do not change; by candidate.
    pub(crate) expectations: Vec<Expectation>,
    pub(crate) begun_at: u64,
    pub(crate) ended_at: u64,
    /// Whether a call with effects was running when it ended.
    pub(crate) is_effect_pending: bool,
    pub(crate) outcome: Outcome,
}

/// What a candidate does during a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expectation {
    Answers,
    FailsBeforeSending,
    Anything,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Output(ToolOutput),
    Error(ToolError),
    Cancelled,
}

/// The hub, and the model of what is registered in it.
pub(crate) struct Simulation {
    pub(crate) world: Arc<World>,
    hub: ToolHub,
    routing: parking_lot::Mutex<(RoutingModel, RetryPolicy)>,
    /// Whether the log has the decisions of the hub.
    explains: bool,
}

impl Simulation {
    pub(crate) fn new(plan: Plan, explains: bool) -> Self {
        let config = HubConfig {
            rules: hub_rules(&plan, &plan.rules),
            retry: plan.retry,
            breaker: plan.breaker,
            ..HubConfig::default()
        };
        let routing = parking_lot::Mutex::new((RoutingModel::new(&plan), plan.retry));
        Self { hub: ToolHub::new(config), world: Arc::new(World::new(plan)), routing, explains }
    }

    /// Makes all changes of the plan in time.
    pub(crate) async fn make_changes(&self) {
        for (at, change) in &self.world.plan.changes {
            self.world.sleep_until(*at).await;
            self.make_change(change);
        }
    }

    /// Changes hub and model at once, because nothing is awaited.
    fn make_change(&self, change: &Change) {
        let (world, plan) = (&self.world, &self.world.plan);
        let id = |source: &usize| SourceId::from(plan.sources[*source].id.as_str());
        let mut routing = self.routing.lock();
        match change {
            Change::Register(source, definition) => {
                let version = routing.0.register(*source, definition.clone());
                let (info, tools) = hub_source(world, *source, version, definition);
                world.note(&format!("register {} v{version}: {definition:?}", info.id));
                let registration = self.hub.register(info, tools);
                assert_eq!(registration.tools, definition.tools.len());
            }
            Change::Remove(source) => {
                world.note(&format!("remove {}", id(source)));
                assert_eq!(self.hub.remove(&id(source)), routing.0.remove(*source));
                world.count_removal(*source);
            }
            Change::ReportReady(source) => {
                world.note(&format!("{} reports that it is ready", id(source)));
                self.hub.report_ready(&id(source));
            }
            Change::Reconfigure(rules, retry) => {
                world.note(&format!("reconfigure: {rules:?}, {retry:?}"));
                routing.0.set_rules(rules);
                routing.1 = *retry;
                self.hub.reconfigure(HubSettings {
                    rules: hub_rules(plan, rules),
                    capabilities: CapabilityTable::built_in().clone(),
                    limits: OutputLimits::default(),
                    retry: *retry,
                    synthesizer: None,
                });
            }
        }
    }

    pub(crate) async fn call(&self, plan: CallPlan) -> FinishedCall {
        let world = &self.world;
        world.sleep_until(plan.at).await;
        let source = plan.source.map(|source| world.plan.sources[source].id.clone());
        let request = ToolCallRequest {
            id: call_name(plan.number),
            tool_name: plan.tool.clone(),
            arguments: serde_json::json!({"call": plan.number}).into(),
            source,
        };
        let pending_effect = Arc::new(PendingEffect::default());
        let decisions = self.explains.then(Arc::<DecisionLog>::default);
        let mut options = options(&plan).with_pending_effect(Arc::clone(&pending_effect));
        options.decision_log.clone_from(&decisions);
        let (route, retry) = {
            let routing = self.routing.lock();
            (routing.0.route(&plan.tool, plan.source), routing.1)
        };
        let expectations = self.expectations(&plan.tool, &route);
        let begun_at = world.now();
        let CallPlan { number, caller, tool, timeout: limit, .. } = &plan;
        let at_source = request.source.as_deref().unwrap_or("any source");
        world.note(&format!("call-{number} begins: {tool} at {at_source}, caller {caller}, {limit} ms"));
        // Nothing is awaited since the route was determined, so the hub sees the same sources.
        let execution = self.hub.execute(&request, &options);
        let outcome = match plan.cancel_after {
            None => Some(execution.await),
            Some(delay) => timeout(Duration::from_millis(delay), execution).await.ok(),
        };
        let outcome = match outcome {
            None => Outcome::Cancelled,
            Some(Ok(output)) => Outcome::Output(output),
            Some(Err(error)) => Outcome::Error(error),
        };
        for decision in decisions.iter().flat_map(|decisions| decisions.decisions()) {
            world.note(&format!("call-{}   {decision:?}", plan.number));
        }
        world.note(&format!("call-{} ends: {}", plan.number, describe(&outcome)));
        let (ended_at, is_effect_pending) = (world.now(), pending_effect.is_pending());
        FinishedCall { plan, route, retry, expectations, begun_at, ended_at, is_effect_pending, outcome }
    }

    fn expectations(&self, tool: &str, route: &ExpectedRoute) -> Vec<Expectation> {
        let expectation = |source: usize| {
            let plan = &self.world.plan.sources[source];
            match plan.phase_at(self.world.now()).1 {
                // A call may wait for others at an exclusive source.
                _ if plan.exclusive => Expectation::Anything,
                Mode::NotSent => Expectation::FailsBeforeSending,
                _ if self.world.is_proven_healthy(source, tool) => Expectation::Answers,
                _ => Expectation::Anything,
            }
        };
        route.candidates.iter().map(|candidate| expectation(candidate.source)).collect()
    }

    /// Calls a source after its recovery until it answers, and a few times more. Returns the calls.
    pub(crate) async fn call_after_recovery(&self, source: usize) -> Vec<FinishedCall> {
        let (mut calls, mut at) = (Vec::new(), RECOVERY_AT_MS + 1);
        let mut answers = 0;
        while answers <= CALLS_AFTER_RECOVERY && calls.len() < MAX_PROBES_PER_SOURCE {
            let plan = CallPlan {
                number: FIRST_PROBE_NUMBER + source * MAX_PROBES_PER_SOURCE + calls.len(),
                at,
                caller: source % super::plan::CALLERS,
                tool: self.world.plan.sources[source].probe_tool(),
                source: None,
                timeout: PROBE_TIMEOUT_MS,
                cancel_after: None,
            };
            let call = self.call(plan).await;
            answers += usize::from(matches!(call.outcome, Outcome::Output(_)));
            calls.push(call);
            at = self.world.now() + PROBE_INTERVAL_MS;
        }
        calls
    }

    /// The latest time at which a source that is called again and again answers after its recovery.
    pub(crate) fn recovery_deadline(&self, source: usize) -> u64 {
        let plan = &self.world.plan;
        let max_open_time = u64::try_from(plan.breaker.max_open_time.as_millis()).unwrap();
        // A call that began before the recovery may hold an exclusive source until its own deadline.
        let longest_wait = if plan.sources[source].exclusive { MAX_TIMEOUT_MS } else { 0 };
        // The second open time is that after a probe that began before the recovery and failed after it.
        RECOVERY_AT_MS + 2 * max_open_time + longest_wait + 2 * PROBE_INTERVAL_MS
    }
}

fn options(plan: &CallPlan) -> CallOptions {
    let principal = |subject| CallerIdentity::principal("https://issuer.example", subject);
    let (name, identity) = match plan.caller {
        0 => ("editor", Some(principal("ada"))),
        1 => ("editor", Some(principal("eve"))),
        2 => ("editor", Some(CallerIdentity::local_token([1; 32]))),
        _ => ("script", None),
    };
    CallOptions::for_caller(name.into())
        .with_timeout(Duration::from_millis(plan.timeout))
        .on_behalf_of_identity(identity.map(Arc::new))
}

fn describe(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Output(output) => {
            let (sources, attempts) = (&output.meta.sources, output.meta.attempts);
            format!(
                "{:?} of {sources:?}, {attempts} attempts, failed {:?}",
                output.to_text(),
                output.meta.failed
            )
        }
        Outcome::Error(error) => format!("{:?} after {} attempts: {error}", error.kind(), error.attempts()),
        Outcome::Cancelled => "cancelled".to_owned(),
    }
}
