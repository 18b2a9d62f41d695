//! Calls that need a sign-in of the caller: what clients of each revision and capability get.

use std::{sync::atomic::Ordering, time::Duration};

use serde_json::{Value, json};

use crate::{
    client::{Client, TestResponse, next, stream},
    test_server::TestServer,
};

fn page_capability() -> Value {
    json!({"elicitation": {"url": {}}})
}

fn elicitation() -> Value {
    let message = "Sign in to `notes`, so that its tools can be used in your name.";
    json!({"mode": "url", "elicitationId": "e1", "url": "https://tools.example/sign-in/t1cket", "message": message})
}

async fn retry(client: &Client, first: &TestResponse, action: &str) -> TestResponse {
    let responses = json!({"sign_in": {"action": action}});
    let state = &first.result()["requestState"];
    let params =
        json!({"name": "sign_in", "arguments": {}, "requestState": state, "inputResponses": responses});
    client.request_modern(2, "tools/call", params, page_capability()).await
}

#[tokio::test]
async fn a_modern_client_opens_the_page_and_its_repeated_call_waits_for_the_person() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let first = client.call(1, "sign_in", page_capability()).await;
    assert_eq!(first.result()["resultType"], "input_required");
    let expected = json!({"sign_in": {"method": "elicitation/create", "params": elicitation()}});
    assert_eq!(first.result()["inputRequests"], expected);
    let sign_in = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.tools.is_signed_in.store(true, Ordering::SeqCst);
        server.server.end_elicitation("e1", true);
    };
    let (second, ()) = tokio::join!(retry(&client, &first, "accept"), sign_in);
    assert_eq!(second.text(), "signed in");
    let calls = server.tools.calls.lock().clone();
    let repeated = &calls[1];
    assert_eq!(repeated.request.source.as_deref(), Some("notes"), "the same source gets the call");
    assert!(
        repeated.caller.as_ref().unwrap().input_responses().is_none(),
        "the answer is not for the source"
    );
    server.close().await;
}

#[tokio::test]
async fn a_person_who_gives_up_is_asked_again_and_one_who_declines_is_not() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address);
    let first = client.call(1, "sign_in", page_capability()).await;
    for action in ["decline", "cancel"] {
        let declined = retry(&client, &first, action).await;
        assert_eq!(declined.result()["isError"], true);
        assert!(declined.text().contains("https://tools.example/sign-in/t1cket"), "{}", declined.text());
    }
    let give_up = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.server.end_elicitation("e1", false);
    };
    let (again, ()) = tokio::join!(retry(&client, &first, "accept"), give_up);
    assert_eq!(again.result()["resultType"], "input_required");
    server.close().await;
}

#[tokio::test]
async fn a_legacy_client_gets_an_error_with_the_page_and_is_notified() {
    let server = TestServer::new().await;
    let client = Client::new(&server.address).initialize("2025-11-25", page_capability()).await;
    let other = Client::new(&server.address).initialize("2025-11-25", page_capability()).await;
    let open_stream = async |client: &Client| {
        let request = client.request(reqwest::Method::GET).header("Accept", "text/event-stream");
        stream(request.send().await.unwrap())
    };
    let (mut events, mut events_of_other) = (open_stream(&client).await, open_stream(&other).await);
    let refused = client.request_legacy(1, "tools/call", json!({"name": "sign_in", "arguments": {}})).await;
    assert_eq!(refused.code(), -32042);
    assert_eq!(refused.last()["error"]["data"], json!({"elicitations": [elicitation()]}));
    server.tools.is_signed_in.store(true, Ordering::SeqCst);
    server.server.end_elicitation("e1", true);
    let notification = next(&mut events).await;
    assert_eq!(notification["method"], "notifications/elicitation/complete");
    assert_eq!(notification["params"], json!({"elicitationId": "e1"}));
    crate::client::assert_silent(&mut events_of_other).await;
    let done = client.request_legacy(2, "tools/call", json!({"name": "sign_in", "arguments": {}})).await;
    assert_eq!(done.text(), "signed in");
    server.close().await;
}

#[tokio::test]
async fn clients_without_the_capability_get_the_link_as_text() {
    let server = TestServer::new().await;
    let modern = Client::new(&server.address).call(1, "sign_in", json!({"elicitation": {"form": {}}})).await;
    let call = json!({"name": "sign_in", "arguments": {}});
    // URL mode did not exist before 2025-11-25.
    let old = Client::new(&server.address).initialize("2025-06-18", page_capability()).await;
    let old = old.request_legacy(1, "tools/call", call.clone()).await;
    let forms = Client::new(&server.address).initialize("2025-11-25", json!({"elicitation": {}})).await;
    let forms = forms.request_legacy(1, "tools/call", call).await;
    for response in [modern, old, forms] {
        assert_eq!(response.result()["isError"], true);
        let text = "notes: server `notes` requires authentication\nhint: open https://tools.example/sign-in/t1cket \
                    in your browser to sign in to `notes`, then repeat the call";
        assert_eq!(response.text(), text);
    }
    server.close().await;
}
