//! The plan of a simulation: which sources there are, when they fail and how, what the operator changes, and which calls are made. It
//! follows from a seed alone.

use std::{collections::BTreeMap, ops::Range, time::Duration};

use fastrand::Rng;
use toolyard_core::SourceKind;
use toolyard_hub::{BreakerSettings, RetryPolicy};

/// Tools that several sources may offer. Their names decide the kind of tool and so the strategy.
pub(crate) const SHARED_TOOLS: [&str; 3] = ["search_notes", "calculate_total", "save_note"];
/// From this time on, every source is registered and healthy, and nothing changes any more.
pub(crate) const RECOVERY_AT_MS: u64 = 40_000;
pub(crate) const MAX_TIMEOUT_MS: u64 = 12_000;
pub(crate) const CALLERS: usize = 4;
const CALLS: usize = 28;
const BURST_MS: u64 = 3_000;
/// Calls begin until this time.
const LAST_CALL_AT_MS: u64 = 50_000;

/// How a source behaves for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Healthy,
    Slow,
    /// Receives calls and never responds.
    Hanging,
    /// Fails at once, and certainly before anything is sent.
    NotSent,
    /// Receives calls and reports a failure of the tool.
    Failing,
    /// Receives calls, and their responses get lost.
    LosingResponses,
    Panicking,
    /// Refuses calls and says when to try again.
    RateLimited,
    /// Cannot be reached, which is known only after a while.
    Down,
    /// Each call finds another mode.
    Flaky,
}

impl Mode {
    pub(crate) const FAULTS: [Self; 9] = [
        Self::Slow,
        Self::Hanging,
        Self::NotSent,
        Self::Failing,
        Self::LosingResponses,
        Self::Panicking,
        Self::RateLimited,
        Self::Down,
        Self::Flaky,
    ];
}

/// What a tool declares about its effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeclaredHint {
    Nothing,
    ReadOnly,
    Idempotent,
    Destructive,
}

/// What the operator says about the effects of a tool of a source, whatever the tool declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperatorHint {
    Idempotent,
    Writes,
}

/// The parameters of a tool. Tools with different ones are not compatible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parameters {
    Any,
    RequiresId,
    /// No call of the simulation has the parameter that these require.
    RejectsAll,
}

#[derive(Debug, Clone)]
pub(crate) struct ToolPlan {
    pub(crate) name: String,
    pub(crate) hint: DeclaredHint,
    pub(crate) parameters: Parameters,
}

/// What a source registers with.
#[derive(Debug, Clone)]
pub(crate) struct Definition {
    pub(crate) trusted: bool,
    pub(crate) tools: Vec<ToolPlan>,
}

#[derive(Debug)]
pub(crate) struct SourcePlan {
    pub(crate) id: String,
    pub(crate) kind: SourceKind,
    pub(crate) exclusive: bool,
    /// When each mode begins, in order; the first one begins at 0.
    pub(crate) phases: Vec<(u64, Mode)>,
}

impl SourcePlan {
    /// The index of the phase at this time, and its mode.
    pub(crate) fn phase_at(&self, milliseconds: u64) -> (usize, Mode) {
        let next = self.phases.partition_point(|(start, _)| *start <= milliseconds);
        (next - 1, self.phases[next - 1].1)
    }

    /// A tool that no other source has.
    pub(crate) fn probe_tool(&self) -> String {
        format!("probe_{}", self.id)
    }
}

/// The operator's rules; sources by index.
#[derive(Debug, Clone, Default)]
pub(crate) struct RulesPlan {
    pub(crate) equivalent: BTreeMap<&'static str, Vec<usize>>,
    pub(crate) pins: BTreeMap<&'static str, usize>,
    pub(crate) hints: BTreeMap<(usize, &'static str), OperatorHint>,
}

#[derive(Debug)]
pub(crate) enum Change {
    /// Registers the source, or replaces its tools.
    Register(usize, Definition),
    Remove(usize),
    ReportReady(usize),
    Reconfigure(RulesPlan, RetryPolicy),
}

#[derive(Debug, Clone)]
pub(crate) struct CallPlan {
    /// Unique; part of the arguments and of every answer.
    pub(crate) number: usize,
    pub(crate) at: u64,
    pub(crate) caller: usize,
    pub(crate) tool: String,
    /// The source that the request names.
    pub(crate) source: Option<usize>,
    pub(crate) timeout: u64,
    pub(crate) cancel_after: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) sources: Vec<SourcePlan>,
    pub(crate) rules: RulesPlan,
    pub(crate) retry: RetryPolicy,
    pub(crate) breaker: BreakerSettings,
    /// Ordered by time.
    pub(crate) changes: Vec<(u64, Change)>,
    pub(crate) calls: Vec<CallPlan>,
}

impl Plan {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let count = rng.usize(3..=4);
        let sources: Vec<SourcePlan> = (0..count).map(|index| source(&mut rng, index)).collect();
        let mut changes: Vec<(u64, Change)> =
            (0..count).map(|index| (0, register(&mut rng, &sources, index))).collect();
        for _ in 0..rng.usize(..6) {
            let change = change(&mut rng, &sources);
            changes.push((rng.u64(1..RECOVERY_AT_MS), change));
        }
        changes.sort_by_key(|(at, _)| *at);
        for index in 0..count {
            let is_of_source = |change: &&Change| match change {
                Change::Register(source, _) | Change::Remove(source) => *source == index,
                Change::ReportReady(_) | Change::Reconfigure(..) => false,
            };
            let last = changes.iter().rev().map(|(_, change)| change).find(is_of_source);
            if matches!(last, Some(Change::Remove(_))) {
                changes.push((RECOVERY_AT_MS, register(&mut rng, &sources, index)));
            }
        }
        let initial_open_time = millis(&mut rng, 300..2_500);
        Self {
            seed,
            rules: rules(&mut rng, count),
            retry: retry(&mut rng),
            breaker: BreakerSettings {
                failure_threshold: rng.u32(1..6),
                initial_open_time,
                max_open_time: initial_open_time + millis(&mut rng, 0..2_500),
            },
            changes,
            calls: (0..CALLS).map(|number| call(&mut rng, &sources, number)).collect(),
            sources,
        }
    }
}

fn millis(rng: &mut Rng, range: Range<u64>) -> Duration {
    Duration::from_millis(rng.u64(range))
}

fn pick<T: Copy>(rng: &mut Rng, values: &[T]) -> T {
    values[rng.usize(..values.len())]
}

fn source(rng: &mut Rng, index: usize) -> SourcePlan {
    let is_native = index == 0 && rng.bool();
    let mut phases = vec![(0, Mode::Healthy)];
    // Some sources never fail.
    if rng.u8(..5) > 0 {
        let mut at = rng.u64(0..8_000);
        while at < RECOVERY_AT_MS {
            phases.push((at, pick(rng, &Mode::FAULTS)));
            at += rng.u64(1_000..12_000);
            if rng.bool() && at < RECOVERY_AT_MS {
                phases.push((at, Mode::Healthy));
                at += rng.u64(2_000..15_000);
            }
        }
    }
    phases.push((RECOVERY_AT_MS, Mode::Healthy));
    SourcePlan {
        id: if is_native { "native".to_owned() } else { format!("s{index}") },
        kind: if is_native { SourceKind::Native } else { SourceKind::Mcp },
        exclusive: rng.u8(..6) == 0,
        phases,
    }
}

fn definition(rng: &mut Rng, source: &SourcePlan) -> Definition {
    use DeclaredHint::{Destructive, Idempotent, Nothing, ReadOnly};
    let mut tools = Vec::new();
    for name in SHARED_TOOLS {
        // Every tool may be declared as anything: an untrusted source lies about a tool that writes.
        let hint = match name {
            "save_note" => pick(rng, &[Nothing, Nothing, Idempotent, Idempotent, ReadOnly, Destructive]),
            _ => pick(rng, &[ReadOnly, ReadOnly, ReadOnly, ReadOnly, Idempotent, Nothing]),
        };
        let parameters = match rng.u8(..20) {
            0 => Parameters::RejectsAll,
            1..4 => Parameters::RequiresId,
            _ => Parameters::Any,
        };
        if rng.u8(..4) > 0 {
            tools.push(ToolPlan { name: name.to_owned(), hint, parameters });
        }
    }
    let probe = ToolPlan { name: source.probe_tool(), hint: ReadOnly, parameters: Parameters::Any };
    tools.push(probe);
    Definition { trusted: rng.u8(..4) > 0, tools }
}

fn register(rng: &mut Rng, sources: &[SourcePlan], index: usize) -> Change {
    Change::Register(index, definition(rng, &sources[index]))
}

fn change(rng: &mut Rng, sources: &[SourcePlan]) -> Change {
    let index = rng.usize(..sources.len());
    match rng.u8(..8) {
        0..3 => register(rng, sources, index),
        3..5 => Change::Remove(index),
        5..7 => Change::ReportReady(index),
        _ => Change::Reconfigure(rules(rng, sources.len()), retry(rng)),
    }
}

fn rules(rng: &mut Rng, count: usize) -> RulesPlan {
    let mut rules = RulesPlan::default();
    for tool in SHARED_TOOLS {
        if rng.u8(..3) > 0 {
            let equivalent = (0..count).filter(|_| rng.u8(..3) > 0).collect();
            rules.equivalent.insert(tool, equivalent);
        }
        if rng.u8(..5) == 0 {
            rules.pins.insert(tool, rng.usize(..count));
        }
        for index in 0..count {
            let hint = match rng.u8(..10) {
                0 => OperatorHint::Idempotent,
                1 => OperatorHint::Writes,
                _ => continue,
            };
            rules.hints.insert((index, tool), hint);
        }
    }
    rules
}

fn retry(rng: &mut Rng) -> RetryPolicy {
    RetryPolicy {
        max_attempts: rng.u32(1..5),
        initial_backoff: millis(rng, 20..600),
        max_backoff: millis(rng, 600..3_000),
        attempt_timeout: rng.bool().then(|| millis(rng, 500..4_000)),
    }
}

fn call(rng: &mut Rng, sources: &[SourcePlan], number: usize) -> CallPlan {
    let source = rng.usize(..sources.len());
    let tool = match rng.u8(..8) {
        0 => sources[source].probe_tool(),
        1..3 => "save_note".to_owned(),
        _ => pick(rng, &SHARED_TOOLS).to_owned(),
    };
    CallPlan {
        number,
        at: call_time(rng, &sources[source]),
        caller: rng.usize(..CALLERS),
        tool,
        source: (rng.u8(..4) == 0).then_some(source),
        timeout: rng.u64(500..MAX_TIMEOUT_MS),
        cancel_after: (rng.u8(..6) == 0).then(|| rng.u64(..1_500)),
    }
}

/// Most calls are made around the times at which the behaviour of a source changes, where breakers, retries and late failures meet.
fn call_time(rng: &mut Rng, source: &SourcePlan) -> u64 {
    let (changes_at, _) = source.phases[rng.usize(..source.phases.len())];
    match rng.u8(..3) {
        0 => rng.u64(..LAST_CALL_AT_MS),
        _ => changes_at.saturating_sub(BURST_MS / 2) + rng.u64(..BURST_MS),
    }
}
