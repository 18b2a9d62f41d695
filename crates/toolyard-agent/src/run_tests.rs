//! Random plans, carried out in random order by nobody in particular: what must hold whatever happens.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Map, json};
use toolyard_core::{ErrorKind, RawJson, Resolution, SourceId};
use toolyard_model::ModelReply;

use super::*;
use crate::{
    Ask, Caps, NO_TOOL, Permission, Plan, Step, StepEnd, StepFacts, Verification,
    schedule::{Lane, startable},
};

/// What happens to a step when it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    Fails,
    SaysError,
    Denied,
}

#[derive(Debug, Clone)]
struct Story {
    steps: Vec<(Step, StepFacts, Fate)>,
    /// Which of the tasks under way ends next, again and again.
    turns: Vec<usize>,
}

fn step(id: &str, tool: &str, dependencies: &[&str]) -> Step {
    Step {
        id: id.to_owned(),
        description: String::new(),
        tool_type: tool.to_owned(),
        arguments: Map::new(),
        dependencies: dependencies.iter().map(|&name| name.to_owned()).collect(),
        complexity: crate::Complexity::Low,
    }
}

fn facts(source: &str, read_only: bool) -> StepFacts {
    let (source, permission) = (Some(source.to_owned().into()), Permission::Allow);
    StepFacts { source, read_only, permission, notes: Vec::new() }
}

fn asked(caps: Caps) -> RunEvent {
    RunEvent::Asked { ask: Ask { question: "?".to_owned(), caps, ..Ask::default() } }
}

fn model_answered(task: ModelTask) -> RunEvent {
    RunEvent::ModelAnswered { task, reply: ModelReply::default(), milliseconds: 1 }
}

fn done() -> StepEnd {
    StepEnd::Done { source: None, preview: String::new(), size: 0 }
}

fn verdict(verified: bool) -> Verification {
    Verification { verified, confidence: 1.0, issues: Vec::new(), said_error: !verified }
}

fn failed(kind: ErrorKind) -> StepEnd {
    StepEnd::Failed { message: "no".to_owned(), hint: None, kind: Some(kind) }
}

/// A run with a plan, without replanning.
fn planned(steps: &[(Step, StepFacts)], caps: Caps) -> (Run, Vec<RunEvent>) {
    let plan = Plan { steps: steps.iter().map(|(step, _)| step.clone()).collect() };
    let facts: BTreeMap<_, _> = steps.iter().map(|(step, facts)| (step.id.clone(), facts.clone())).collect();
    let events = vec![
        asked(caps),
        model_answered(ModelTask::Plan { round: 0, repair: false }),
        RunEvent::Planned { plan, facts },
    ];
    (Run::after(&events).unwrap(), events)
}

fn no_replans() -> Caps {
    Caps { replans: 0, ..Caps::default() }
}

/// A step that began, and what was under way then, itself included.
type Beginning = (String, BTreeSet<String>);

/// Carries a story out. Every transition is taken by the run, so none may be impossible.
fn carried_out(story: &Story) -> (Run, Vec<RunEvent>, Vec<Beginning>) {
    let steps: Vec<_> = story.steps.iter().map(|(step, facts, _)| (step.clone(), facts.clone())).collect();
    let (mut run, mut events) = planned(&steps, no_replans());
    let mut under_way: Vec<String> = Vec::new();
    let mut beginnings = Vec::new();
    for turn in 0.. {
        assert!(turn < 20 * story.steps.len() + 20, "every run ends: {:?}", run.tasks());
        let mut news = Vec::new();
        let tasks = run.tasks();
        let ready: Vec<Lane<'_>> = tasks.iter().filter_map(|task| called(task, &run, &under_way)).collect();
        let busy: Vec<Lane<'_>> = under_way.iter().map(|id| lane(&run, id)).collect();
        let begin: Vec<String> = startable(&ready, &busy).into_iter().map(str::to_owned).collect();
        for id in begin {
            under_way.push(id.clone());
            beginnings.push((id.clone(), under_way.iter().cloned().collect()));
            news.push(RunEvent::StepStarted {
                step: id,
                shown_arguments: String::new(),
                call: "c".to_owned(),
                notes: Vec::new(),
            });
        }
        for task in tasks.iter().filter(|task| !matches!(task, Task::Call(_) | Task::Reason(_))) {
            match task {
                Task::Answer => news.push(model_answered(ModelTask::Answer)),
                Task::GiveUp => news.push(ended(RunEnd::Failed { message: String::new(), hint: None })),
                Task::End(end) => news.push(ended(end.clone())),
                other => news.extend(at_once(other, story)),
            }
            if *task == Task::Answer {
                news.push(ended(RunEnd::Answered {
                    answer: "!".to_owned(),
                    sources: Vec::new(),
                    cut_off: false,
                }));
            }
        }
        if news.is_empty() && !under_way.is_empty() {
            let at = story.turns.get(turn).copied().unwrap_or(0) % under_way.len();
            let id = under_way.remove(at);
            news.push(over(&id, story));
        }
        for event in news {
            run.apply(&event).unwrap();
            events.push(event);
        }
        if run.is_over() {
            break;
        }
    }
    (run, events, beginnings)
}

fn ended(end: RunEnd) -> RunEvent {
    RunEvent::Ended { end }
}

fn called<'a>(task: &'a Task, run: &'a Run, under_way: &[String]) -> Option<Lane<'a>> {
    let (Task::Call(id) | Task::Reason(id)) = task else { return None };
    (!under_way.contains(id)).then(|| lane(run, id))
}

fn lane<'a>(run: &'a Run, id: &'a str) -> Lane<'a> {
    let step = run.step(id).unwrap();
    let source = step.facts.source.as_ref().filter(|_| !step.is_reasoning()).map(SourceId::as_str);
    Lane { step: id, source, writes: !step.facts.read_only }
}

fn fate(id: &str, story: &Story) -> Fate {
    story.steps.iter().find(|(step, ..)| step.id == id).map_or(Fate::Done, |(.., fate)| *fate)
}

fn over(id: &str, story: &Story) -> RunEvent {
    let outcome = match fate(id, story) {
        Fate::Done | Fate::SaysError => done(),
        Fate::Fails => failed(ErrorKind::Failed),
        Fate::Denied => StepEnd::Denied { by: "rule".to_owned() },
    };
    RunEvent::StepEnded { step: id.to_owned(), outcome, milliseconds: 5 }
}

/// What needs no waiting.
fn at_once(task: &Task, story: &Story) -> Vec<RunEvent> {
    let end = |step: &str, outcome| RunEvent::StepEnded { step: step.to_owned(), outcome, milliseconds: 0 };
    match task {
        Task::Verify(step) => {
            let verification = verdict(fate(step, story) != Fate::SaysError);
            vec![RunEvent::Verified { step: step.clone(), verification }]
        }
        Task::RepairStep(step) => {
            vec![RunEvent::RepairRefused { step: step.clone(), reason: "none".to_owned() }]
        }
        Task::Skip { step, because } => vec![end(step, StepEnd::Skipped { because: because.clone() })],
        other => panic!("{other:?}"),
    }
}

fn any_story(most: usize, forwards: bool) -> impl Strategy<Value = Story> {
    let fate = prop_oneof![
        6 => Just(Fate::Done), 1 => Just(Fate::Fails), 1 => Just(Fate::SaysError), 1 => Just(Fate::Denied)
    ];
    let one =
        (proptest::collection::vec(any::<prop::sample::Index>(), 0..4), 0_usize..4, any::<bool>(), fate);
    (proptest::collection::vec(one, 1..most), proptest::collection::vec(0_usize..100, 400)).prop_map(
        move |(drawn, turns)| {
            let count = drawn.len();
            let steps = drawn.into_iter().enumerate().map(|(at, (needs, source, read_only, fate))| {
                // Without cycles a step only needs earlier ones; else any, itself and one that does not exist included.
                let among = if forwards { at } else { count + 1 };
                let needs: BTreeSet<String> = match among {
                    0 => BTreeSet::new(),
                    among => needs.iter().map(|need| format!("s{}", need.index(among))).collect(),
                };
                let tool = if source == 3 { NO_TOOL } else { "tool" };
                let mut step = step(&format!("s{at}"), tool, &[]);
                step.dependencies = needs.into_iter().collect();
                (step, facts(&format!("source{source}"), read_only), fate)
            });
            Story { steps: steps.collect(), turns }
        },
    )
}

/// Everything that a step needs, directly or not.
fn ancestors<'a>(id: &'a str, story: &'a Story, found: &mut BTreeSet<&'a str>) {
    for (step, ..) in story.steps.iter().filter(|(step, ..)| step.id == id) {
        for need in &step.dependencies {
            if found.insert(need) {
                ancestors(need, story, found);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_plan_comes_to_its_end_and_failures_reach_exactly_what_depends_on_them(story in any_story(40, true)) {
        let (run, events, beginnings) = carried_out(&story);
        for (step, ..) in &story.steps {
            let mut needed = BTreeSet::new();
            ancestors(&step.id, &story, &mut needed);
            let hit = needed.iter().any(|id| fate(id, &story) != Fate::Done);
            let phase = &run.step(&step.id).unwrap().phase;
            let skipped = matches!(phase, Phase::Ended(StepEnd::Skipped { .. }));
            prop_assert_eq!(skipped, hit, "{} is {:?}", step.id, phase);
            if let Phase::Ended(StepEnd::Skipped { because }) = phase {
                prop_assert!(needed.contains(because.as_str()) && fate(because, &story) != Fate::Done);
            }
        }
        let good = story.steps.iter().any(|(.., fate)| *fate == Fate::Done)
            && run.steps().iter().any(StepRun::has_value);
        prop_assert_eq!(matches!(run.end(), Some(RunEnd::Answered { .. })), good);
        check_order(&run, &story, &beginnings, &events)?;
    }

    #[test]
    fn plans_with_cycles_and_missing_steps_end_too(story in any_story(25, false)) {
        let (run, ..) = carried_out(&story);
        prop_assert!(run.is_over());
        prop_assert!(run.steps().iter().all(|step| step.phase.is_ended()));
    }

    #[test]
    fn the_same_transitions_give_the_same_run_and_survive_being_written(story in any_story(20, true)) {
        let (run, events, _) = carried_out(&story);
        prop_assert_eq!(&Run::after(&events).unwrap(), &run);
        let written = RawJson::from_serialize(&events).unwrap();
        let read: Vec<RunEvent> = written.read().unwrap();
        prop_assert_eq!(&read, &events);
        let kept: Run = RawJson::from_serialize(&run).unwrap().read().unwrap();
        prop_assert_eq!(&kept, &run);
        for event in &events {
            prop_assert!(Run::after(&events).unwrap().apply(event).is_err(), "nothing follows the end");
        }
    }
}

/// No step begins before what it needs is done; writers of a source are alone, readers need not be.
fn check_order(
    run: &Run,
    story: &Story,
    beginnings: &[Beginning],
    events: &[RunEvent],
) -> Result<(), TestCaseError> {
    for (id, together) in beginnings {
        let own = lane(run, id);
        for other in together.iter().filter(|other| *other != id) {
            let other = lane(run, other);
            let apart = own.source.is_none() || own.source != other.source || !(own.writes || other.writes);
            prop_assert!(apart, "{id} and {} at once", other.step);
        }
    }
    let place = |wanted: &dyn Fn(&RunEvent) -> bool| events.iter().position(wanted);
    for (step, ..) in &story.steps {
        let began = place(&|event| matches!(event, RunEvent::StepStarted { step: id, .. } if *id == step.id));
        let Some(began) = began else { continue };
        for need in &step.dependencies {
            let over = place(&|event| matches!(event, RunEvent::Verified { step: id, .. } if id == need));
            prop_assert!(over.is_some_and(|over| over < began), "{} began before {need} was done", step.id);
        }
    }
    Ok(())
}

#[test]
fn an_answer_at_once_needs_no_plan() {
    let mut run = Run::after(&[asked(Caps::default())]).unwrap();
    assert_eq!(run.tasks(), [Task::Plan { round: 0, repair: false }]);
    run.apply(&model_answered(ModelTask::Plan { round: 0, repair: false })).unwrap();
    assert!(run.reply(&ModelTask::Plan { round: 0, repair: false }).is_some(), "it is read, not asked again");
    run.apply(&ended(RunEnd::Answered { answer: "4".to_owned(), sources: Vec::new(), cut_off: false }))
        .unwrap();
    assert!(run.is_over() && run.tasks().is_empty());
    assert_eq!(run.spent().model_calls, 1);
}

#[test]
fn a_refused_plan_is_repaired_once() {
    let mut run = Run::after(&[asked(Caps::default())]).unwrap();
    for (repair, next) in [(false, Task::Plan { round: 0, repair: true }), (true, Task::GiveUp)] {
        let reply = ModelReply { text: "gibberish".to_owned(), ..ModelReply::default() };
        let task = ModelTask::Plan { round: 0, repair };
        run.apply(&RunEvent::ModelAnswered { task, reply, milliseconds: 1 }).unwrap();
        let problems = vec![PlanProblem::Unreadable { reason: "no".to_owned() }];
        run.apply(&RunEvent::PlanRefused { problems }).unwrap();
        assert_eq!(run.tasks(), [next]);
        assert_eq!((run.refused(), run.problems().len()), (Some("gibberish"), 1));
    }
}

#[test]
fn a_failed_step_is_repaired_once_under_another_name() {
    let (mut run, _) = planned(&[(step("a", "tool", &[]), facts("x", true))], no_replans());
    let started = RunEvent::StepStarted {
        step: "a".to_owned(),
        shown_arguments: String::new(),
        call: "1".to_owned(),
        notes: Vec::new(),
    };
    let failure =
        RunEvent::StepEnded { step: "a".to_owned(), outcome: failed(ErrorKind::Failed), milliseconds: 1 };
    run.apply(&started).unwrap();
    run.apply(&failure).unwrap();
    assert_eq!(run.tasks(), [Task::RepairStep("a".to_owned())]);
    run.apply(&model_answered(ModelTask::Repair { step: "a".to_owned() })).unwrap();
    let Some(arguments) = json!({"b": 1}).as_object().cloned() else { unreachable!() };
    run.apply(&RunEvent::StepRepaired { step: "a".to_owned(), arguments }).unwrap();
    assert_eq!(run.step("a").unwrap().journal_name(), "a#2");
    assert_eq!(run.tasks(), [Task::Call("a".to_owned())]);
    run.apply(&started).unwrap();
    run.apply(&failure).unwrap();
    assert_eq!(run.tasks(), [Task::GiveUp], "once");
    assert_eq!(run.spent().calls, 2);
}

#[test]
fn a_write_that_succeeded_is_not_made_again_because_it_looks_odd() {
    for (read_only, said_error, repairs) in [(false, false, false), (true, false, true), (false, true, false)]
    {
        let (mut run, _) = planned(&[(step("a", "tool", &[]), facts("x", read_only))], no_replans());
        let call = "1".to_owned();
        run.apply(&RunEvent::StepStarted {
            step: "a".to_owned(),
            shown_arguments: String::new(),
            call,
            notes: Vec::new(),
        })
        .unwrap();
        run.apply(&RunEvent::StepEnded { step: "a".to_owned(), outcome: done(), milliseconds: 1 }).unwrap();
        let verification = Verification { said_error, ..Verification::default() };
        run.apply(&RunEvent::Verified { step: "a".to_owned(), verification }).unwrap();
        assert_eq!(run.tasks() == [Task::RepairStep("a".to_owned())], repairs, "{read_only} {said_error}");
    }
}

#[test]
fn what_waits_for_persons_holds_up_nothing_else() {
    let steps = [
        (step("w", "tool", &[]), facts("x", false)),
        (step("r", "tool", &[]), facts("x", true)),
        (step("after", "tool", &["w"]), facts("x", true)),
    ];
    let (mut run, _) = planned(&steps, no_replans());
    let (tool, call) = ("t".to_owned(), "c".to_owned());
    let asked =
        RunEvent::ApprovalAsked { step: "w".to_owned(), question: 7, text: String::new(), tool, call };
    run.apply(&asked).unwrap();
    assert_eq!(run.tasks(), [Task::AskPerson("w".to_owned()), Task::Call("r".to_owned())]);
    assert_eq!(run.waiting(), ["7"]);
    let given =
        RunEvent::ApprovalGiven { step: "w".to_owned(), allowed: true, always: true, by: "ada".to_owned() };
    run.apply(&given).unwrap();
    assert!(run.is_always_allowed("t") && run.waiting().is_empty());
    assert!(run.apply(&given).is_err(), "an answer is given once");

    let call = "c".to_owned();
    run.apply(&RunEvent::StepStarted {
        step: "w".to_owned(),
        shown_arguments: String::new(),
        call,
        notes: Vec::new(),
    })
    .unwrap();
    let unknown = StepEnd::Unknown { message: "lost".to_owned() };
    run.apply(&RunEvent::StepEnded { step: "w".to_owned(), outcome: unknown, milliseconds: 1 }).unwrap();
    assert_eq!(run.tasks(), [Task::Call("r".to_owned())]);
    assert_eq!(run.waiting(), ["step w"]);
    for (resolution, phase) in [(Resolution::Done, Phase::Started), (Resolution::NotDone, Phase::Waiting)] {
        let mut run = run.clone();
        run.apply(&ended(RunEnd::Suspended { waiting: run.waiting() })).unwrap();
        assert!(run.tasks().is_empty() && !run.is_over());
        run.apply(&RunEvent::Resumed { owner: "two".to_owned() }).unwrap();
        run.apply(&RunEvent::StepSettled { step: "w".to_owned(), resolution }).unwrap();
        assert_eq!(run.step("w").unwrap().phase, phase);
        assert_eq!(run.tasks().first(), Some(&Task::Call("w".to_owned())));
    }
}

#[test]
fn failures_lead_to_another_plan_as_often_as_allowed_and_results_are_kept() {
    let steps = [(step("a", "tool", &[]), facts("x", true)), (step("b", "tool", &[]), facts("x", true))];
    let (mut run, _) = planned(&steps, Caps { replans: 1, ..Caps::default() });
    let start = |run: &mut Run, id: &str| {
        let (step, call) = (id.to_owned(), id.to_owned());
        run.apply(&RunEvent::StepStarted { step, shown_arguments: String::new(), call, notes: Vec::new() })
            .unwrap();
    };
    let end = |run: &mut Run, id: &str, outcome| {
        run.apply(&RunEvent::StepEnded { step: id.to_owned(), outcome, milliseconds: 1 }).unwrap();
    };
    start(&mut run, "a");
    end(&mut run, "a", done());
    run.apply(&RunEvent::Verified { step: "a".to_owned(), verification: verdict(true) }).unwrap();
    start(&mut run, "b");
    end(&mut run, "b", failed(ErrorKind::Unavailable));
    assert_eq!(run.tasks(), [Task::Plan { round: 1, repair: false }]);
    run.apply(&model_answered(ModelTask::Plan { round: 1, repair: false })).unwrap();
    // The second plan says the first step again: it is done and stays done.
    let plan = Plan { steps: vec![step("a", "tool", &[]), step("b", "tool", &["a"])] };
    run.apply(&RunEvent::Planned { plan, facts: BTreeMap::new() }).unwrap();
    assert_eq!(run.tasks(), [Task::Call("b".to_owned())]);
    assert_eq!(run.step("b").unwrap().journal_name(), "b#2", "another call than the first");
    start(&mut run, "b");
    end(&mut run, "b", failed(ErrorKind::Unavailable));
    assert_eq!(run.tasks(), [Task::Answer], "what was found is answered with");
    assert_eq!(run.spent().steps, 3);
}

#[test]
fn a_rehearsal_says_what_would_be_changed() {
    let steps = [
        (step("w", "tool", &[]), facts("x", false)),
        (step("v", "tool", &["w"]), facts("x", false)),
        (step("r", "tool", &["v"]), facts("x", true)),
    ];
    let (mut run, _) = planned(&steps, no_replans());
    let rehearse = |run: &mut Run, id: &str| {
        let outcome = StepEnd::Rehearsed;
        run.apply(&RunEvent::StepEnded { step: id.to_owned(), outcome, milliseconds: 0 }).unwrap();
    };
    rehearse(&mut run, "w");
    assert_eq!(run.tasks(), [Task::Rehearse("v".to_owned())]);
    rehearse(&mut run, "v");
    assert_eq!(run.tasks(), [Task::Skip { step: "r".to_owned(), because: "v".to_owned() }]);
}

#[test]
fn impossible_transitions_are_refused() {
    let asked = asked(Caps::default());
    assert_eq!(Run::new().apply(&RunEvent::Resumed { owner: "x".to_owned() }), Err(RunError::NotBegun));
    assert!(Run::after([&asked, &asked]).is_err());
    let (run, _) = planned(&[(step("a", "tool", &[]), facts("x", true))], no_replans());
    let end = |step: &str, outcome| RunEvent::StepEnded { step: step.to_owned(), outcome, milliseconds: 1 };
    for event in [
        end("b", done()),
        end("a", done()),
        model_answered(ModelTask::Plan { round: 0, repair: false }),
        RunEvent::PlanRefused { problems: Vec::new() },
        RunEvent::StepSettled { step: "a".to_owned(), resolution: Resolution::Done },
        RunEvent::StepRepaired { step: "a".to_owned(), arguments: Map::new() },
        RunEvent::Verified { step: "a".to_owned(), verification: verdict(true) },
    ] {
        let mut tried = run.clone();
        assert!(tried.apply(&event).is_err(), "{event:?}");
        assert_eq!(tried, run, "and change nothing");
    }
}
