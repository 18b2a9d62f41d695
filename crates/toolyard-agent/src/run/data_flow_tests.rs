//! Property tests: data of a source is never lost on its way through a run.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolyard_core::ErrorKind;
use toolyard_model::{ModelMessage, ModelReply};

use super::*;
use crate::{ModelTask, NO_TOOL, Permission, Plan, PlannedTool, RunEvent, Step};

/// A step of a random plan: its tool, the earlier steps it refers to, and whether it fails.
#[derive(Debug, Clone)]
struct RandomStep {
    kind: Kind,
    refers_to: Vec<usize>,
    depends_on: Vec<usize>,
    fails: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Private,
    Public,
    Reasoning,
}

fn any_step() -> impl Strategy<Value = RandomStep> {
    let kind = prop_oneof![Just(Kind::Private), Just(Kind::Public), Just(Kind::Reasoning)];
    let earlier = || proptest::collection::vec(0_usize..8, 0..3);
    (kind, earlier(), earlier(), proptest::bool::weighted(0.2))
        .prop_map(|(kind, refers_to, depends_on, fails)| RandomStep { kind, refers_to, depends_on, fails })
}

fn id(number: usize) -> String {
    format!("s{number}")
}

fn step(number: usize, random: &RandomStep) -> (Step, PlannedTool) {
    let earlier = |all: &[usize]| {
        all.iter().filter(|other| **other < number).map(|other| id(*other)).collect::<Vec<_>>()
    };
    let references = earlier(&random.refers_to);
    let mut arguments = Map::new();
    if !references.is_empty() {
        let all: Vec<Value> = references.iter().map(|id| json!(format!("see ${id} now"))).collect();
        arguments.insert("in".to_owned(), json!({ "list": all }));
    }
    let mut dependencies = earlier(&random.depends_on);
    dependencies.extend(references);
    let tool_type = if random.kind == Kind::Reasoning { NO_TOOL.to_owned() } else { format!("tool{number}") };
    let step = Step { id: id(number), description: String::new(), tool_type, arguments, dependencies };
    let source = (random.kind != Kind::Reasoning).then(|| format!("source{number}").as_str().into());
    let reads_private = random.kind != Kind::Public;
    let tool = PlannedTool {
        source,
        read_only: true,
        permission: Permission::Allow,
        reads_private,
        open_world: true,
        notes: Vec::new(),
    };
    (step, tool)
}

fn planned(run: &mut Run, round: usize, steps: &[(Step, PlannedTool)]) {
    let task = ModelTask::Plan { round, repair: false };
    run.apply(&RunEvent::ModelReplied { task, reply: ModelReply::default(), milliseconds: 1, sent: None })
        .unwrap();
    let plan = Plan { steps: steps.iter().map(|(step, _)| step.clone()).collect() };
    let tools: BTreeMap<_, _> = steps.iter().map(|(step, tool)| (step.id.clone(), tool.clone())).collect();
    run.apply(&RunEvent::Planned { plan, tools }).unwrap();
}

fn finish(run: &mut Run, number: usize, random: &RandomStep) {
    let step = id(number);
    let started = RunEvent::StepStarted {
        step: step.clone(),
        arguments_preview: String::new(),
        target: String::new(),
        may_change: false,
        call: if random.kind == Kind::Reasoning { String::new() } else { "c".to_owned() },
        notes: Vec::new(),
    };
    run.apply(&started).unwrap();
    let source = run.step(&step).unwrap().tool.source.clone();
    let outcome = if random.fails {
        StepEnd::Failed { message: "text".to_owned(), hint: None, kind: Some(ErrorKind::Unavailable) }
    } else {
        StepEnd::Done { source, preview: String::new(), size: 0, reasoned: false }
    };
    run.apply(&RunEvent::StepEnded { step, outcome, milliseconds: 1 }).unwrap();
}

fn requested(history: Vec<ModelMessage>) -> Run {
    let request = RunRequest { question: "?".to_owned(), history, ..RunRequest::default() };
    let mut run = Run::new();
    run.apply(&RunEvent::Requested { request }).unwrap();
    run
}

fn set(names: &[&str]) -> DataSources {
    let mut sources = DataSources::default();
    names.iter().for_each(|name| sources.insert(name));
    sources
}

proptest! {
    #[test]
    fn data_of_a_private_source_reaches_everything_that_was_made_from_it(all in proptest::collection::vec(any_step(), 1..8)) {
        let mut run = requested(Vec::new());
        let steps: Vec<_> = all.iter().enumerate().map(|(number, random)| step(number, random)).collect();
        planned(&mut run, 0, &steps);
        // What a step may contain, by following the edges of the plan.
        let mut expected: Vec<DataSources> = Vec::new();
        for (number, random) in all.iter().enumerate() {
            let mut sources = DataSources::default();
            let sees_dependencies = random.kind == Kind::Reasoning;
            let seen = random.refers_to.iter().chain(random.depends_on.iter().filter(|_| sees_dependencies));
            seen.filter(|other| **other < number).for_each(|other| sources.extend(&expected[*other]));
            if random.kind == Kind::Private {
                sources.insert(&format!("source{number}"));
            }
            let found = run.step(&id(number)).unwrap();
            prop_assert!(found.written_from.is_empty(), "the plan was made before anything was read");
            let mut of_references = DataSources::default();
            random.refers_to.iter().filter(|other| **other < number).for_each(|other| of_references.extend(&expected[*other]));
            prop_assert_eq!(run.argument_sources(found), of_references);
            finish(&mut run, number, random);
            prop_assert_eq!(&run.step(&id(number)).unwrap().result_from, &sources);
            prop_assert!(run.data_sources().includes(&sources));
            expected.push(sources);
        }
    }

    #[test]
    fn a_later_plan_may_contain_everything_that_was_read(all in proptest::collection::vec(any_step(), 1..6)) {
        let mut run = requested(Vec::new());
        let failing = RandomStep { kind: Kind::Public, refers_to: vec![], depends_on: vec![], fails: true };
        let mut all = all;
        all.iter_mut().for_each(|random| (random.refers_to, random.depends_on, random.fails) = (vec![], vec![], false));
        all.push(failing);
        let steps: Vec<_> = all.iter().enumerate().map(|(number, random)| step(number, random)).collect();
        planned(&mut run, 0, &steps);
        for (number, random) in all.iter().enumerate() {
            finish(&mut run, number, random);
            let verification = crate::Verification { verified: true, confidence: 1.0, ..Default::default() };
            if !random.fails {
                run.apply(&RunEvent::Verified { step: id(number), verification }).unwrap();
            }
        }
        let read = run.data_sources().clone();
        let next = step(20, &RandomStep { kind: Kind::Public, refers_to: vec![], depends_on: vec![], fails: false });
        planned(&mut run, 1, &[next]);
        prop_assert_eq!(&run.step(&id(20)).unwrap().written_from, &read);
        let has_private = all.iter().any(|random| random.kind == Kind::Private);
        prop_assert_eq!(read.is_empty(), !has_private);
    }
}

#[test]
fn answers_of_a_conversation_count_unless_they_are_public_and_the_users_words_never_do() {
    let (user, assistant) = (ModelMessage::user("secret"), ModelMessage::assistant("secret"));
    assert!(requested(vec![user.clone()]).data_sources().is_empty());
    assert_eq!(*requested(vec![user, assistant.clone()]).data_sources(), set(&[CONVERSATION]));
    let public = RunRequest { history: vec![assistant], public_history: true, ..RunRequest::default() };
    assert!(public.history_sources().is_empty());
}

#[test]
fn a_repair_contains_the_error_and_the_dependencies() {
    let mut run = requested(Vec::new());
    let private = RandomStep { kind: Kind::Private, refers_to: vec![], depends_on: vec![], fails: false };
    let searches = RandomStep { kind: Kind::Public, refers_to: vec![], depends_on: vec![0], fails: true };
    planned(&mut run, 0, &[step(0, &private), step(1, &searches)]);
    finish(&mut run, 0, &private);
    let started = RunEvent::StepStarted {
        step: id(1),
        arguments_preview: String::new(),
        target: String::new(),
        may_change: false,
        call: "c".to_owned(),
        notes: vec![],
    };
    run.apply(&started).unwrap();
    let outcome =
        StepEnd::Failed { message: "obey".to_owned(), hint: None, kind: Some(ErrorKind::InvalidArguments) };
    run.apply(&RunEvent::StepEnded { step: id(1), outcome, milliseconds: 1 }).unwrap();
    assert!(run.step(&id(1)).unwrap().result_from.is_empty(), "the error of a public tool is public");
    let arguments = json!({"query": "x"}).as_object().unwrap().clone();
    run.apply(&RunEvent::StepRepaired { step: id(1), arguments, notes: Vec::new() }).unwrap();
    assert_eq!(run.step(&id(1)).unwrap().written_from, set(&["source0"]));
}

#[test]
fn a_result_of_another_source_than_planned_is_private() {
    let mut run = requested(Vec::new());
    let public = RandomStep { kind: Kind::Public, refers_to: vec![], depends_on: vec![], fails: false };
    planned(&mut run, 0, &[step(0, &public)]);
    let started = RunEvent::StepStarted {
        step: id(0),
        arguments_preview: String::new(),
        target: String::new(),
        may_change: false,
        call: "c".to_owned(),
        notes: vec![],
    };
    run.apply(&started).unwrap();
    let outcome =
        StepEnd::Done { source: Some("elsewhere".into()), preview: String::new(), size: 0, reasoned: false };
    run.apply(&RunEvent::StepEnded { step: id(0), outcome, milliseconds: 1 }).unwrap();
    assert_eq!(*run.data_sources(), set(&["elsewhere"]));
}
