//! Property tests of the state machine with random plans, executed in random order.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Map, json};
use toolyard_core::{ApprovalId, ErrorKind, RawJson, Resolution, SourceId};
use toolyard_model::ModelReply;

use super::*;
use crate::{
    NO_TOOL, Plan, PlanProblem, Step,
    run::schedule::{CallAccess, startable_steps},
};

/// How a step ends when it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Done,
    Failed,
    ReportsError,
    Denied,
}

#[derive(Debug, Clone)]
struct Scenario {
    steps: Vec<(Step, PlannedTool, Ending)>,
    /// For each turn, the index of the call in flight that ends then.
    turns: Vec<usize>,
}

fn step(id: &str, tool: &str, dependencies: &[&str]) -> Step {
    Step {
        id: id.to_owned(),
        description: String::new(),
        tool_type: tool.to_owned(),
        arguments: Map::new(),
        dependencies: dependencies.iter().map(|&name| name.to_owned()).collect(),
    }
}

fn planned_tool(source: &str, read_only: bool) -> PlannedTool {
    let (source, permission) = (Some(source.to_owned().into()), Permission::Allow);
    PlannedTool { source, read_only, permission, reads_private: true, open_world: false, notes: Vec::new() }
}

fn requested(limits: RunLimits) -> RunEvent {
    RunEvent::Requested { request: RunRequest { question: "?".to_owned(), limits, ..RunRequest::default() } }
}

fn model_replied(task: ModelTask) -> RunEvent {
    RunEvent::ModelReplied { task, reply: ModelReply::default(), milliseconds: 1, sent: None }
}

fn done() -> StepEnd {
    StepEnd::Done { source: None, preview: String::new(), size: 0, reasoned: false }
}

fn verification(verified: bool) -> Verification {
    Verification { verified, confidence: 1.0, issues: Vec::new(), reported_error: !verified }
}

fn failed(kind: ErrorKind) -> StepEnd {
    StepEnd::Failed { message: "no".to_owned(), hint: None, kind: Some(kind) }
}

/// Folds events into the state they lead to.
fn from_events<'a>(events: impl IntoIterator<Item = &'a RunEvent>) -> Result<Run, RunError> {
    let mut run = Run::new();
    events.into_iter().try_for_each(|event| run.apply(event))?;
    Ok(run)
}

/// A run with an accepted plan.
fn planned(steps: &[(Step, PlannedTool)], limits: RunLimits) -> (Run, Vec<RunEvent>) {
    let plan = Plan { steps: steps.iter().map(|(step, _)| step.clone()).collect() };
    let tools: BTreeMap<_, _> = steps.iter().map(|(step, tool)| (step.id.clone(), tool.clone())).collect();
    let events = vec![
        requested(limits),
        model_replied(ModelTask::Plan { round: 0, repair: false }),
        RunEvent::Planned { plan, tools },
    ];
    (from_events(&events).unwrap(), events)
}

fn no_replans() -> RunLimits {
    RunLimits { replans: 0, ..RunLimits::default() }
}

/// A started step, and the steps in flight then, itself included.
type StartedStep = (String, BTreeSet<String>);

/// Executes a scenario. The run must accept every event.
fn execute(scenario: &Scenario) -> (Run, Vec<RunEvent>, Vec<StartedStep>) {
    let steps: Vec<_> = scenario.steps.iter().map(|(step, tool, _)| (step.clone(), tool.clone())).collect();
    let (mut run, mut events) = planned(&steps, no_replans());
    let mut in_flight: Vec<String> = Vec::new();
    let mut starts = Vec::new();
    for turn in 0.. {
        assert!(turn < 20 * scenario.steps.len() + 20, "every run ends: {:?}", run.tasks());
        let mut new_events = Vec::new();
        let tasks = run.tasks();
        let ready: Vec<CallAccess<'_>> =
            tasks.iter().filter_map(|task| startable_access(task, &run, &in_flight)).collect();
        let accesses_in_flight: Vec<CallAccess<'_>> =
            in_flight.iter().map(|id| call_access(&run, id)).collect();
        let startable: Vec<String> =
            startable_steps(&ready, &accesses_in_flight).into_iter().map(str::to_owned).collect();
        for id in startable {
            in_flight.push(id.clone());
            starts.push((id.clone(), in_flight.iter().cloned().collect()));
            new_events.push(RunEvent::StepStarted {
                step: id,
                arguments_preview: String::new(),
                target: String::new(),
                may_change: false,
                call: "c".to_owned(),
                notes: Vec::new(),
            });
        }
        for task in tasks.iter().filter(|task| !matches!(task, Task::Call(_) | Task::Reason(_))) {
            match task {
                Task::Answer => new_events.push(model_replied(ModelTask::Answer)),
                Task::Fail => new_events.push(ended(RunEnd::Failed {
                    message: String::new(),
                    hint: None,
                    model_error: None,
                })),
                Task::End(end) => new_events.push(ended(end.clone())),
                other => new_events.extend(immediate_events(other, scenario)),
            }
            if *task == Task::Answer {
                new_events.push(ended(RunEnd::Answered {
                    answer: "!".to_owned(),
                    sources: Vec::new(),
                    truncated: false,
                }));
            }
        }
        if new_events.is_empty() && !in_flight.is_empty() {
            let at = scenario.turns.get(turn).copied().unwrap_or(0) % in_flight.len();
            let id = in_flight.remove(at);
            new_events.push(step_ended(&id, scenario));
        }
        for event in new_events {
            run.apply(&event).unwrap();
            events.push(event);
        }
        if run.is_finished() {
            break;
        }
    }
    (run, events, starts)
}

fn ended(end: RunEnd) -> RunEvent {
    RunEvent::ended(end)
}

fn startable_access<'a>(task: &'a Task, run: &'a Run, in_flight: &[String]) -> Option<CallAccess<'a>> {
    let (Task::Call(id) | Task::Reason(id)) = task else { return None };
    (!in_flight.contains(id)).then(|| call_access(run, id))
}

fn call_access<'a>(run: &'a Run, id: &'a str) -> CallAccess<'a> {
    let step = run.step(id).unwrap();
    let source = step.tool.source.as_ref().filter(|_| !step.is_reasoning()).map(SourceId::as_str);
    CallAccess { step: id, source, writes: !step.tool.read_only }
}

fn ending(id: &str, scenario: &Scenario) -> Ending {
    scenario.steps.iter().find(|(step, ..)| step.id == id).map_or(Ending::Done, |(.., ending)| *ending)
}

fn step_ended(id: &str, scenario: &Scenario) -> RunEvent {
    let outcome = match ending(id, scenario) {
        Ending::Done | Ending::ReportsError => done(),
        Ending::Failed => failed(ErrorKind::Failed),
        Ending::Denied => StepEnd::Denied { by: "rule".to_owned() },
    };
    RunEvent::StepEnded { step: id.to_owned(), outcome, milliseconds: 5 }
}

/// Events of tasks that need no waiting.
fn immediate_events(task: &Task, scenario: &Scenario) -> Vec<RunEvent> {
    let end = |step: &str, outcome| RunEvent::StepEnded { step: step.to_owned(), outcome, milliseconds: 0 };
    match task {
        Task::Verify(step) => {
            let verification = verification(ending(step, scenario) != Ending::ReportsError);
            vec![RunEvent::Verified { step: step.clone(), verification }]
        }
        Task::RepairStep(step) => {
            vec![RunEvent::RepairFailed { step: step.clone(), reason: "none".to_owned() }]
        }
        Task::Skip { step, because } => vec![end(step, StepEnd::Skipped { because: because.clone() })],
        other => panic!("{other:?}"),
    }
}

fn cyclic_scenario(max_steps: usize) -> impl Strategy<Value = Scenario> {
    any_scenario(max_steps, false)
}

fn acyclic_scenario(max_steps: usize) -> impl Strategy<Value = Scenario> {
    any_scenario(max_steps, true)
}

fn any_scenario(max_steps: usize, is_acyclic: bool) -> impl Strategy<Value = Scenario> {
    let ending = prop_oneof![
        6 => Just(Ending::Done), 1 => Just(Ending::Failed), 1 => Just(Ending::ReportsError), 1 => Just(Ending::Denied)
    ];
    let one =
        (proptest::collection::vec(any::<prop::sample::Index>(), 0..4), 0_usize..4, any::<bool>(), ending);
    (proptest::collection::vec(one, 1..max_steps), proptest::collection::vec(0_usize..100, 400)).prop_map(
        move |(generated, turns)| {
            let count = generated.len();
            let steps =
                generated.into_iter().enumerate().map(|(at, (dependencies, source, read_only, ending))| {
                    // Without cycles, steps depend on earlier ones; else on any, including themselves and a missing one.
                    let candidates = if is_acyclic { at } else { count + 1 };
                    let dependencies: BTreeSet<String> = match candidates {
                        0 => BTreeSet::new(),
                        candidates => dependencies
                            .iter()
                            .map(|dependency| format!("s{}", dependency.index(candidates)))
                            .collect(),
                    };
                    let tool = if source == 3 { NO_TOOL } else { "tool" };
                    let mut step = step(&format!("s{at}"), tool, &[]);
                    step.dependencies = dependencies.into_iter().collect();
                    (step, planned_tool(&format!("source{source}"), read_only), ending)
                });
            Scenario { steps: steps.collect(), turns }
        },
    )
}

/// What became of a step's call, read from its events alone.
fn logged_state(id: &str, events: &[RunEvent]) -> EffectState {
    let mut state = EffectState::NotDone;
    for event in events {
        state = match event {
            RunEvent::StepStarted { step, .. } if step == id => EffectState::Unknown,
            // Nobody has looked at the result yet.
            RunEvent::StepEnded { step, outcome: StepEnd::Done { .. }, .. } if step == id => {
                EffectState::Unknown
            }
            RunEvent::StepEnded { step, .. } if step == id => EffectState::NotDone,
            RunEvent::Verified { step, verification } if step == id => match verification.verified {
                true => EffectState::Done,
                false => EffectState::NotDone,
            },
            _ => continue,
        };
    }
    state
}

/// All direct and indirect dependencies of a step.
fn ancestors<'a>(id: &'a str, scenario: &'a Scenario, found: &mut BTreeSet<&'a str>) {
    for (step, ..) in scenario.steps.iter().filter(|(step, ..)| step.id == id) {
        for dependency in &step.dependencies {
            if found.insert(dependency) {
                ancestors(dependency, scenario, found);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_receipt_says_what_the_log_says_wherever_the_process_dies(scenario in acyclic_scenario(12)) {
        let (run, events, _) = execute(&scenario);
        for length in 3..=events.len() {
            let logged = &events[..length];
            let effects = from_events(logged).unwrap().effects();
            for (step, tool, _) in scenario.steps.iter().filter(|(step, ..)| step.tool_type != NO_TOOL) {
                let told = effects.iter().find(|effect| effect.step == step.id).map(|effect| effect.state);
                prop_assert_eq!(told, (!tool.read_only).then(|| logged_state(&step.id, logged)));
            }
            // The next process cannot repeat the calls that were in progress; the first ones may have taken effect.
            let mut resumed = from_events(logged).unwrap();
            if resumed.is_finished() {
                continue;
            }
            resumed.apply(&RunEvent::Resumed { owner: "next".to_owned() }).unwrap();
            let steps = resumed.steps().to_vec();
            for step in steps.iter().filter(|step| step.phase == StepPhase::Started && step.may_change()) {
                let outcome = StepEnd::Denied { by: "a rule".to_owned() };
                let step = step.step.id.clone();
                resumed.apply(&RunEvent::StepEnded { step: step.clone(), outcome, milliseconds: 0 }).unwrap();
                let told = resumed.effects().into_iter().find(|effect| effect.step == step);
                prop_assert_eq!(told.map(|effect| effect.state), Some(EffectState::Unknown));
            }
        }
        let is_done = |effect: &Effect| effect.state == EffectState::Done;
        prop_assert!(!run.unfinished_steps().is_empty() || run.effects().iter().all(is_done));
    }

    #[test]
    fn every_plan_ends_and_failures_skip_exactly_the_dependents(scenario in acyclic_scenario(40)) {
        let (run, events, starts) = execute(&scenario);
        for (step, ..) in &scenario.steps {
            let mut needed = BTreeSet::new();
            ancestors(&step.id, &scenario, &mut needed);
            let depends_on_failure = needed.iter().any(|id| ending(id, &scenario) != Ending::Done);
            let phase = &run.step(&step.id).unwrap().phase;
            let skipped = matches!(phase, StepPhase::Ended(StepEnd::Skipped { .. }));
            prop_assert_eq!(skipped, depends_on_failure, "{} is {:?}", step.id, phase);
            if let StepPhase::Ended(StepEnd::Skipped { because }) = phase {
                prop_assert!(needed.contains(because.as_str()) && ending(because, &scenario) != Ending::Done);
            }
        }
        let has_result = scenario.steps.iter().any(|(.., ending)| *ending == Ending::Done)
            && run.steps().iter().any(StepRun::has_value);
        prop_assert_eq!(matches!(run.end(), Some(RunEnd::Answered { .. })), has_result);
        check_order(&run, &scenario, &starts, &events)?;
    }

    #[test]
    fn plans_with_cycles_and_missing_steps_end(scenario in cyclic_scenario(25)) {
        let (run, ..) = execute(&scenario);
        prop_assert!(run.is_finished());
        prop_assert!(run.steps().iter().all(|step| step.phase.is_ended()));
    }

    #[test]
    fn events_and_runs_survive_serialization(scenario in acyclic_scenario(20)) {
        let (run, events, _) = execute(&scenario);
        prop_assert_eq!(&from_events(&events).unwrap(), &run);
        let written = RawJson::from_serialize(&events).unwrap();
        let read: Vec<RunEvent> = written.read().unwrap();
        prop_assert_eq!(&read, &events);
        let read_run: Run = RawJson::from_serialize(&run).unwrap().read().unwrap();
        prop_assert_eq!(&read_run, &run);
        for event in &events {
            prop_assert!(from_events(&events).unwrap().apply(event).is_err(), "no event follows the end");
        }
    }
}

/// No step starts before its dependencies are verified, and no writer shares its source.
fn check_order(
    run: &Run,
    scenario: &Scenario,
    starts: &[StartedStep],
    events: &[RunEvent],
) -> Result<(), TestCaseError> {
    for (id, in_flight) in starts {
        let access = call_access(run, id);
        for other in in_flight.iter().filter(|other| *other != id) {
            let other = call_access(run, other);
            let may_overlap =
                access.source.is_none() || access.source != other.source || !(access.writes || other.writes);
            prop_assert!(may_overlap, "{id} and {} at once", other.step);
        }
    }
    let position_of = |wanted: &dyn Fn(&RunEvent) -> bool| events.iter().position(wanted);
    for (step, ..) in &scenario.steps {
        let started_at =
            position_of(&|event| matches!(event, RunEvent::StepStarted { step: id, .. } if *id == step.id));
        let Some(started_at) = started_at else { continue };
        for dependency in &step.dependencies {
            let verified_at = position_of(
                &|event| matches!(event, RunEvent::Verified { step: id, .. } if id == dependency),
            );
            prop_assert!(
                verified_at.is_some_and(|verified_at| verified_at < started_at),
                "{} started before {dependency} was verified",
                step.id
            );
        }
    }
    Ok(())
}

#[test]
fn an_immediate_answer_needs_no_plan() {
    let mut run = from_events(&[requested(RunLimits::default())]).unwrap();
    assert_eq!(run.tasks(), [Task::Plan { round: 0, repair: false }]);
    run.apply(&model_replied(ModelTask::Plan { round: 0, repair: false })).unwrap();
    assert!(
        run.reply(&ModelTask::Plan { round: 0, repair: false }).is_some(),
        "the reply is processed, not requested again"
    );
    run.apply(&ended(RunEnd::Answered { answer: "4".to_owned(), sources: Vec::new(), truncated: false }))
        .unwrap();
    assert!(run.is_finished() && run.tasks().is_empty());
    assert_eq!(run.usage().model_calls, 1);
}

#[test]
fn a_rejected_plan_is_repaired_once() {
    let mut run = from_events(&[requested(RunLimits::default())]).unwrap();
    for (repair, next) in [(false, Task::Plan { round: 0, repair: true }), (true, Task::Fail)] {
        let reply = ModelReply { text: "gibberish".to_owned(), ..ModelReply::default() };
        let task = ModelTask::Plan { round: 0, repair };
        run.apply(&RunEvent::ModelReplied { task, reply, milliseconds: 1, sent: None }).unwrap();
        let problems = vec![PlanProblem::Unreadable { reason: "no".to_owned() }];
        run.apply(&RunEvent::PlanRejected { problems }).unwrap();
        assert_eq!(run.tasks(), [next]);
        assert_eq!((run.rejected_reply(), run.problems().len()), (Some("gibberish"), 1));
    }
}

#[test]
fn a_failed_step_is_repaired_once_under_a_new_journal_name() {
    let (mut run, _) = planned(&[(step("a", "tool", &[]), planned_tool("x", true))], no_replans());
    let started = RunEvent::StepStarted {
        step: "a".to_owned(),
        arguments_preview: String::new(),
        target: String::new(),
        may_change: false,
        call: "1".to_owned(),
        notes: Vec::new(),
    };
    let failure =
        RunEvent::StepEnded { step: "a".to_owned(), outcome: failed(ErrorKind::Failed), milliseconds: 1 };
    run.apply(&started).unwrap();
    run.apply(&failure).unwrap();
    assert_eq!(run.tasks(), [Task::RepairStep("a".to_owned())]);
    run.apply(&model_replied(ModelTask::Repair { step: "a".to_owned() })).unwrap();
    let Some(arguments) = json!({"b": 1}).as_object().cloned() else { unreachable!() };
    run.apply(&RunEvent::StepRepaired { step: "a".to_owned(), arguments, notes: Vec::new() }).unwrap();
    assert_eq!(run.step("a").unwrap().journal_name(), "a#2");
    assert_eq!(run.tasks(), [Task::Call("a".to_owned())]);
    run.apply(&started).unwrap();
    run.apply(&failure).unwrap();
    assert_eq!(run.tasks(), [Task::Fail], "once");
    assert_eq!(run.usage().calls, 2);
}

#[test]
fn a_successful_write_is_never_repaired() {
    for (read_only, reported_error, repairs) in
        [(false, false, false), (true, false, true), (false, true, false)]
    {
        let (mut run, _) = planned(&[(step("a", "tool", &[]), planned_tool("x", read_only))], no_replans());
        let call = "1".to_owned();
        run.apply(&RunEvent::StepStarted {
            step: "a".to_owned(),
            arguments_preview: String::new(),
            target: String::new(),
            may_change: false,
            call,
            notes: Vec::new(),
        })
        .unwrap();
        run.apply(&RunEvent::StepEnded { step: "a".to_owned(), outcome: done(), milliseconds: 1 }).unwrap();
        let verification = Verification { reported_error, ..Verification::default() };
        run.apply(&RunEvent::Verified { step: "a".to_owned(), verification }).unwrap();
        assert_eq!(
            run.tasks() == [Task::RepairStep("a".to_owned())],
            repairs,
            "{read_only} {reported_error}"
        );
    }
}

#[test]
fn pending_approvals_block_nothing_else() {
    let steps = [
        (step("w", "tool", &[]), planned_tool("x", false)),
        (step("r", "tool", &[]), planned_tool("x", true)),
        (step("after", "tool", &["w"]), planned_tool("x", true)),
    ];
    let (mut run, _) = planned(&steps, no_replans());
    let (tool, call) = ("t".to_owned(), "c".to_owned());
    let asked = RunEvent::ApprovalRequested {
        step: "w".to_owned(),
        approval_id: ApprovalId(7),
        text: String::new(),
        tool,
        call,
        details: None,
    };
    run.apply(&asked).unwrap();
    assert_eq!(run.tasks(), [Task::RequestApproval("w".to_owned()), Task::Call("r".to_owned())]);
    assert_eq!(run.waiting_for(), ["7"]);
    let decided =
        RunEvent::ApprovalDecided { step: "w".to_owned(), allowed: true, always: true, by: "ada".to_owned() };
    run.apply(&decided).unwrap();
    assert!(run.is_always_allowed("t") && run.waiting_for().is_empty());
    assert!(run.apply(&decided).is_err(), "a decision is final");

    let call = "c".to_owned();
    run.apply(&RunEvent::StepStarted {
        step: "w".to_owned(),
        arguments_preview: String::new(),
        target: String::new(),
        may_change: false,
        call,
        notes: Vec::new(),
    })
    .unwrap();
    let unknown = StepEnd::Unknown { message: "lost".to_owned() };
    run.apply(&RunEvent::StepEnded { step: "w".to_owned(), outcome: unknown, milliseconds: 1 }).unwrap();
    assert_eq!(run.tasks(), [Task::Call("r".to_owned())]);
    assert_eq!(run.waiting_for(), ["step w"]);
    for (resolution, phase) in
        [(Resolution::Done, StepPhase::Started), (Resolution::NotDone, StepPhase::Waiting)]
    {
        let mut run = run.clone();
        run.apply(&ended(RunEnd::Suspended { waiting_for: run.waiting_for() })).unwrap();
        assert!(run.tasks().is_empty() && !run.is_finished());
        run.apply(&RunEvent::Resumed { owner: "two".to_owned() }).unwrap();
        run.apply(&RunEvent::StepResolved { step: "w".to_owned(), resolution }).unwrap();
        assert_eq!(run.step("w").unwrap().phase, phase);
        assert_eq!(run.tasks().first(), Some(&Task::Call("w".to_owned())));
    }
}

#[test]
fn replanning_respects_its_limit_and_keeps_results() {
    let steps = [
        (step("a", "tool", &[]), planned_tool("x", true)),
        (step("b", "tool", &[]), planned_tool("x", true)),
    ];
    let (mut run, _) = planned(&steps, RunLimits { replans: 1, ..RunLimits::default() });
    let start = |run: &mut Run, id: &str| {
        let (step, call) = (id.to_owned(), id.to_owned());
        run.apply(&RunEvent::StepStarted {
            step,
            arguments_preview: String::new(),
            target: String::new(),
            may_change: false,
            call,
            notes: Vec::new(),
        })
        .unwrap();
    };
    let end = |run: &mut Run, id: &str, outcome| {
        run.apply(&RunEvent::StepEnded { step: id.to_owned(), outcome, milliseconds: 1 }).unwrap();
    };
    start(&mut run, "a");
    end(&mut run, "a", done());
    run.apply(&RunEvent::Verified { step: "a".to_owned(), verification: verification(true) }).unwrap();
    start(&mut run, "b");
    end(&mut run, "b", failed(ErrorKind::Unavailable));
    assert_eq!(run.tasks(), [Task::Plan { round: 1, repair: false }]);
    run.apply(&model_replied(ModelTask::Plan { round: 1, repair: false })).unwrap();
    // The second plan repeats the first step, whose result is kept.
    let plan = Plan { steps: vec![step("a", "tool", &[]), step("b", "tool", &["a"])] };
    run.apply(&RunEvent::Planned { plan, tools: BTreeMap::new() }).unwrap();
    assert_eq!(run.tasks(), [Task::Call("b".to_owned())]);
    assert_eq!(run.step("b").unwrap().journal_name(), "b#2", "a new attempt");
    start(&mut run, "b");
    end(&mut run, "b", failed(ErrorKind::Unavailable));
    assert_eq!(run.tasks(), [Task::Answer], "the answer uses what was found");
    assert_eq!(run.usage().steps, 3);
}

#[test]
fn a_dry_run_simulates_writes_and_skips_dependent_reads() {
    let steps = [
        (step("w", "tool", &[]), planned_tool("x", false)),
        (step("v", "tool", &["w"]), planned_tool("x", false)),
        (step("r", "tool", &["v"]), planned_tool("x", true)),
    ];
    let (mut run, _) = planned(&steps, no_replans());
    let simulate = |run: &mut Run, id: &str| {
        let outcome = StepEnd::Simulated;
        run.apply(&RunEvent::StepEnded { step: id.to_owned(), outcome, milliseconds: 0 }).unwrap();
    };
    simulate(&mut run, "w");
    assert_eq!(run.tasks(), [Task::Simulate("v".to_owned())]);
    simulate(&mut run, "v");
    assert_eq!(run.tasks(), [Task::Skip { step: "r".to_owned(), because: "v".to_owned() }]);
}

#[test]
fn invalid_events_are_rejected_without_effect() {
    let request = requested(RunLimits::default());
    assert_eq!(Run::new().apply(&RunEvent::Resumed { owner: "x".to_owned() }), Err(RunError::NotRequested));
    assert!(from_events([&request, &request]).is_err());
    let (run, _) = planned(&[(step("a", "tool", &[]), planned_tool("x", true))], no_replans());
    let end = |step: &str, outcome| RunEvent::StepEnded { step: step.to_owned(), outcome, milliseconds: 1 };
    for event in [
        end("b", done()),
        end("a", done()),
        model_replied(ModelTask::Plan { round: 0, repair: false }),
        RunEvent::PlanRejected { problems: Vec::new() },
        RunEvent::StepResolved { step: "a".to_owned(), resolution: Resolution::Done },
        RunEvent::StepRepaired { step: "a".to_owned(), arguments: Map::new(), notes: Vec::new() },
        RunEvent::Verified { step: "a".to_owned(), verification: verification(true) },
    ] {
        let mut changed = run.clone();
        assert!(changed.apply(&event).is_err(), "{event:?}");
        assert_eq!(changed, run, "a rejected event changes nothing");
    }
}
