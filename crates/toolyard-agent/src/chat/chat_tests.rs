//! Tests of [`Chat`]: what is remembered, by whom, and what holds for every message.

use serde_json::json;
use toolyard_core::{Approvals as _, ConversationQuery};

use super::*;
use crate::{
    AgentConfig, NoWatcher, RunLimits,
    driver::tests::{Behavior, Fixture, plan, replying, tool},
    load_run,
};

fn id(owner: &str, name: &str) -> ConversationId {
    ConversationId::new(owner, name).unwrap()
}

fn answering<const N: usize>(answers: [&str; N]) -> Fixture {
    Fixture::new(replying(answers.map(|answer| json!({ "answer": answer }).to_string())), &[])
}

async fn open(fixture: &Fixture, conversations: &MemoryConversations, id: ConversationId) -> Chat {
    Chat::open(Arc::new(conversations.clone()), Arc::new(fixture.log.clone()), id).await.unwrap()
}

fn texts(chat: &Chat) -> Vec<&str> {
    chat.messages().map(|message| message.text.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn another_chat_of_the_same_owner_continues_a_conversation_and_no_other_owner_reads_it() {
    let fixture = answering(["Hello, Ada.", "Ada.", "Who?"]);
    let conversations = MemoryConversations::default();
    let agent = fixture.agent.clone().with_conversations(Arc::new(conversations.clone()));
    let stop = CancelToken::new();
    let mut first = open(&fixture, &conversations, id("ada", "names")).await;
    first.ask(&agent, "I am Ada", &NoWatcher, &stop).await.unwrap();
    let mut second = open(&fixture, &conversations, id("ada", "names")).await;
    assert_eq!(texts(&second), ["I am Ada", "Hello, Ada."]);
    let (run, _) = second.ask(&agent, "My name?", &NoWatcher, &stop).await.unwrap();
    let request = load_run(&fixture.log, &run).await.unwrap().0.request().unwrap().clone();
    let history: Vec<&str> = request.history.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(history, ["I am Ada", "Hello, Ada."]);
    for other in [id("bob", "names"), id("", "names"), id("ada", "other")] {
        let chat = open(&fixture, &conversations, other.clone()).await;
        assert!(texts(&chat).is_empty(), "{other:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn limits_and_judge_of_the_agent_hold_for_every_message() {
    let fixture = answering(["never asked"]);
    let mut parts = fixture.agent.parts().clone();
    let limits = RunLimits { model_calls: 0, ..RunLimits::default() };
    parts.config =
        Arc::new(AgentConfig { limits: limits.clone(), judge: true, ..AgentConfig::clone(&parts.config) });
    let agent = Agent::new(parts);
    let mut chat = open(&fixture, &MemoryConversations::default(), id("", "c")).await;
    let (run, end) = chat.ask(&agent, "Hello", &NoWatcher, &CancelToken::new()).await.unwrap();
    assert!(matches!(end, RunEnd::LimitReached { .. }), "{end:?}");
    let request = load_run(&fixture.log, &run).await.unwrap().0.request().unwrap().clone();
    assert_eq!((request.limits, request.judge, request.agent.as_str()), (limits, true, "assistant"));
    assert_eq!(texts(&chat), ["Hello"], "a run without an answer leaves the question");
}

#[tokio::test(start_paused = true)]
async fn an_answer_joins_the_conversation_when_its_run_has_one() {
    let replies = [plan(&[("note", "write", json!({}), &[])]), "Written.".to_owned()];
    let fixture = Fixture::new(replying(replies), &[tool("write", Behavior::Echo).writes()]);
    let conversations = MemoryConversations::default();
    let agent = fixture.agent.clone().with_conversations(Arc::new(conversations.clone()));
    let mut chat = open(&fixture, &conversations, id("", "c")).await;
    let (run, end) = chat.ask(&agent, "Note it", &NoWatcher, &CancelToken::new()).await.unwrap();
    assert!(matches!(end, RunEnd::Suspended { .. }), "{end:?}");
    assert_eq!(texts(&chat), ["Note it"]);
    let approval = fixture.log.approvals_of_run(&run).await.unwrap().pop().unwrap().id;
    crate::decide_approval(&fixture.log, &fixture.log, approval, crate::ApprovalDecision::Allow, "test")
        .await
        .unwrap();
    agent.drive(&run, &NoWatcher, &CancelToken::new()).await.unwrap();
    let mut later = open(&fixture, &conversations, id("", "c")).await;
    assert_eq!(later.resolve_pending().await.unwrap(), [(run, "Written.".to_owned())]);
    assert_eq!(texts(&later), ["Note it", "Written."]);
    assert!(later.resolve_pending().await.unwrap().is_empty(), "reported once");
}

#[tokio::test(start_paused = true)]
async fn plans_dry_runs_and_unrecorded_chats_leave_no_trace() {
    let fixture = answering(["One.", "Two.", "Three."]);
    let conversations = MemoryConversations::default();
    let agent = fixture.agent.clone().with_conversations(Arc::new(conversations.clone()));
    let mut chat = open(&fixture, &conversations, id("", "c")).await;
    let request = RunRequest { plan_only: true, ..agent.request("Plan it") };
    chat.stream_chat_message(&agent, request, None).await.unwrap();
    let request = RunRequest { dry_run: true, ..agent.request("Try it") };
    chat.stream_chat_message(&agent, request, None).await.unwrap();
    let mut unrecorded = Chat::unrecorded(Arc::new(fixture.log.clone()));
    let history = vec![ModelMessage::new(Role::User, "Before")];
    let request = RunRequest { history: history.clone(), ..agent.request("Now") };
    let run = unrecorded.stream_chat_message(&agent, request, None).await.unwrap();
    let request = load_run(&fixture.log, &run).await.unwrap().0.request().unwrap().clone();
    assert_eq!((request.history, request.conversation), (history, None));
    assert!(conversations.messages(&id("", "c"), 9).await.unwrap().is_empty());
    let query = ConversationQuery { limit: 9, ..ConversationQuery::default() };
    let seen = toolyard_core::Conversation::of_run(Arc::new(conversations), id("", "c"), run);
    assert!(seen.earlier_messages(&query).await.unwrap().is_empty());
}
