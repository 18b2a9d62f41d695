//! What becomes of questions, plans and steps.

use std::sync::Arc;

use futures_util::stream;
use serde_json::json;
use toolyard_core::ErrorKind;
use toolyard_model::{
    FinishReason, Model, ModelError, ModelErrorKind, ModelEvent, ModelReply, ModelRequest, ModelStream,
    ScriptedModel, ToolCalling, Usage,
};

use super::*;
use crate::{CancelToken, Cap, Caps, ModelTask, RunEnd, RunEvent, RunNews, StepEnd};

/// A model that gives a plan, and breaks off whatever else it says.
#[derive(Debug)]
struct Breaking {
    plan: String,
    heard: &'static str,
}

impl Model for Breaking {
    fn name(&self) -> &'static str {
        "breaking"
    }

    fn tool_calling(&self) -> ToolCalling {
        ToolCalling::Schema
    }

    fn cost(&self, usage: &Usage) -> u64 {
        usage.output * 2
    }

    fn generate<'a>(&'a self, request: &'a ModelRequest) -> ModelStream<'a> {
        let broken = ModelError::new("breaking", ModelErrorKind::Unreachable, "broke off");
        let events = match request.schema {
            Some(_) => vec![Ok(ModelEvent::Text(self.plan.clone()))],
            None => {
                let used = Usage { input: 10, output: 4_000, ..Usage::default() };
                vec![Ok(ModelEvent::Text(self.heard.to_owned())), Err(broken.having_used(used))]
            }
        };
        Box::pin(stream::iter(events))
    }
}

fn answered(end: &RunEnd) -> &str {
    match end {
        RunEnd::Answered { answer, .. } => answer,
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
async fn a_question_that_needs_no_tool_costs_one_request() {
    let house = House::new(saying([json!({"steps": [], "answer": "Hello!"}).to_string()]), &[]);
    let watcher = Seen::default();
    let (run, end) = house.agent.ask(ask("hi"), &watcher, &CancelToken::new()).await.unwrap();
    assert_eq!(answered(&end), "Hello!");
    assert_eq!(house.model.requests().len(), 1);
    assert_eq!(house.events(&run).await.len(), 3, "asked, answered, ended");
    let said = watcher
        .news
        .lock()
        .unwrap()
        .iter()
        .any(|news| matches!(news, RunNews::AnswerDelta { text, .. } if text == "Hello!"));
    assert!(said, "whoever only listens to pieces hears it too");
    assert_eq!(house.resume(&run).await, end, "a run that is over is only told about");
    assert_eq!(house.model.requests().len(), 1);
}

/// What whoever only listens to pieces hears, and `|` where it is told to forget it.
fn heard(watcher: &Seen) -> String {
    let news = watcher.news.lock().unwrap();
    let piece = |news: &RunNews| match news {
        RunNews::AnswerDelta { text, .. } => Some(text.clone()),
        RunNews::AnswerDropped => Some("|".to_owned()),
        _ => None,
    };
    news.iter().filter_map(piece).collect()
}

#[tokio::test(start_paused = true)]
async fn an_answer_at_once_is_told_as_it_comes_and_words_before_a_call_are_not_it() {
    let call = "I look. <tool_call>{\"name\": \"read\", \"arguments\": {}}</tool_call>";
    let mut replies = [call, "It is 7."].map(str::to_owned).into_iter();
    let model = ScriptedModel::new(ToolCalling::Text, move |_| {
        Ok(ModelReply { text: replies.next().unwrap_or_default(), ..ModelReply::default() })
    });
    let house = House::new(model, &[tool("read", Act::Answers(json!({"x": 7})))]);
    let watcher = Seen::default();
    let (_, end) = house.agent.ask(ask("what is x?"), &watcher, &CancelToken::new()).await.unwrap();
    assert_eq!((answered(&end), heard(&watcher).as_str()), ("It is 7.", "I look.|It is 7."));
    let certain = |news: &RunNews| match news {
        RunNews::AnswerDelta { text, tentative: false } => Some(text.clone()),
        _ => None,
    };
    let certain: String = watcher.news.lock().unwrap().iter().filter_map(certain).collect();
    assert_eq!(certain, "It is 7.", "what may be followed by calls is said to be so");

    let house = House::new(saying([json!({"answer": "Hello!"}).to_string()]), &[]);
    let watcher = Seen::default();
    house.agent.ask(ask("hi"), &watcher, &CancelToken::new()).await.unwrap();
    assert_eq!(heard(&watcher), "Hello!", "once, although it is told before it is read as a whole");
}

#[tokio::test(start_paused = true)]
async fn values_pass_whole_with_their_types_and_never_through_a_prompt() {
    let rows: Vec<u64> = (0..50_000).collect();
    let plan = plan(&[
        ("read", "read", json!({"file": "a"}), &[]),
        ("sum", "sum", json!({"values": "$read.rows", "label": "first: $read.rows[0]"}), &[]),
    ]);
    let house = House::new(
        saying([plan, "The sum is right.".to_owned()]),
        &[
            tool("read", Act::Answers(json!({"rows": rows, "marker": "MARKER".repeat(9_000)}))),
            tool("sum", Act::Echoes),
        ],
    );
    let (run, end) = house.ask(ask("sum the rows of a")).await;
    assert_eq!(answered(&end), "The sum is right.");
    let got = house.arguments_of("sum");
    assert_eq!(got[0]["values"].as_array().unwrap().len(), 50_000);
    assert_eq!(got[0]["label"], "first: 0");
    assert_eq!(house.model.requests().len(), 2, "a plan and an answer");
    for request in house.model.requests() {
        let text: String = request.messages.iter().map(|message| message.text.as_str()).collect();
        assert!(text.len() < 20_000, "{} characters went through a prompt", text.len());
    }
    let StepEnd::Done { preview, size, .. } = house.end_of(&run, "read").await else { panic!() };
    assert!(preview.len() < 2_000 && size > 300_000);
    let RunEnd::Answered { sources, .. } = end else { panic!() };
    assert_eq!(sources, ["read (yard)", "sum (yard)"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_step_fails_only_what_depends_on_it() {
    let plan = plan(&[
        ("bad", "bad", json!({}), &[]),
        ("after", "echo", json!({"x": "$bad.x"}), &[]),
        ("good", "echo", json!({"y": 1}), &[]),
    ]);
    let house = House::new(
        saying([plan, "Half of it.".to_owned()]),
        &[failing("bad", ErrorKind::Refused), tool("echo", Act::Echoes)],
    );
    let (run, end) = house.ask(Ask { caps: Caps { replans: 0, ..Caps::default() }, ..ask("?") }).await;
    assert_eq!(answered(&end), "Half of it.");
    assert_eq!(failed_kind(&house.end_of(&run, "bad").await), Some(ErrorKind::Refused));
    assert_eq!(house.end_of(&run, "after").await, StepEnd::Skipped { because: "bad".to_owned() });
    assert!(matches!(house.end_of(&run, "good").await, StepEnd::Done { .. }));
}

use crate::Ask;

#[tokio::test(start_paused = true)]
async fn when_everything_fails_that_is_said_without_a_model() {
    let plan = plan(&[("bad", "bad", json!({}), &[])]);
    let house = House::new(saying([plan]), &[failing("bad", ErrorKind::Unavailable)]);
    let (_, end) = house.ask(Ask { caps: Caps { replans: 0, ..Caps::default() }, ..ask("?") }).await;
    let RunEnd::Failed { message, hint } = end else { panic!("{end:?}") };
    assert!(message.contains("bad") && message.contains("as scripted"), "{message}");
    assert_eq!(hint.as_deref(), Some("try something else"));
    assert_eq!(house.model.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn better_arguments_are_asked_for_once() {
    let plan = plan(&[("a", "picky", json!({"wrong": 1}), &[])]);
    let house = House::new(
        saying([plan, json!({"right": 1}).to_string(), "Done.".to_owned()]),
        &[tool("picky", Act::Wants("right"))],
    );
    let (run, end) = house.ask(ask("?")).await;
    assert_eq!(answered(&end), "Done.");
    assert_eq!(house.arguments_of("picky"), [json!({"wrong": 1}), json!({"right": 1})]);
    let repaired =
        house.events(&run).await.iter().any(|event| matches!(event, RunEvent::StepRepaired { .. }));
    assert!(repaired);

    // The same arguments again are no better ones.
    let plan = super::plan(&[("a", "picky", json!({"wrong": 1}), &[])]);
    let same = json!({"wrong": 1}).to_string();
    let house = House::new(saying([plan, same]), &[tool("picky", Act::Wants("right"))]);
    let (run, end) = house.ask(Ask { caps: Caps { replans: 0, ..Caps::default() }, ..ask("?") }).await;
    assert!(matches!(end, RunEnd::Failed { .. }), "{end:?}");
    assert_eq!(house.arguments_of("picky").len(), 1);
    let refused =
        house.events(&run).await.iter().any(|event| matches!(event, RunEvent::RepairRefused { .. }));
    assert!(refused);
}

#[tokio::test(start_paused = true)]
async fn a_reference_that_leads_nowhere_is_repaired_or_fails_its_step() {
    let plan = plan(&[
        ("read", "read", json!({}), &[]),
        ("use", "echo", json!({"x": "$read.nothing.of.this"}), &[]),
    ]);
    let tools =
        [tool("read", Act::Answers(json!({"rows": [1], "other": {"a": 2}}))), tool("echo", Act::Echoes)];
    let better = json!({"x": "$read.rows"}).to_string();
    let house = House::new(saying([plan.clone(), better, "Yes.".to_owned()]), &tools);
    let (_, end) = house.ask(ask("?")).await;
    assert_eq!(answered(&end), "Yes.");
    assert_eq!(house.arguments_of("echo"), [json!({"x": [1]})]);

    let house = House::new(saying([plan, "no idea".to_owned()]), &tools);
    let (run, end) = house.ask(Ask { caps: Caps { replans: 0, ..Caps::default() }, ..ask("?") }).await;
    assert_eq!(answered(&end), "no idea");
    assert_eq!(failed_kind(&house.end_of(&run, "use").await), Some(ErrorKind::InvalidArguments));
    assert!(house.arguments_of("echo").is_empty(), "nothing was called with it");
}

#[tokio::test(start_paused = true)]
async fn cycles_unknown_tools_and_missing_steps_are_shown_to_the_planner_once() {
    let tools = [tool("echo", Act::Echoes)];
    for broken in [
        plan(&[("a", "echo", json!({"n": 1}), &["b"]), ("b", "echo", json!({"n": 2}), &["a"])]),
        plan(&[("a", "no_such_tool_anywhere", json!({"x": 1}), &[])]),
        plan(&[("a", "echo", json!({"x": "$missing.value"}), &[])]),
        "I would rather not { say".to_owned(),
    ] {
        let good = plan(&[("a", "echo", json!({"x": 1}), &[])]);
        let house = House::new(saying([broken.clone(), good, "Fine.".to_owned()]), &tools);
        let (run, end) = house.ask(ask("?")).await;
        let requests = house.model.requests();
        if requests.len() == 1 {
            // What is no plan at all may be taken for an answer.
            assert!(!broken.starts_with('{') && matches!(end, RunEnd::Answered { .. }));
            continue;
        }
        assert_eq!(answered(&end), "Fine.", "{broken}");
        let refused =
            house.events(&run).await.iter().any(|event| matches!(event, RunEvent::PlanRefused { .. }));
        assert!(refused, "{broken}");

        let house = House::new(saying([broken.clone()]), &tools);
        let (_, end) = house.ask(ask("?")).await;
        assert!(matches!(end, RunEnd::Failed { .. }), "{broken}: {end:?}");
        assert_eq!(house.model.requests().len(), 2, "once");
    }
}

#[tokio::test(start_paused = true)]
async fn another_plan_is_made_when_steps_failed() {
    let first = plan(&[("a", "echo", json!({"x": 1}), &[]), ("b", "bad", json!({}), &[])]);
    let second = plan(&[("c", "echo", json!({"y": "$a.x"}), &[])]);
    let house = House::new(
        saying([first, second, "Found another way.".to_owned()]),
        &[tool("echo", Act::Echoes), failing("bad", ErrorKind::Unavailable)],
    );
    let (run, end) = house.ask(ask("?")).await;
    assert_eq!(answered(&end), "Found another way.");
    assert_eq!(house.arguments_of("echo"), [json!({"x": 1}), json!({"y": 1})], "what was done is used");
    let plans =
        house.events(&run).await.iter().filter(|event| matches!(event, RunEvent::Planned { .. })).count();
    assert_eq!(plans, 2);
}

#[tokio::test(start_paused = true)]
async fn without_its_model_a_run_fails_or_answers_with_its_last_result() {
    let house = House::new(saying(["unreachable".to_owned()]), &[]);
    let (_, end) = house.ask(ask("?")).await;
    let RunEnd::Failed { message, hint } = end else { panic!("{end:?}") };
    assert!(message.contains("cannot be reached") && hint.as_deref() == Some("start it"));

    let plan = plan(&[("a", "echo", json!({"x": 1}), &[])]);
    let house = House::new(saying([plan, "unreachable".to_owned()]), &[tool("echo", Act::Echoes)]);
    let (_, end) = house.ask(ask("?")).await;
    assert!(answered(&end).contains(r#"{"x":1}"#), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_said_without_a_model_is_in_the_language_of_the_question() {
    let question = || ask("读取文件，告诉我里面的内容");
    let steps = || plan(&[("a", "echo", json!({"x": 1}), &[])]);
    let once = Caps { replans: 0, ..Caps::default() };

    let house =
        House::new(saying([plan(&[("a", "bad", json!({}), &[])])]), &[failing("bad", ErrorKind::Failed)]);
    let (_, end) = house.ask(Ask { caps: once.clone(), ..question() }).await;
    assert!(matches!(&end, RunEnd::Failed { message, .. } if message.starts_with("没有步骤成功")), "{end:?}");

    let house = House::new(saying([steps(), "unreachable".to_owned()]), &[tool("echo", Act::Echoes)]);
    let (_, end) = house.ask(question()).await;
    assert!(answered(&end).contains("来源："), "{end:?}");

    let mut texts = [steps(), "内容是".to_owned()].into_iter();
    let model = ScriptedModel::new(ToolCalling::Schema, move |_| {
        let (text, finish) = (texts.next().unwrap_or_default(), FinishReason::Length);
        let finish = if text.starts_with('{') { FinishReason::Stop } else { finish };
        Ok(ModelReply { text, finish, ..ModelReply::default() })
    });
    let house = House::new(model, &[tool("echo", Act::Echoes)]);
    let (_, end) = house.ask(question()).await;
    assert!(answered(&end).contains("回答到此中断"), "{end:?}");

    let house =
        House::new(saying([plan(&[("w", "write", json!({}), &[])])]), &[tool("write", Act::Echoes).writes()]);
    let (_, end) = house.ask(Ask { dry_run: true, ..question() }).await;
    assert!(answered(&end).starts_with("什么都没有改变"), "{end:?}");

    let house = House::new(saying([plan(&[("a", "nowhere", json!({}), &[])])]), &[]);
    let (_, end) = house.ask(question()).await;
    let RunEnd::Failed { message, hint } = &end else { panic!("{end:?}") };
    assert!(message.starts_with("无法制定计划") && hint.as_deref().unwrap().contains("模型"), "{end:?}");
}

/// What whoever listens to pieces has of the answer in the end, and how often something was taken back.
fn told_in_the_end(watcher: &Seen) -> (String, usize) {
    let news = watcher.news.lock().unwrap();
    news.iter().fold((String::new(), 0), |(text, times), news| match news {
        RunNews::AnswerDelta { text: more, .. } => (text + more, times),
        RunNews::AnswerDropped => (String::new(), times + 1),
        _ => (text, times),
    })
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_broke_off_is_taken_back_before_another_is_told() {
    let steps = plan(&[("a", "echo", json!({"x": 1}), &[])]);
    let house = House::with_model(
        Arc::new(Breaking { plan: steps, heard: "Half an answe" }),
        &[tool("echo", Act::Echoes)],
    );
    let watcher = Seen::default();
    let (_, end) = house.agent.ask(ask("?"), &watcher, &CancelToken::new()).await.unwrap();
    assert!(answered(&end).starts_with(r#"{"x":1}"#), "{end:?}");
    assert_eq!(told_in_the_end(&watcher), (answered(&end).to_owned(), 1));
}

#[tokio::test(start_paused = true)]
async fn what_broke_off_is_paid_for_too() {
    let steps = plan(&[("a", "none", json!({}), &[])]);
    let house = House::with_model(Arc::new(Breaking { plan: steps, heard: "Hm" }), &[]);
    let (run, _) = house.ask(Ask { caps: Caps { replans: 0, ..Caps::default() }, ..ask("?") }).await;
    let (state, _) = crate::load(&house.log, &run).await.unwrap();
    let spent = state.spent().usage;
    assert!(spent.output > 4_000 && spent.cost_micros == 2 * spent.output, "{spent:?}");
    // Another thought is one too many.
    let steps = plan(&[("a", "none", json!({}), &[]), ("b", "echo", json!({}), &[])]);
    let model = Breaking { plan: steps, heard: "Hm" };
    let house = House::with_model(Arc::new(model), &[tool("echo", Act::Echoes).takes(100)]);
    for caps in [Caps { tokens: 4_500, ..Caps::default() }, Caps { cost_micros: 8_000, ..Caps::default() }] {
        let (_, end) = house.ask(Ask { caps: Caps { replans: 0, ..caps }, ..ask("?") }).await;
        assert!(matches!(end, RunEnd::Capped { cap: Cap::Tokens | Cap::Cost, .. }), "{end:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_told_without_remains_of_calls_and_thoughts() {
    for (said, told) in [
        ("thinking</think>It is 1.", "It is 1."),
        (
            "<tool_call>{\"name\": \"echo\", \"arguments\": {\"x\": 2}}</tool_call>",
            "{\"x\":1}\n\nSources: echo (yard)",
        ),
        ("It is 1.", "It is 1."),
    ] {
        let steps = plan(&[("a", "echo", json!({"x": 1}), &[])]);
        let house = House::new(saying([steps, said.to_owned()]), &[tool("echo", Act::Echoes)]);
        let watcher = Seen::default();
        let (_, end) = house.agent.ask(ask("?"), &watcher, &CancelToken::new()).await.unwrap();
        assert_eq!(answered(&end), told);
        assert_eq!(told_in_the_end(&watcher), (told.to_owned(), usize::from(said != told)));
        assert_eq!(house.calls().len(), 1, "nothing is called by an answer");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_cut_off_says_so() {
    let steps = plan(&[("a", "echo", json!({"x": 1}), &[])]);
    let mut texts = vec!["It is the".to_owned(), steps];
    let model = ScriptedModel::new(ToolCalling::Schema, move |_| {
        let finish = if texts.len() == 1 { FinishReason::Length } else { FinishReason::Stop };
        Ok(ModelReply { text: texts.pop().unwrap_or_default(), finish, ..ModelReply::default() })
    });
    let house = House::new(model, &[tool("echo", Act::Echoes)]);
    let watcher = Seen::default();
    let (_, end) = house.agent.ask(ask("?"), &watcher, &CancelToken::new()).await.unwrap();
    assert!(matches!(end, RunEnd::Answered { cut_off: true, .. }), "{end:?}");
    assert!(answered(&end).starts_with("It is the\n\n[The answer ends here"), "{end:?}");
    assert_eq!(told_in_the_end(&watcher), (answered(&end).to_owned(), 0));
}

#[tokio::test(start_paused = true)]
async fn a_step_without_a_tool_is_reasoned_out_and_can_be_used() {
    let plan = plan(&[("think", "none", json!({}), &[]), ("use", "echo", json!({"x": "$think"}), &[])]);
    let house = House::new(saying([plan, "42".to_owned(), "Done.".to_owned()]), &[tool("echo", Act::Echoes)]);
    let (run, end) = house.ask(ask("?")).await;
    assert_eq!(answered(&end), "Done.");
    assert_eq!(house.arguments_of("echo"), [json!({"x": 42})]);
    let asked =
        |event: &RunEvent| matches!(event, RunEvent::ModelAnswered { task: ModelTask::Reason { .. }, .. });
    assert!(house.events(&run).await.iter().any(asked));
}

#[tokio::test(start_paused = true)]
async fn only_a_plan_and_only_a_rehearsal() {
    let steps = plan(&[
        ("r", "echo", json!({"x": 1}), &[]),
        ("w", "write", json!({"x": "$r.x"}), &[]),
        ("v", "echo", json!({"x": "$w"}), &[]),
    ]);
    let tools = [tool("echo", Act::Echoes), tool("write", Act::Echoes).writes()];
    let house = House::new(saying([steps.clone()]), &tools);
    let (_, end) = house.ask(Ask { plan_only: true, ..ask("?") }).await;
    assert_eq!((end, house.calls().len()), (RunEnd::Planned, 0));

    let house = House::new(saying([steps, "It would write.".to_owned()]), &tools);
    let (run, end) = house.ask(Ask { dry_run: true, ..ask("?") }).await;
    assert_eq!(answered(&end), "It would write.");
    assert_eq!(house.calls(), ["echo"], "nothing that changes something was called");
    assert_eq!(house.end_of(&run, "w").await, StepEnd::Rehearsed);
    assert_eq!(house.end_of(&run, "v").await, StepEnd::Skipped { because: "w".to_owned() });
    let shown = house.events(&run).await.into_iter().find_map(|event| match event {
        RunEvent::StepStarted { step, shown_arguments, .. } if step == "w" => Some(shown_arguments),
        _ => None,
    });
    assert_eq!(shown.as_deref(), Some(r#"{"x":1}"#), "what it would be called with is said");
}

#[tokio::test(start_paused = true)]
async fn caps_on_calls_models_tokens_money_and_repeats_end_a_run() {
    let many: Vec<(String, serde_json::Value)> =
        (0..6).map(|at| (format!("s{at}"), json!({"n": at}))).collect();
    let steps: Vec<_> =
        many.iter().map(|(id, arguments)| (id.as_str(), "echo", arguments.clone(), &[][..])).collect();
    let different = plan(&steps);
    let mut steps: Vec<_> =
        many.iter().map(|(id, _)| (id.as_str(), "echo", json!({"n": 0}), &[][..])).collect();
    // What nobody needs would not be called again in the first place.
    steps.push(("all", "echo", json!({"n": ["$s0", "$s1", "$s2", "$s3", "$s4", "$s5"]}), &[][..]));
    let same = plan(&steps);
    let base = Caps::default;
    for (text, caps, expected) in [
        (&different, Caps { calls: 4, ..base() }, Cap::Calls),
        (&same, Caps { identical: 2, ..base() }, Cap::Identical),
        (&different, Caps { model_calls: 1, ..base() }, Cap::ModelCalls),
        (&different, Caps { tokens: 10, ..base() }, Cap::Tokens),
        (&different, Caps { steps: 3, ..base() }, Cap::Steps),
    ] {
        let house = House::new(saying([text.clone()]), &[tool("echo", Act::Echoes)]);
        let (_, end) = house.ask(Ask { caps: caps.clone(), ..ask("?") }).await;
        let RunEnd::Capped { cap, message } = end else { panic!("{expected:?}: {end:?}") };
        assert_eq!(cap, expected, "{message}");
        assert!(house.calls().len() <= caps.calls && house.model.requests().len() <= caps.model_calls.max(1));
        if expected == Cap::Identical {
            assert_eq!(house.calls().len(), 2);
        }
        if expected == Cap::Calls {
            assert!(house.calls().len() == 4 && message.contains("found so far"), "{message}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn progress_of_tools_is_told() {
    let plan = plan(&[("a", "echo", json!({"x": 1}), &[])]);
    let house = House::new(saying([plan, "Done.".to_owned()]), &[tool("echo", Act::Echoes).takes(10)]);
    let watcher = Seen::default();
    house.agent.ask(ask("?"), &watcher, &CancelToken::new()).await.unwrap();
    let told = RunNews::StepProgress { step: "a".to_owned(), message: "half way".to_owned() };
    assert!(watcher.news.lock().unwrap().contains(&told));
}

#[tokio::test(start_paused = true)]
async fn a_judge_that_objects_is_heard() {
    let plan = plan(&[("a", "echo", json!({"x": 1}), &[])]);
    let verdict = json!({"verified": false, "confidence": 0.1, "issues": ["that is not it"]}).to_string();
    let better = json!({"x": 2}).to_string();
    let good = json!({"verified": true, "confidence": 0.9, "issues": []}).to_string();
    let house =
        House::new(saying([plan, verdict, better, good, "Done.".to_owned()]), &[tool("echo", Act::Echoes)]);
    let (_, end) = house.ask(Ask { judge: true, ..ask("?") }).await;
    assert_eq!(answered(&end), "Done.");
    assert_eq!(house.arguments_of("echo"), [json!({"x": 1}), json!({"x": 2})]);
}
