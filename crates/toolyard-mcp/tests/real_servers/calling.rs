//! What happens during a call reaches whoever made it, in both eras, over everything: progress, log messages, questions.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolyard_core::{
    CallAnswers, Caller, ErrorKind, ProtocolEra, RawFailure, RawJson, ToolError, ToolOutput,
};
use toolyard_mcp::{bridge::AskTheCaller, cache::ServerCache};

use crate::{
    house::{House, call_for},
    person::{Person, answer},
    place::Place,
    row::{Kind, Row, Wire, forced, row},
};

const LONG: &str = "trigger-long-running-operation";

/// A server behind a door, and the place it works in.
struct Behind(House, #[expect(dead_code, reason = "it lives as long as the house")] Place);

impl Behind {
    async fn open(row: Row, silence: Option<Duration>) -> Self {
        let place = Place::open(row).await;
        let mut config = place.config();
        config.call_timeout = silence;
        let house =
            House::furnished(config, place.path(), Arc::new(AskTheCaller), ServerCache::in_memory()).await;
        assert_eq!(house.session().await.era(), row.era);
        Self(house, place)
    }

    async fn call(&self, tool: &str, arguments: Value, who: &Arc<Person>) -> Result<ToolOutput, ToolError> {
        call_for(self.0.tool(tool), arguments, Arc::clone(who) as Arc<dyn Caller>).await
    }
}

/// Every way to reach a server that asks, in every era.
fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> =
        [Wire::Stdio, Wire::Http, Wire::Sse].map(|wire| row(Kind::Everything, wire)).into();
    for wire in [Wire::Stdio, Wire::Http] {
        rows.extend([row(Kind::BothEras, wire), forced(Kind::BothEras, wire, ProtocolEra::Legacy)]);
    }
    rows
}

#[tokio::test]
async fn progress_reaches_the_caller_before_the_answer() {
    for row in rows() {
        let behind = Behind::open(row, Some(Duration::from_secs(2))).await;
        let (one, other) = (Person::new(1).shared(), Person::new(2).shared());
        let (tool, arguments) = match row.kind {
            Kind::Everything => (LONG, json!({"duration": 3, "steps": 6})),
            _ => ("count", json!({"steps": 6, "pause": 0.5})),
        };
        let (done, too) = tokio::join!(
            behind.call(tool, arguments.clone(), &one),
            behind.call(tool, arguments.clone(), &other),
        );
        assert!(done.is_ok() && too.is_ok(), "{row:?} {done:?} {too:?}");
        for person in [one, other] {
            assert_eq!(person.steps(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "{row:?}");
        }
        behind.0.manager.close().await;
    }
}

#[tokio::test]
async fn a_question_reaches_whoever_called_however_long_they_think() {
    for row in rows() {
        let silence = Duration::from_secs(2);
        let behind = Behind::open(row, Some(silence)).await;
        let person = Person::new(1).thinking(silence * 2).shared();
        let tool = if row.kind == Kind::Everything { "trigger-elicitation-request" } else { "greet" };
        behind.0.until(|| behind.0.names().iter().any(|name| name == tool)).await;
        let said = behind.call(tool, json!({}), &person).await.unwrap().to_text();
        assert!(said.contains("Ada"), "{row:?} {said}");
        assert_eq!(person.methods(), ["elicitation/create"], "{row:?}");
        behind.0.manager.close().await;
    }
}

#[tokio::test]
async fn models_and_folders_are_asked_of_the_caller_too() {
    for row in rows() {
        let behind = Behind::open(row, None).await;
        let person = Person::new(1).shared();
        let (think, look) = match row.kind {
            Kind::Everything => ("trigger-sampling-request", "get-roots-list"),
            _ => ("think", "look"),
        };
        behind.0.until(|| behind.0.names().iter().any(|name| name == look)).await;
        let prompt = if row.kind == Kind::Everything { json!({"prompt": "x"}) } else { json!({}) };
        let said = behind.call(think, prompt, &person).await.unwrap().to_text();
        assert!(said.contains("sampled words"), "{row:?} {said}");
        // The official server asks for folders when it is introduced, when there may be nobody to ask, and keeps to that.
        let said = behind.call(look, json!({}), &person).await.unwrap().to_text();
        if row.kind == Kind::BothEras {
            assert!(said.contains("file:///tmp/a-root"), "{row:?} {said}");
        }
        behind.0.manager.close().await;
    }
}

#[tokio::test]
async fn who_cannot_be_asked_is_not_and_the_server_hears_why() {
    for row in rows() {
        let behind = Behind::open(row, None).await;
        let person = Person::new(1).offering(json!({"sampling": {}})).shared();
        let tool = if row.kind == Kind::Everything { "trigger-elicitation-request" } else { "greet" };
        behind.0.until(|| behind.0.names().iter().any(|name| name == tool)).await;
        let refused = behind.call(tool, json!({}), &person).await.unwrap_err();
        assert_eq!(person.methods(), Vec::<String>::new());
        // A server of the modern era knows beforehand and says so itself.
        if row.era == ProtocolEra::Legacy {
            let said = "the client of this call does not offer elicitation/create";
            assert!(refused.message().contains(said), "{row:?} {refused}");
        } else {
            assert!(refused.message().contains("-32021"), "{row:?} {refused}");
        }
        behind.0.manager.close().await;
    }
}

#[tokio::test]
async fn a_question_never_reaches_another_conversation() {
    for row in rows() {
        let behind = Behind::open(row, None).await;
        let (tool, long, arguments) = match row.kind {
            Kind::Everything => ("trigger-elicitation-request", LONG, json!({"duration": 4, "steps": 4})),
            _ => ("greet", "count", json!({"steps": 4, "pause": 1})),
        };
        behind.0.until(|| behind.0.names().iter().any(|name| name == tool)).await;
        let (one, other) = (Person::new(1).shared(), Person::new(2).shared());
        let asked = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            behind.call(tool, json!({}), &one).await
        };
        let (done, asked) = tokio::join!(behind.call(long, arguments, &other), asked);
        done.unwrap();
        assert_eq!(other.methods(), Vec::<String>::new(), "{row:?}");
        // Where a stream or the era says whose question it is, it is answered; else it is refused.
        if row.era == ProtocolEra::Modern || row.wire == Wire::Http {
            assert!(asked.unwrap().to_text().contains("Ada"), "{row:?}");
        } else {
            let refused = asked.unwrap_err();
            assert!(refused.message().contains("several clients use this server"), "{row:?} {refused}");
            assert_eq!(one.methods(), Vec::<String>::new(), "{row:?}");
        }
        behind.0.manager.close().await;
    }
}

#[tokio::test]
async fn questions_of_one_moment_are_asked_together_or_passed_on() {
    for wire in [Wire::Stdio, Wire::Http] {
        let behind = Behind::open(row(Kind::BothEras, wire), None).await;
        let person = Person::new(1).shared();
        let said = behind.call("find", json!({}), &person).await.unwrap().to_text();
        assert_eq!(said, "Ada is in London");
        assert_eq!(person.asked.lock().unwrap().iter().map(Vec::len).collect::<Vec<_>>(), [2]);

        let first = Person::new(1).calling_again(None).shared();
        let output = behind.call("find", json!({}), &first).await.unwrap();
        assert!(output.asks && first.methods().is_empty());
        let asked = output.raw.unwrap().to_value();
        let questions = asked["inputRequests"].as_object().unwrap();
        assert_eq!(questions.len(), 2);
        let responses: serde_json::Map<String, Value> =
            questions.iter().map(|(key, question)| (key.clone(), answer_to(question))).collect();
        let answers = CallAnswers {
            responses: RawJson::from_value(&Value::Object(responses)),
            state: asked["requestState"].as_str().map(str::to_owned),
        };
        let second = Person::new(1).calling_again(Some(answers)).shared();
        let output = behind.call("find", json!({}), &second).await.unwrap();
        assert_eq!(output.to_text(), "Ada is in London");
        behind.0.manager.close().await;
    }
}

fn answer_to(question: &Value) -> Value {
    answer(&toolyard_core::CallQuestion {
        key: String::new(),
        source: "real".into(),
        method: question["method"].as_str().unwrap().to_owned(),
        params: Some(RawJson::from_value(&question["params"])),
    })
}

#[tokio::test]
async fn log_messages_of_a_call_reach_its_caller() {
    for wire in [Wire::Stdio, Wire::Http] {
        for row in [row(Kind::BothEras, wire), forced(Kind::BothEras, wire, ProtocolEra::Legacy)] {
            let behind = Behind::open(row, None).await;
            let person = Person::new(1).shared();
            behind.call("say", json!({"words": "mind the gap"}), &person).await.unwrap();
            let logged = person.logged.lock().unwrap().clone();
            assert_eq!(logged.len(), 1, "{row:?} {logged:?}");
            assert_eq!(
                (&logged[0]["level"], &logged[0]["data"]),
                (&json!("warning"), &json!("mind the gap"))
            );
            behind.0.manager.close().await;
        }
    }
    let behind = Behind::open(row(Kind::Everything, Wire::Stdio), None).await;
    let person = Person::new(1).shared();
    behind.call("toggle-simulated-logging", json!({}), &person).await.unwrap();
    behind.call(LONG, json!({"duration": 6, "steps": 1}), &person).await.unwrap();
    assert!(!person.logged.lock().unwrap().is_empty());
    behind.0.manager.close().await;
}

#[tokio::test]
async fn failures_are_passed_on_as_the_server_sent_them() {
    for row in [row(Kind::BothEras, Wire::Http), forced(Kind::BothEras, Wire::Stdio, ProtocolEra::Legacy)] {
        let behind = Behind::open(row, None).await;
        let person = Person::new(1).shared();
        let failed = behind.call("fail", json!({}), &person).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Failed);
        let Some(RawFailure::Result(raw)) = failed.raw() else { panic!("{failed:?}") };
        assert_eq!(raw.to_value()["isError"], true);
        assert!(raw.to_value()["content"][0]["text"].as_str().unwrap().contains("it does not work"));
        let refused = behind.call("refuse", json!({}), &person).await.unwrap_err();
        let Some(RawFailure::Error(raw)) = refused.raw() else { panic!("{refused:?}") };
        assert_eq!(
            raw.to_value(),
            json!({"code": -32055, "message": "never", "data": {"reason": "because"}})
        );
        behind.0.manager.close().await;
    }
}

#[tokio::test]
async fn the_trace_of_a_caller_goes_on_behind_us_and_nothing_else_does() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for row in [row(Kind::BothEras, Wire::Stdio), forced(Kind::BothEras, Wire::Http, ProtocolEra::Legacy)] {
        let behind = Behind::open(row, None).await;
        let person =
            Person::new(1).traced("traceparent", PARENT).traced("baggage", "a=b").traced("secret", "x");
        let output = behind.call("meta", json!({}), &person.shared()).await.unwrap();
        let said: Value = serde_json::from_str(&output.to_text()).unwrap();
        assert_eq!(said, json!({"meta": {"traceparent": PARENT, "baggage": "a=b"}}), "{row:?}");
        behind.0.manager.close().await;
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_asks_nobody_any_more() {
    let behind = Behind::open(forced(Kind::BothEras, Wire::Stdio, ProtocolEra::Legacy), None).await;
    let person = Person::new(1).thinking(Duration::from_secs(60)).shared();
    let given_up =
        tokio::time::timeout(Duration::from_secs(2), behind.call("greet", json!({}), &person)).await;
    assert!(given_up.is_err());
    assert_eq!(person.methods(), ["elicitation/create"]);
    // Nothing of it is left that a person would still be asked for.
    let limit = Instant::now() + Duration::from_secs(5);
    while Arc::strong_count(&person) > 1 {
        assert!(Instant::now() < limit, "somebody still asks");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    behind.0.manager.close().await;
}
