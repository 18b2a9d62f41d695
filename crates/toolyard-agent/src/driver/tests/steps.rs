//! Plans, steps and answers.

use std::sync::Arc;

use futures_util::stream;
use serde_json::json;
use toolyard_core::ErrorKind;
use toolyard_model::{
    FinishReason, Model, ModelError, ModelErrorKind, ModelEvent, ModelReply, ModelRequest, ModelStream,
    ScriptedModel, ToolCalling, Usage,
};

use super::*;
use crate::{CancelToken, ModelTask, RunEnd, RunEvent, RunLimit, RunLimits, RunRequest, RunUpdate, StepEnd};

/// A model that returns a plan, and breaks off every other reply.
#[derive(Debug)]
struct BreakingModel {
    plan: String,
    partial: &'static str,
}

impl Model for BreakingModel {
    fn name(&self) -> &'static str {
        "breaking"
    }

    fn tool_calling(&self) -> ToolCalling {
        ToolCalling::Schema
    }

    fn cost(&self, usage: &Usage) -> Option<u64> {
        Some(usage.output * 2)
    }

    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        let broken = ModelError::new("breaking", ModelErrorKind::Unreachable, "broke off");
        let events = match request.schema.as_ref().map(|schema| schema.name.as_str()) {
            Some("plan") => vec![Ok(ModelEvent::Text(self.plan.clone()))],
            _ => {
                let used = Usage { input: 10, output: 4_000, ..Usage::default() };
                vec![Ok(ModelEvent::Text(self.partial.to_owned())), Err(broken.with_usage(used))]
            }
        };
        Box::pin(stream::iter(events))
    }
}

pub(super) fn answer_of(end: &RunEnd) -> &str {
    match end {
        RunEnd::Answered { answer, .. } => answer,
        other => panic!("{other:?}"),
    }
}

fn partial_answer(end: &RunEnd) -> &str {
    match end {
        RunEnd::Partial { answer, .. } => answer,
        other => panic!("{other:?}"),
    }
}

fn failed_kind(end: &StepEnd) -> Option<ErrorKind> {
    match end {
        StepEnd::Failed { kind, .. } => *kind,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_without_tools_needs_one_model_request() {
    let fixture = Fixture::new(replying([json!({"steps": [], "answer": "Hello!"}).to_string()]), &[]);
    let watcher = RecordingWatcher::default();
    let (run, end) = fixture.agent.ask(request("hi"), &watcher, &CancelToken::new()).await.unwrap();
    assert_eq!(answer_of(&end), "Hello!");
    assert_eq!(fixture.model.requests().len(), 1);
    assert_eq!(fixture.events(&run).await.len(), 3, "requested, replied, ended");
    let is_streamed = watcher
        .updates
        .lock()
        .iter()
        .any(|update| matches!(update, RunUpdate::AnswerDelta { text, .. } if text == "Hello!"));
    assert!(is_streamed, "the answer is streamed");
    assert_eq!(fixture.resume(&run).await, end, "a finished run is not driven again");
    assert_eq!(fixture.model.requests().len(), 1);
}

/// The streamed text, with `|` where it was discarded.
fn streamed(watcher: &RecordingWatcher) -> String {
    let updates = watcher.updates.lock();
    let streamed_text = |update: &RunUpdate| match update {
        RunUpdate::AnswerDelta { text, .. } => Some(text.clone()),
        RunUpdate::AnswerDiscarded => Some("|".to_owned()),
        _ => None,
    };
    updates.iter().filter_map(streamed_text).collect()
}

#[tokio::test(start_paused = true)]
async fn immediate_answers_are_streamed_and_text_before_a_call_is_discarded() {
    let call = "I look.\n<tool_call>{\"name\": \"read\", \"arguments\": {}}</tool_call>";
    let mut replies = [call, "It is 7."].map(str::to_owned).into_iter();
    let model = ScriptedModel::new(ToolCalling::Text, move |_| {
        Ok(ModelReply { text: replies.next().unwrap_or_default(), ..ModelReply::default() })
    });
    let fixture = Fixture::new(model, &[tool("read", Behavior::Return(json!({"x": 7})))]);
    let watcher = RecordingWatcher::default();
    let (_, end) = fixture.agent.ask(request("what is x?"), &watcher, &CancelToken::new()).await.unwrap();
    assert_eq!((answer_of(&end), streamed(&watcher).as_str()), ("It is 7.", "I look.|It is 7."));
    let certain = |update: &RunUpdate| match update {
        RunUpdate::AnswerDelta { text, tentative: false } => Some(text.clone()),
        _ => None,
    };
    let certain: String = watcher.updates.lock().iter().filter_map(certain).collect();
    assert_eq!(certain, "It is 7.", "text before calls is tentative");

    let fixture = Fixture::new(replying([json!({"answer": "Hello!"}).to_string()]), &[]);
    let watcher = RecordingWatcher::default();
    fixture.agent.ask(request("hi"), &watcher, &CancelToken::new()).await.unwrap();
    assert_eq!(streamed(&watcher), "Hello!", "the answer is streamed once");
}

#[tokio::test(start_paused = true)]
async fn values_are_passed_by_reference_and_not_through_prompts() {
    let rows: Vec<u64> = (0..50_000).collect();
    let plan = plan(&[
        ("read", "read", json!({"file": "a"}), &[]),
        ("sum", "sum", json!({"values": "$read.rows", "label": "first: $read.rows[0]"}), &[]),
    ]);
    let fixture = Fixture::new(
        replying([plan, "The sum is right.".to_owned()]),
        &[
            tool("read", Behavior::Return(json!({"rows": rows, "marker": "MARKER".repeat(9_000)}))),
            tool("sum", Behavior::Echo),
        ],
    );
    let (run, end) = fixture.ask(request("sum the rows of a")).await;
    assert_eq!(answer_of(&end), "The sum is right.");
    let received = fixture.arguments_of("sum");
    assert_eq!(received[0]["values"].as_array().unwrap().len(), 50_000);
    assert_eq!(received[0]["label"], "first: 0");
    assert_eq!(fixture.model.requests().len(), 2, "a plan and an answer");
    for request in fixture.model.requests() {
        let text: String = request.messages.iter().map(|message| message.text.as_str()).collect();
        assert!(text.len() < 20_000, "{} characters went through a prompt", text.len());
    }
    let StepEnd::Done { preview, size, .. } = fixture.step_end(&run, "read").await else { panic!() };
    assert!(preview.len() < 2_000 && size > 300_000);
    let RunEnd::Answered { sources, .. } = end else { panic!() };
    assert_eq!(sources, ["read (local)", "sum (local)"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_step_skips_only_its_dependents() {
    let plan = plan(&[
        ("bad", "bad", json!({}), &[]),
        ("after", "echo", json!({"x": "$bad.x"}), &[]),
        ("good", "echo", json!({"y": 1}), &[]),
    ]);
    let fixture = Fixture::new(
        replying([plan, "Half of it.".to_owned()]),
        &[failing("bad", ErrorKind::Refused), tool("echo", Behavior::Echo)],
    );
    let (run, end) = fixture
        .ask(RunRequest { limits: RunLimits { replans: 0, ..RunLimits::default() }, ..request("?") })
        .await;
    assert_eq!(partial_answer(&end), "Half of it.");
    assert_eq!(failed_kind(&fixture.step_end(&run, "bad").await), Some(ErrorKind::Refused));
    assert_eq!(fixture.step_end(&run, "after").await, StepEnd::Skipped { because: "bad".to_owned() });
    assert!(matches!(fixture.step_end(&run, "good").await, StepEnd::Done { .. }));
}

#[tokio::test(start_paused = true)]
async fn the_arguments_of_a_failed_step_go_to_no_other_source() {
    let plan = plan(&[("find", "search_diary", json!({"query": "Anna"}), &[])]);
    let fixture = Fixture::new(
        replying([plan, "Nothing found.".to_owned()]),
        &[
            failing("search_diary", ErrorKind::Unavailable).with_source("diary").keeps_inside(),
            tool("search_everything", Behavior::Echo)
                .with_source("spy")
                .keeps_inside()
                .with_capability("search"),
        ],
    );
    let (run, _) = fixture
        .ask(RunRequest { limits: RunLimits { replans: 0, ..RunLimits::default() }, ..request("?") })
        .await;
    assert_eq!(failed_kind(&fixture.step_end(&run, "find").await), Some(ErrorKind::Unavailable));
    assert_eq!(fixture.arguments_of("search_everything"), [json!(null); 0]);
}

#[tokio::test(start_paused = true)]
async fn a_run_without_any_success_fails_without_asking_a_model() {
    let plan = plan(&[("bad", "bad", json!({}), &[])]);
    let fixture = Fixture::new(replying([plan]), &[failing("bad", ErrorKind::Unavailable)]);
    let (_, end) = fixture
        .ask(RunRequest { limits: RunLimits { replans: 0, ..RunLimits::default() }, ..request("?") })
        .await;
    let RunEnd::Failed { message, hint, .. } = end else { panic!("{end:?}") };
    assert!(message.contains("bad") && message.contains("as scripted"), "{message}");
    assert_eq!(hint.as_deref(), Some("try something else"));
    assert_eq!(fixture.model.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn arguments_are_repaired_once() {
    let plan = plan(&[("a", "picky", json!({"wrong": 1}), &[])]);
    let fixture = Fixture::new(
        replying([plan, json!({"right": 1}).to_string(), "Done.".to_owned()]),
        &[tool("picky", Behavior::Require("right"))],
    );
    let (run, end) = fixture.ask(request("?")).await;
    assert_eq!(answer_of(&end), "Done.");
    assert_eq!(fixture.arguments_of("picky"), [json!({"wrong": 1}), json!({"right": 1})]);
    let is_repaired =
        fixture.events(&run).await.iter().any(|event| matches!(event, RunEvent::StepRepaired { .. }));
    assert!(is_repaired);

    // The same arguments are no repair.
    let plan = super::plan(&[("a", "picky", json!({"wrong": 1}), &[])]);
    let same = json!({"wrong": 1}).to_string();
    let fixture = Fixture::new(replying([plan, same]), &[tool("picky", Behavior::Require("right"))]);
    let (run, end) = fixture
        .ask(RunRequest { limits: RunLimits { replans: 0, ..RunLimits::default() }, ..request("?") })
        .await;
    assert!(matches!(end, RunEnd::Failed { .. }), "{end:?}");
    assert_eq!(fixture.arguments_of("picky").len(), 1);
    let is_rejected =
        fixture.events(&run).await.iter().any(|event| matches!(event, RunEvent::RepairFailed { .. }));
    assert!(is_rejected);
}

#[tokio::test(start_paused = true)]
async fn an_unresolvable_reference_is_repaired_or_fails_its_step() {
    let plan = plan(&[
        ("read", "read", json!({}), &[]),
        ("use", "echo", json!({"x": "$read.nothing.of.this"}), &[]),
    ]);
    let tools = [
        tool("read", Behavior::Return(json!({"rows": [1], "other": {"a": 2}}))),
        tool("echo", Behavior::Echo),
    ];
    let better = json!({"x": "$read.rows"}).to_string();
    let fixture = Fixture::new(replying([plan.clone(), better, "Yes.".to_owned()]), &tools);
    let (_, end) = fixture.ask(request("?")).await;
    assert_eq!(answer_of(&end), "Yes.");
    assert_eq!(fixture.arguments_of("echo"), [json!({"x": [1]})]);

    let fixture = Fixture::new(replying([plan, "no idea".to_owned()]), &tools);
    let (run, end) = fixture
        .ask(RunRequest { limits: RunLimits { replans: 0, ..RunLimits::default() }, ..request("?") })
        .await;
    assert_eq!(partial_answer(&end), "no idea");
    assert_eq!(failed_kind(&fixture.step_end(&run, "use").await), Some(ErrorKind::InvalidArguments));
    assert!(fixture.arguments_of("echo").is_empty(), "the step was not called");
}

#[tokio::test(start_paused = true)]
async fn plan_problems_are_reported_to_the_planner_once() {
    let tools = [tool("echo", Behavior::Echo)];
    for broken in [
        plan(&[("a", "echo", json!({"n": 1}), &["b"]), ("b", "echo", json!({"n": 2}), &["a"])]),
        plan(&[("a", "no_such_tool_anywhere", json!({"x": 1}), &[])]),
        plan(&[("a", "echo", json!({"x": "$missing.value"}), &[])]),
        "I would rather not { say".to_owned(),
    ] {
        let good = plan(&[("a", "echo", json!({"x": 1}), &[])]);
        let fixture = Fixture::new(replying([broken.clone(), good, "Fine.".to_owned()]), &tools);
        let (run, end) = fixture.ask(request("?")).await;
        let requests = fixture.model.requests();
        if requests.len() == 1 {
            // Text that is no plan may be read as an answer.
            assert!(!broken.starts_with('{') && matches!(end, RunEnd::Answered { .. }));
            continue;
        }
        assert_eq!(answer_of(&end), "Fine.", "{broken}");
        let is_rejected =
            fixture.events(&run).await.iter().any(|event| matches!(event, RunEvent::PlanRejected { .. }));
        assert!(is_rejected, "{broken}");

        let fixture = Fixture::new(replying([broken.clone()]), &tools);
        let (_, end) = fixture.ask(request("?")).await;
        assert!(matches!(end, RunEnd::Failed { .. }), "{broken}: {end:?}");
        assert_eq!(fixture.model.requests().len(), 2, "the model is asked for a correction once");
    }
}

#[tokio::test(start_paused = true)]
async fn failed_steps_lead_to_a_new_plan() {
    let first = plan(&[("a", "echo", json!({"x": 1}), &[]), ("b", "bad", json!({}), &[])]);
    let second = plan(&[("c", "echo", json!({"y": "$a.x"}), &[])]);
    let fixture = Fixture::new(
        replying([first, second, "Found another way.".to_owned()]),
        &[tool("echo", Behavior::Echo), failing("bad", ErrorKind::Unavailable)],
    );
    let (run, end) = fixture.ask(request("?")).await;
    assert_eq!(answer_of(&end), "Found another way.");
    assert_eq!(fixture.arguments_of("echo"), [json!({"x": 1}), json!({"y": 1})], "earlier results are used");
    let plans =
        fixture.events(&run).await.iter().filter(|event| matches!(event, RunEvent::Planned { .. })).count();
    assert_eq!(plans, 2);
}

#[tokio::test(start_paused = true)]
async fn without_a_model_a_run_fails_or_answers_with_its_last_result() {
    let fixture = Fixture::new(replying(["unreachable".to_owned()]), &[]);
    let (_, end) = fixture.ask(request("?")).await;
    let RunEnd::Failed { message, hint, .. } = end else { panic!("{end:?}") };
    assert!(message.contains("cannot be reached") && hint.as_deref() == Some("start it"));

    let plan = plan(&[("a", "echo", json!({"x": 1}), &[])]);
    let fixture = Fixture::new(replying([plan, "unreachable".to_owned()]), &[tool("echo", Behavior::Echo)]);
    let (_, end) = fixture.ask(request("?")).await;
    assert!(answer_of(&end).contains(r#"{"x":1}"#), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn answers_without_a_model_are_in_the_language_of_the_question() {
    let question = || request("读取文件，告诉我里面的内容");
    let steps = || plan(&[("a", "echo", json!({"x": 1}), &[])]);
    let no_replans = RunLimits { replans: 0, ..RunLimits::default() };

    let fixture =
        Fixture::new(replying([plan(&[("a", "bad", json!({}), &[])])]), &[failing("bad", ErrorKind::Failed)]);
    let (_, end) = fixture.ask(RunRequest { limits: no_replans.clone(), ..question() }).await;
    assert!(matches!(&end, RunEnd::Failed { message, .. } if message.starts_with("没有步骤成功")), "{end:?}");

    let fixture =
        Fixture::new(replying([steps(), "unreachable".to_owned()]), &[tool("echo", Behavior::Echo)]);
    let (_, end) = fixture.ask(question()).await;
    assert!(answer_of(&end).contains("来源："), "{end:?}");

    let mut texts = [steps(), "内容是".to_owned()].into_iter();
    let model = ScriptedModel::new(ToolCalling::Schema, move |_| {
        let (text, finish) = (texts.next().unwrap_or_default(), FinishReason::Length);
        let finish = if text.starts_with('{') { FinishReason::Stop } else { finish };
        Ok(ModelReply { text, finish_reason: finish, ..ModelReply::default() })
    });
    let fixture = Fixture::new(model, &[tool("echo", Behavior::Echo)]);
    let (_, end) = fixture.ask(question()).await;
    assert!(answer_of(&end).contains("回答到此中断"), "{end:?}");

    let fixture = Fixture::new(
        replying([plan(&[("w", "write", json!({}), &[])])]),
        &[tool("write", Behavior::Echo).writes()],
    );
    let (_, end) = fixture.ask(RunRequest { dry_run: true, ..question() }).await;
    assert!(answer_of(&end).starts_with("什么都没有改变"), "{end:?}");

    let fixture = Fixture::new(replying([plan(&[("a", "nowhere", json!({}), &[])])]), &[]);
    let (_, end) = fixture.ask(question()).await;
    let RunEnd::Failed { message, hint, .. } = &end else { panic!("{end:?}") };
    assert!(message.starts_with("无法制定计划") && hint.as_deref().unwrap().contains("模型"), "{end:?}");
}

/// The streamed answer, and how often it was discarded.
fn streamed_answer(watcher: &RecordingWatcher) -> (String, usize) {
    let updates = watcher.updates.lock();
    updates.iter().fold((String::new(), 0), |(text, times), update| match update {
        RunUpdate::AnswerDelta { text: more, .. } => (text + more, times),
        RunUpdate::AnswerDiscarded => (String::new(), times + 1),
        _ => (text, times),
    })
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_answer_is_discarded_before_another_is_streamed() {
    let steps = plan(&[("a", "echo", json!({"x": 1}), &[])]);
    let fixture = Fixture::with_model(
        Arc::new(BreakingModel { plan: steps, partial: "Half an answe" }),
        &[tool("echo", Behavior::Echo)],
    );
    let watcher = RecordingWatcher::default();
    let (_, end) = fixture.agent.ask(request("?"), &watcher, &CancelToken::new()).await.unwrap();
    assert!(answer_of(&end).starts_with(r#"{"x":1}"#), "{end:?}");
    assert_eq!(streamed_answer(&watcher), (answer_of(&end).to_owned(), 1));
}

#[tokio::test(start_paused = true)]
async fn interrupted_replies_count_towards_the_limits() {
    let steps = plan(&[("a", "none", json!({}), &[])]);
    let fixture = Fixture::with_model(Arc::new(BreakingModel { plan: steps, partial: "Hm" }), &[]);
    let (run, _) = fixture
        .ask(RunRequest { limits: RunLimits { replans: 0, ..RunLimits::default() }, ..request("?") })
        .await;
    let (state, _) = crate::load_run(&fixture.log, &run).await.unwrap();
    let spent = state.usage().model;
    assert!(spent.output > 4_000 && spent.cost_micros == 2 * spent.output, "{spent:?}");
    // The next model request exceeds the limit.
    let steps = plan(&[
        ("a", "none", json!({}), &[]),
        ("b", "echo", json!({"x": "$a"}), &[]),
        ("c", "echo", json!({}), &[]),
    ]);
    let model = BreakingModel { plan: steps, partial: "Hm" };
    let fixture = Fixture::with_model(Arc::new(model), &[tool("echo", Behavior::Echo).with_delay_ms(100)]);
    for limits in [
        RunLimits { tokens: 4_500, ..RunLimits::default() },
        RunLimits { cost_micros: 8_000, ..RunLimits::default() },
    ] {
        let (_, end) =
            fixture.ask(RunRequest { limits: RunLimits { replans: 0, ..limits }, ..request("?") }).await;
        assert!(
            matches!(end, RunEnd::LimitReached { limit: RunLimit::Tokens | RunLimit::Cost, .. }),
            "{end:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn answers_are_stripped_of_tool_calls_and_reasoning() {
    for (reply, answer) in [
        ("thinking</think>It is 1.", "It is 1."),
        (
            "<tool_call>{\"name\": \"echo\", \"arguments\": {\"x\": 2}}</tool_call>",
            "{\"x\":1}\n\nSources: echo (local)",
        ),
        ("It is 1.", "It is 1."),
    ] {
        let steps = plan(&[("a", "echo", json!({"x": 1}), &[])]);
        let fixture = Fixture::new(replying([steps, reply.to_owned()]), &[tool("echo", Behavior::Echo)]);
        let watcher = RecordingWatcher::default();
        let (_, end) = fixture.agent.ask(request("?"), &watcher, &CancelToken::new()).await.unwrap();
        assert_eq!(answer_of(&end), answer);
        assert_eq!(streamed_answer(&watcher), (answer.to_owned(), usize::from(reply != answer)));
        assert_eq!(fixture.calls().len(), 1, "an answer calls nothing");
    }
}

#[tokio::test(start_paused = true)]
async fn a_truncated_answer_ends_with_a_notice() {
    let steps = plan(&[("a", "echo", json!({"x": 1}), &[])]);
    let mut texts = vec!["It is the".to_owned(), steps];
    let model = ScriptedModel::new(ToolCalling::Schema, move |_| {
        let finish = if texts.len() == 1 { FinishReason::Length } else { FinishReason::Stop };
        Ok(ModelReply {
            text: texts.pop().unwrap_or_default(),
            finish_reason: finish,
            ..ModelReply::default()
        })
    });
    let fixture = Fixture::new(model, &[tool("echo", Behavior::Echo)]);
    let watcher = RecordingWatcher::default();
    let (_, end) = fixture.agent.ask(request("?"), &watcher, &CancelToken::new()).await.unwrap();
    assert!(matches!(end, RunEnd::Answered { truncated: true, .. }), "{end:?}");
    assert!(answer_of(&end).starts_with("It is the\n\n[The answer ends here"), "{end:?}");
    assert_eq!(streamed_answer(&watcher), (answer_of(&end).to_owned(), 0));
}

#[tokio::test(start_paused = true)]
async fn a_model_produces_the_result_of_a_step_without_a_tool() {
    let plan = plan(&[("think", "none", json!({}), &[]), ("use", "echo", json!({"x": "$think"}), &[])]);
    let fixture =
        Fixture::new(replying([plan, "42".to_owned(), "Done.".to_owned()]), &[tool("echo", Behavior::Echo)]);
    let (run, end) = fixture.ask(request("?")).await;
    assert_eq!(answer_of(&end), "Done.");
    assert_eq!(fixture.arguments_of("echo"), [json!({"x": 42})]);
    let is_reasoning_reply =
        |event: &RunEvent| matches!(event, RunEvent::ModelReplied { task: ModelTask::Reason { .. }, .. });
    assert!(fixture.events(&run).await.iter().any(is_reasoning_reply));
}

#[tokio::test(start_paused = true)]
async fn plan_only_and_dry_run_call_nothing_that_writes() {
    let steps = plan(&[
        ("r", "echo", json!({"x": 1}), &[]),
        ("w", "write", json!({"x": "$r.x"}), &[]),
        ("v", "echo", json!({"x": "$w"}), &[]),
    ]);
    let tools = [tool("echo", Behavior::Echo), tool("write", Behavior::Echo).writes()];
    let fixture = Fixture::new(replying([steps.clone()]), &tools);
    let (_, end) = fixture.ask(RunRequest { plan_only: true, ..request("?") }).await;
    assert_eq!((end, fixture.calls().len()), (RunEnd::Planned, 0));

    let fixture = Fixture::new(replying([steps, "It would write.".to_owned()]), &tools);
    let (run, end) = fixture.ask(RunRequest { dry_run: true, ..request("?") }).await;
    assert_eq!(answer_of(&end), "It would write.");
    assert_eq!(fixture.calls(), ["echo"], "only read-only tools are called");
    assert_eq!(fixture.step_end(&run, "w").await, StepEnd::Simulated);
    assert_eq!(fixture.step_end(&run, "v").await, StepEnd::Skipped { because: "w".to_owned() });
    let logged_arguments = fixture.events(&run).await.into_iter().find_map(|event| match event {
        RunEvent::StepStarted { step, arguments_preview, .. } if step == "w" => Some(arguments_preview),
        _ => None,
    });
    assert_eq!(logged_arguments.as_deref(), Some(r#"{"x":1}"#), "the arguments are logged");
}

#[tokio::test(start_paused = true)]
async fn every_limit_ends_a_run() {
    let id_and_arguments: Vec<(String, serde_json::Value)> =
        (0..6).map(|at| (format!("s{at}"), json!({"n": at}))).collect();
    let steps: Vec<_> = id_and_arguments
        .iter()
        .map(|(id, arguments)| (id.as_str(), "echo", arguments.clone(), &[][..]))
        .collect();
    let different = plan(&steps);
    let mut steps: Vec<_> =
        id_and_arguments.iter().map(|(id, _)| (id.as_str(), "echo", json!({"n": 0}), &[][..])).collect();
    // Without a dependent step, repeated calls would be removed from the plan.
    steps.push(("all", "echo", json!({"n": ["$s0", "$s1", "$s2", "$s3", "$s4", "$s5"]}), &[][..]));
    let same = plan(&steps);
    let base = RunLimits::default;
    for (text, limits, expected) in [
        (&different, RunLimits { calls: 4, ..base() }, RunLimit::Calls),
        (&same, RunLimits { identical_calls: 2, ..base() }, RunLimit::IdenticalCalls),
        (&different, RunLimits { model_calls: 1, ..base() }, RunLimit::ModelCalls),
        (&different, RunLimits { tokens: 10, ..base() }, RunLimit::Tokens),
        (&different, RunLimits { steps: 3, ..base() }, RunLimit::Steps),
    ] {
        let fixture = Fixture::new(replying([text.clone()]), &[tool("echo", Behavior::Echo)]);
        let (_, end) = fixture.ask(RunRequest { limits: limits.clone(), ..request("?") }).await;
        let RunEnd::LimitReached { limit, message } = end else { panic!("{expected:?}: {end:?}") };
        assert_eq!(limit, expected, "{message}");
        assert!(
            fixture.calls().len() <= limits.calls
                && fixture.model.requests().len() <= limits.model_calls.max(1)
        );
        if expected == RunLimit::IdenticalCalls {
            assert_eq!(fixture.calls().len(), 2);
        }
        if expected == RunLimit::Calls {
            assert!(fixture.calls().len() == 4 && message.contains("Found so far"), "{message}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_watcher_sees_progress_of_tools() {
    let plan = plan(&[("a", "echo", json!({"x": 1}), &[])]);
    let fixture =
        Fixture::new(replying([plan, "Done.".to_owned()]), &[tool("echo", Behavior::Echo).with_delay_ms(10)]);
    let watcher = RecordingWatcher::default();
    fixture.agent.ask(request("?"), &watcher, &CancelToken::new()).await.unwrap();
    let expected = RunUpdate::StepProgress { step: "a".to_owned(), message: "half way".to_owned() };
    assert!(watcher.updates.lock().contains(&expected));
}

#[tokio::test(start_paused = true)]
async fn a_judge_can_reject_a_result() {
    let plan = plan(&[("a", "echo", json!({"x": 1}), &[])]);
    let verdict = json!({"verified": false, "confidence": 0.1, "issues": ["that is not it"]}).to_string();
    let better = json!({"x": 2}).to_string();
    let good = json!({"verified": true, "confidence": 0.9, "issues": []}).to_string();
    let fixture = Fixture::new(
        replying([plan, verdict, better, good, "Done.".to_owned()]),
        &[tool("echo", Behavior::Echo)],
    );
    let (_, end) = fixture.ask(RunRequest { judge: true, ..request("?") }).await;
    assert_eq!(answer_of(&end), "Done.");
    assert_eq!(fixture.arguments_of("echo"), [json!({"x": 1}), json!({"x": 2})]);
}

#[tokio::test(start_paused = true)]
async fn a_judgement_that_cannot_be_read_leaves_a_note() {
    let plan = plan(&[("a", "echo", json!({"x": 1}), &[])]);
    let unreadable = "{\"verified\": true, \"confi".to_owned();
    let fixture =
        Fixture::new(replying([plan, unreadable, "Done.".to_owned()]), &[tool("echo", Behavior::Echo)]);
    let (id, end) = fixture.ask(RunRequest { judge: true, ..request("?") }).await;
    assert_eq!(answer_of(&end), "Done.");
    let events = fixture.events(&id).await;
    let verification = |event: &RunEvent| match event {
        RunEvent::Verified { verification, .. } => Some(verification.clone()),
        _ => None,
    };
    let found = events.iter().rev().find_map(verification).unwrap();
    assert!(found.verified && found.issues.iter().any(|issue| issue.starts_with("not judged")), "{found:?}");
}
