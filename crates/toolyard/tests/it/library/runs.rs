//! Runs as streams of events, with approvals, cancellation and conversations.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use toolyard::{
    agent::{ApprovalDecision, RunEnd, RunEvent, RunUpdate},
    model::{ScriptedModel, ToolCalling},
    prelude::*,
};

#[derive(Deserialize, JsonSchema)]
struct Note {
    text: String,
}

const PLAN: &str = r#"{"steps":[{"id":"note","tool_type":"write_note","arguments":{"text":"milk"}}]}"#;

/// A toolyard with a tool that changes something, and the number of its calls.
async fn toolyard_with(replies: &[&str]) -> (Toolyard, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let model = ScriptedModel::with_replies(ToolCalling::Schema, replies.iter().copied());
    let toolyard = Toolyard::builder()
        .function("write_note", "Write a note", move |note: Note| {
            counter.fetch_add(1, Ordering::SeqCst);
            async move { format!("wrote {}", note.text) }
        })
        .model(model)
        .build()
        .await
        .unwrap();
    (toolyard, calls)
}

#[tokio::test]
async fn a_run_is_a_stream_whose_approvals_are_decided_by_the_program() {
    let (toolyard, calls) = toolyard_with(&[PLAN, "The note is written."]).await;
    let mut run = toolyard.agent("assistant").start("Write a note: milk").await.unwrap();
    let mut kinds = Vec::new();
    while let Some(update) = run.next().await {
        let RunUpdate::Event { event, .. } = update else { continue };
        if let RunEvent::ApprovalRequested { approval_id, .. } = &event {
            assert_eq!(calls.load(Ordering::SeqCst), 0);
            run.decide(*approval_id, ApprovalDecision::Allow);
        }
        kinds.push(std::mem::discriminant(&event));
    }
    assert!(kinds.len() > 5, "{}", kinds.len());
    assert_eq!(run.outcome().await.unwrap().to_string(), "The note is written.");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

/// The event of an approval is sent before the run begins to wait for the decision.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_never_lost() {
    for _ in 0..40 {
        let (toolyard, calls) = toolyard_with(&[PLAN, "The note is written."]).await;
        let mut run = toolyard.agent("assistant").start("Write a note: milk").await.unwrap();
        while let Some(update) = run.next().await {
            if let RunUpdate::Event { event: RunEvent::ApprovalRequested { approval_id, .. }, .. } = update {
                run.decide(approval_id, ApprovalDecision::Allow);
            }
        }
        assert_eq!(run.outcome().await.unwrap().to_string(), "The note is written.");
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn an_approver_may_be_a_function() {
    let (toolyard, calls) = toolyard_with(&[PLAN, "I did not write it: the call was denied."]).await;
    let agent =
        toolyard.agent("assistant").approver(|request: toolyard::agent::ApprovalRequest| async move {
            assert_eq!(request.tool, "write_note");
            ApprovalDecision::Deny
        });
    let ended = agent.start("Write a note: milk").await.unwrap().outcome().await.unwrap().end;
    assert!(!matches!(ended, RunEnd::Answered { .. }), "{ended:?}");
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_cancelled_run_makes_no_call() {
    let (toolyard, calls) = toolyard_with(&[PLAN, "unused"]).await;
    let mut run = toolyard.agent("assistant").start("Write a note: milk").await.unwrap();
    while let Some(update) = run.next().await {
        if matches!(update, RunUpdate::Event { event: RunEvent::ApprovalRequested { .. }, .. }) {
            run.cancel();
        }
    }
    assert_eq!(run.outcome().await.unwrap().end, RunEnd::Cancelled);
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_conversation_is_continued() {
    let (toolyard, _) =
        toolyard_with(&[r#"{"answer":"Hello Ada."}"#, r#"{"answer":"Your name is Ada."}"#]).await;
    let agent = toolyard.agent("assistant").conversation("names");
    agent.ask("I am Ada.").await.unwrap();
    agent.ask("What is my name?").await.unwrap();
    let chat = toolyard.agents().chat("names").await.unwrap();
    let texts: Vec<&str> = chat.messages().map(|message| message.text.as_str()).collect();
    assert_eq!(texts.len(), 3, "the last answer is resolved at the next message: {texts:?}");
    assert_eq!(texts[..2], ["I am Ada.", "Hello Ada."]);
}
