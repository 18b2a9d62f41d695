//! What waits for persons, and what they say.

use serde_json::json;
use toolyard_core::{Answer, Approvals as _, Journal as _, Resolution, RunState};

use super::*;
use crate::{
    AgentError, ApprovalDecision, ApprovalRules, CancelToken, RunEnd, RunEvent, StepEnd, answer_question,
};

fn write_and_read() -> String {
    plan(&[
        ("write", "write", json!({"x": 1}), &[]),
        ("read", "echo", json!({"y": 2}), &[]),
        ("after", "echo", json!({"z": "$write.x"}), &[]),
    ])
}

fn tools() -> [house::TestTool; 2] {
    [tool("write", Act::Echoes).writes(), tool("echo", Act::Echoes)]
}

#[tokio::test(start_paused = true)]
async fn whoever_watches_decides_at_once() {
    for (decision, calls) in
        [(ApprovalDecision::Allow, vec!["echo", "write", "echo"]), (ApprovalDecision::Deny, vec!["echo"])]
    {
        let house = House::new(saying([write_and_read(), "Done.".to_owned()]), &tools());
        let watcher = Seen::deciding([decision]);
        let (run, end) = house.agent.ask(ask("?"), &watcher, &CancelToken::new()).await.unwrap();
        assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
        assert_eq!(house.calls(), calls, "{decision:?}");
        let question = watcher.questions.lock().unwrap()[0].clone();
        assert_eq!((question.tool.as_str(), question.source.as_str()), ("write", "yard"));
        assert_eq!((question.arguments.as_str(), question.effects.as_str()), (r#"{"x":1}"#, "writes"));
        let kept = house.log.question(question.id).await.unwrap().unwrap();
        assert!(kept.answer.is_some(), "every door sees that it is answered");
        if decision == ApprovalDecision::Deny {
            assert!(matches!(house.end_of(&run, "write").await, StepEnd::Denied { .. }));
            assert_eq!(house.end_of(&run, "after").await, StepEnd::Skipped { because: "write".to_owned() });
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_decides_is_told_what_was_mended_in_the_plan() {
    let cell = || json!({"at": "A1", "formula": "C2*D2"});
    let steps = plan(&[("write", "write", cell(), &[]), ("again", "write", cell(), &["write"])]);
    let house = House::new(saying([steps, "Done.".to_owned()]), &tools());
    let question = ask("Put =C2*D2 into A1");
    let (run, end) = house.ask(question).await;
    assert!(matches!(end, RunEnd::Suspended { .. }), "{end:?}");
    let notes = ["`formula`: `C2*D2` got its `=` back", "`again`, which repeats this call, was left out"];
    let asked = house.log.waiting().await.unwrap().remove(0);
    assert!(notes.iter().all(|note| asked.text.contains(note)), "{}", asked.text);
    assert!(answer_question(&house.log, &house.log, asked.id, true, "ada").await.unwrap());
    house.resume(&run).await;
    assert_eq!(house.arguments_of("write"), [json!({"at": "A1", "formula": "=C2*D2"})]);
    let told = house.events(&run).await.into_iter().find_map(|event| match event {
        RunEvent::StepStarted { notes, .. } => Some(notes),
        _ => None,
    });
    assert_eq!(told.unwrap(), notes, "and it stands in the log");
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_as_rows_alone_and_goes_on_with_the_answer() {
    for allowed in [true, false] {
        let house = House::new(saying([write_and_read(), "Done.".to_owned()]), &tools());
        let (run, end) = house.ask(ask("?")).await;
        let RunEnd::Suspended { waiting } = &end else { panic!("{end:?}") };
        assert_eq!(house.calls(), ["echo"], "everything else went on first");
        assert_eq!(house.log.run(&run).await.unwrap().state, RunState::Open);
        let question = house.log.waiting().await.unwrap().remove(0);
        assert_eq!(waiting, &[question.id.to_string()]);
        assert!(question.text.contains("write") && question.text.contains(r#"{"x":1}"#), "{}", question.text);
        assert_eq!(house.resume(&run).await, end, "nobody has answered");
        assert_eq!(house.log.waiting().await.unwrap().len(), 1, "nobody is asked twice");

        assert!(answer_question(&house.log, &house.log, question.id, allowed, "ada").await.unwrap());
        let end = house.resume(&run).await;
        assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
        let made = house.calls().iter().filter(|call| *call == "write").count();
        assert_eq!(made, usize::from(allowed));
        assert_eq!(house.model.requests().len(), 2, "no request is made again");
        assert_eq!(house.log.run(&run).await.unwrap().state, RunState::Done);
        let late = answer_question(&house.log, &house.log, question.id, true, "bob").await;
        assert_eq!(late, Err(AgentError::Over(run)));
    }
    let log = crate::MemoryLog::new();
    assert_eq!(answer_question(&log, &log, 7, true, "ada").await, Err(AgentError::NoQuestion(7)));
}

#[tokio::test(start_paused = true)]
async fn whoever_decides_is_told_what_was_guessed() {
    let steps = plan(&[
        ("order", "order", json!({}), &[]),
        ("write", "write", json!({"x": "$order.customer.total"}), &[]),
    ]);
    let order = tool("order", Act::Answers(json!({"total": 7, "name": "Ada"})));
    let house =
        House::new(saying([steps, "Done.".to_owned()]), &[order, tool("write", Act::Echoes).writes()]);
    let watcher = Seen::deciding([ApprovalDecision::Allow]);
    let (run, _) = house.agent.ask(ask("?"), &watcher, &CancelToken::new()).await.unwrap();
    let question = watcher.questions.lock().unwrap()[0].clone();
    assert_eq!(question.notes.len(), 1, "{question:?}");
    assert!(question.notes[0].contains("`$order.customer.total`"), "{question:?}");
    let kept = house.log.question(question.id).await.unwrap().unwrap();
    assert!(kept.text.contains(&question.notes[0]), "{}", kept.text);
    let told = house.events(&run).await.into_iter().find_map(|event| match event {
        RunEvent::StepStarted { step, notes, .. } if step == "write" => Some(notes),
        _ => None,
    });
    assert_eq!(told, Some(question.notes), "and so is whoever looks at it later");
}

#[tokio::test(start_paused = true)]
async fn a_tool_allowed_for_the_whole_run_is_not_asked_about_again() {
    let plan = plan(&[
        ("a", "write", json!({"x": 1}), &[]),
        ("b", "write", json!({"x": 2}), &["a"]),
        ("c", "write", json!({"x": 3}), &["b"]),
    ]);
    let house = House::new(saying([plan, "Done.".to_owned()]), &tools());
    let watcher = Seen::deciding([ApprovalDecision::AllowAlways]);
    let (_, end) = house.agent.ask(ask("?"), &watcher, &CancelToken::new()).await.unwrap();
    assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
    assert_eq!((house.calls().len(), watcher.questions.lock().unwrap().len()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_changed_after_it_was_allowed_is_asked_about_again() {
    let house = House::new(saying([write_and_read(), "Done.".to_owned()]), &tools());
    let (run, _) = house.ask(ask("?")).await;
    let first = house.log.waiting().await.unwrap().remove(0);
    house.log.answer(first.id, Answer::Allow, "ada").await.unwrap();
    let changed =
        [tool("write", Act::Echoes).writes().described("Now it sends mails"), tool("echo", Act::Echoes)];
    house.register(&changed);
    let end = house.resume(&run).await;
    assert!(matches!(end, RunEnd::Suspended { .. }), "{end:?}");
    assert!(!house.calls().contains(&"write".to_owned()), "the person allowed another tool");
    let waiting = house.log.waiting().await.unwrap();
    assert_eq!(waiting.len(), 1);
    let second = waiting.into_iter().next().unwrap();
    assert_ne!(first.id, second.id);
    house.log.answer(second.id, Answer::Allow, "ada").await.unwrap();
    assert!(matches!(house.resume(&run).await, RunEnd::Answered { .. }));
    assert_eq!(house.calls().iter().filter(|call| *call == "write").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn rules_are_asked_when_a_call_is_planned_and_when_it_is_made() {
    // Harmless when it was planned, and denied when it is called.
    let chain =
        plan(&[("write", "write", json!({"x": 1}), &[]), ("read", "echo", json!({"y": "$write.x"}), &[])]);
    let house = House::new(saying([chain, "Done.".to_owned()]), &tools());
    let (run, _) = house.ask(ask("?")).await;
    let question = house.log.waiting().await.unwrap().remove(0);
    house.log.answer(question.id, Answer::Allow, "ada").await.unwrap();
    let denied = ApprovalRules { deny: vec!["write".to_owned()], ..ApprovalRules::default() };
    let house = house.ruled(denied);
    let end = house.resume(&run).await;
    assert!(matches!(end, RunEnd::Failed { .. }), "{end:?}");
    assert_eq!(house.end_of(&run, "write").await, StepEnd::Denied { by: "rules".to_owned() });
    assert!(house.calls().is_empty());

    // A tool that claims to be harmless only after it was planned.
    let house = House::new(saying([write_and_read(), "Done.".to_owned()]), &tools());
    let (run, _) = house.ask(ask("?")).await;
    house.register(&[tool("write", Act::Echoes), tool("echo", Act::Echoes)]);
    let end = house.resume(&run).await;
    assert!(matches!(end, RunEnd::Suspended { .. }), "{end:?}");
    assert!(!house.calls().contains(&"write".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_agent_calls_only_what_it_may_see() {
    let plan = plan(&[("a", "write", json!({"x": 1}), &[])]);
    let house =
        House::new(saying([plan]), &tools()).changed(|parts| parts.config.tools = vec!["echo".to_owned()]);
    let (_, end) = house.ask(ask("?")).await;
    assert!(matches!(end, RunEnd::Failed { .. }), "{end:?}");
    assert!(house.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_outcome_is_unknown_waits_for_a_person_and_is_never_made_again() {
    for (word, calls) in [(Resolution::Done, 1), (Resolution::NotDone, 2)] {
        let steps = plan(&[("w", "lost", json!({"x": 1}), &[]), ("after", "echo", json!({"y": 1}), &["w"])]);
        let lost = tool("lost", Act::Fails(toolyard_core::ErrorKind::Lost)).writes();
        let allow = ApprovalRules { allow: vec!["*".to_owned()], ..ApprovalRules::default() };
        let house =
            House::new(saying([steps, "Done.".to_owned()]), &[lost, tool("echo", Act::Echoes)]).ruled(allow);
        let (run, end) = house.ask(ask("?")).await;
        assert_eq!(end, RunEnd::Suspended { waiting: vec!["step w".to_owned()] });
        assert!(matches!(house.end_of(&run, "w").await, StepEnd::Unknown { .. }));
        assert_eq!(house.resume(&run).await, end, "nobody has said anything");
        assert_eq!(house.calls(), ["lost"]);
        house.log.resolve(&run, "w", word, "ada").await.unwrap();
        house.register(&[tool("lost", Act::Echoes).writes(), tool("echo", Act::Echoes)]);
        let end = house.resume(&run).await;
        assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
        let made = house.calls().iter().filter(|call| *call == "lost").count();
        assert_eq!(made, calls, "{word:?}");
        let settled = |event: &RunEvent| matches!(event, RunEvent::StepSettled { .. });
        assert_eq!(house.events(&run).await.iter().filter(|event| settled(event)).count(), 1);
    }
}

/// Somebody who is asked and never says anything.
#[derive(Debug)]
struct Silent;

impl crate::RunWatcher for Silent {
    fn see(&self, _news: &crate::RunNews) {}

    fn decide<'a>(
        &'a self,
        _question: &'a crate::ApprovalQuestion,
    ) -> toolyard_core::BoxFuture<'a, Option<ApprovalDecision>> {
        Box::pin(std::future::pending())
    }
}

/// Somebody who comes back from lunch and allows it.
#[derive(Debug)]
struct AfterLunch;

impl crate::RunWatcher for AfterLunch {
    fn see(&self, _news: &crate::RunNews) {}

    fn decide<'a>(
        &'a self,
        _question: &'a crate::ApprovalQuestion,
    ) -> toolyard_core::BoxFuture<'a, Option<ApprovalDecision>> {
        Box::pin(async {
            tokio::time::sleep(std::time::Duration::from_hours(1)).await;
            Some(ApprovalDecision::Allow)
        })
    }
}

#[tokio::test(start_paused = true)]
async fn time_in_which_only_a_person_thinks_does_not_count() {
    let slow = tool("echo", Act::Echoes).takes(500);
    let house = House::new(
        saying([write_and_read(), "Done.".to_owned()]),
        &[tool("write", Act::Echoes).writes().at("other"), slow],
    );
    let caps = crate::Caps { time: std::time::Duration::from_secs(5), ..crate::Caps::default() };
    let (run, end) =
        house.agent.ask(crate::Ask { caps, ..ask("?") }, &AfterLunch, &CancelToken::new()).await.unwrap();
    assert!(matches!(end, RunEnd::Answered { .. }), "{end:?}");
    let (_, events) = crate::load(&house.log, &run).await.unwrap();
    assert_eq!(crate::worked(&events), std::time::Duration::from_secs(1), "two calls one after the other");
}

#[tokio::test(start_paused = true)]
async fn an_answer_from_elsewhere_counts_while_somebody_here_is_still_asked() {
    let house = House::new(saying([write_and_read(), "Done.".to_owned()]), &tools());
    let elsewhere = async {
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        let question = house.log.waiting().await.unwrap().remove(0);
        answer_question(&house.log, &house.log, question.id, true, "ada").await.unwrap()
    };
    let stop = CancelToken::new();
    let (asked, first) = tokio::join!(house.agent.ask(ask("?"), &Silent, &stop), elsewhere);
    assert!(first && matches!(asked.unwrap().1, RunEnd::Answered { .. }));
    assert_eq!(house.calls().iter().filter(|call| *call == "write").count(), 1);
}
