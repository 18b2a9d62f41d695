//! Questions of the modern era: answers that ask, and calls that come again with what was asked for.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    client::{Answer, Client},
    house::{House, Plan},
};

fn forms() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn accept(is: &str) -> Value {
    json!({"action": "accept", "content": {"is": is}})
}

/// Calls again with answers.
async fn again(client: &Client, tool: &str, state: &Value, responses: Value) -> Answer {
    let params = json!({"name": tool, "arguments": {}, "requestState": state, "inputResponses": responses});
    client.modern(2, "tools/call", params, forms()).await
}

fn state(answer: &Answer) -> Value {
    assert_eq!(answer.result()["resultType"], "input_required", "{answer:?}");
    answer.result()["requestState"].clone()
}

#[tokio::test]
async fn a_call_waits_for_its_answers_and_goes_on_where_it_was() {
    let house = House::new().await;
    let client = Client::new(&house.address);
    let first = client.call(1, "ask_twice", forms()).await;
    let question = &first.result()["inputRequests"]["first"];
    assert_eq!(
        (question["method"].as_str(), first.kind.as_str()),
        (Some("elicitation/create"), "application/json")
    );
    let second = again(&client, "ask_twice", &state(&first), json!({"first": accept("one")})).await;
    assert_ne!(state(&first), state(&second));
    assert!(second.result()["inputRequests"].get("first").is_none());
    let done = again(&client, "ask_twice", &state(&second), json!({"second": accept("two")})).await;
    assert_eq!((done.text(), &done.last()["id"]), ("one two", &json!(2)));
    assert_eq!(house.tools.calls.lock().unwrap().len(), 1);
    house.close().await;
}

#[tokio::test]
async fn what_is_missing_is_asked_again_and_what_is_wrong_too() {
    let house = House::new().await;
    let client = Client::new(&house.address);
    let first = client.call(1, "ask_both", forms()).await;
    assert_eq!(first.result()["inputRequests"].as_object().unwrap().len(), 2);
    let half =
        again(&client, "ask_both", &state(&first), json!({"name": accept("Ann"), "place": 7, "more": {}}))
            .await;
    let left: Vec<_> = half.result()["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(left, ["place"]);
    let none = again(&client, "ask_both", &state(&half), json!({})).await;
    let done = again(&client, "ask_both", &state(&none), json!({"place": accept("Rome")})).await;
    assert_eq!(done.text(), "Ann Rome");
    house.close().await;
}

#[tokio::test]
async fn questions_of_one_moment_come_together_each_under_its_own_key() {
    let house = House::new().await;
    let client = Client::new(&house.address);
    let first = client.call(1, "ask_apart", forms()).await;
    let keys: Vec<_> = first.result()["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["name", "name_2"]);
    let both = json!({"name_2": accept("two"), "name": accept("one")});
    assert_eq!(again(&client, "ask_apart", &state(&first), both).await.text(), "one two");
    house.close().await;
}

#[tokio::test]
async fn answers_that_come_before_their_questions_are_taken() {
    let house = House::new().await;
    let client = Client::new(&house.address);
    let params = json!({"name": "ask_twice", "arguments": {},
        "inputResponses": {"first": accept("one"), "second": accept("two"), "third": 3}});
    assert_eq!(client.modern(1, "tools/call", params, forms()).await.text(), "one two");
    house.close().await;
}

#[tokio::test]
async fn a_state_is_good_once_for_one_request_of_one_client() {
    let house = Plan::default().with_token("one").build().await;
    let client = Client::new(&house.address).with_token("one");
    let first = client.call(1, "ask", forms()).await;
    let (sealed, answer) = (state(&first), json!({"name": accept("Ann")}));
    let mut tampered = sealed.as_str().unwrap().to_owned();
    tampered.push('A');
    let elsewhere = client.clone().at("other");
    for refused in [
        again(&client, "ask", &json!(tampered), answer.clone()).await,
        again(&client, "ask", &json!("made up"), answer.clone()).await,
        again(&client, "ask_both", &sealed, answer.clone()).await,
        again(&elsewhere, "ask", &sealed, answer.clone()).await,
    ] {
        assert_eq!(refused.code(), -32602);
    }
    assert_eq!(again(&client, "ask", &sealed, answer.clone()).await.text(), "Ann");
    assert_eq!(again(&client, "ask", &sealed, answer).await.code(), -32602);
    house.close().await;
}

#[tokio::test]
async fn calls_do_not_wait_for_ever_nor_without_number() {
    let mut plan = Plan::default();
    plan.config.limits.parked = 2;
    plan.config.limits.parked_for = Duration::from_millis(200);
    let house = plan.build().await;
    let client = Client::new(&house.address);
    let first = client.call(1, "ask", forms()).await;
    state(&client.call(2, "ask", forms()).await);
    assert_eq!(client.call(3, "ask", forms()).await.code(), -32603);
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(again(&client, "ask", &state(&first), json!({"name": accept("Ann")})).await.code(), -32602);
    state(&client.call(4, "ask", forms()).await);
    house.close().await;
}

#[tokio::test]
async fn what_the_client_does_not_offer_is_refused_with_what_it_would_take() {
    let house = House::new().await;
    let client = Client::new(&house.address);
    for tool in ["ask", "upstream"] {
        for offered in [json!({}), json!({"sampling": {}})] {
            let refused = client.call(1, tool, offered).await;
            assert_eq!((refused.status.as_u16(), refused.code()), (400, -32021), "{tool}");
            assert_eq!(refused.last()["error"]["data"], json!({"requiredCapabilities": {"elicitation": {}}}));
        }
    }
    house.close().await;
}

#[tokio::test]
async fn questions_of_a_server_that_remembers_nothing_are_passed_on_and_nothing_waits() {
    let house = House::new().await;
    let client = Client::new(&house.address);
    let first = client.call(1, "upstream", forms()).await;
    let sealed = state(&first);
    assert_eq!(first.result()["x-kept"].to_string(), "1.0");
    assert!(!sealed.as_str().unwrap().contains("theirs"));
    let done = again(&client, "upstream", &sealed, json!({"name": accept("Ann")})).await;
    let said: Value = serde_json::from_str(done.text()).unwrap();
    assert_eq!(said, json!({"source": "far", "state": "theirs", "responses": {"name": accept("Ann")}}));
    assert_eq!(again(&client, "echo", &sealed, json!({})).await.code(), -32602);
    // Whoever comes again without answers brings at least what the server wants to be reminded of.
    let params = json!({"name": "upstream", "arguments": {}, "requestState": sealed});
    assert!(client.modern(3, "tools/call", params, forms()).await.text().contains("theirs"));
    // Another process with the same key can go on.
    let replica = House::new().await;
    let elsewhere = Client::new(&replica.address);
    assert!(
        again(&elsewhere, "upstream", &sealed, json!({"name": accept("Ann")})).await.text().contains("far")
    );
    for house in [house, replica] {
        house.close().await;
    }
}

#[tokio::test]
async fn a_call_that_says_something_before_it_asks_asks_on_its_stream() {
    let house = House::new().await;
    let client = Client::new(&house.address);
    let params = json!({"name": "tell_and_ask", "arguments": {}, "_meta": {"progressToken": 1}});
    let asked = client.modern(1, "tools/call", params, forms()).await;
    assert_eq!((asked.kind.as_str(), asked.messages.len()), ("text/event-stream", 2));
    assert_eq!(asked.messages[0]["method"], "notifications/progress");
    let done = again(&client, "tell_and_ask", &state(&asked), json!({"name": accept("Ann")})).await;
    assert_eq!(done.text(), "Ann");
    house.close().await;
}
