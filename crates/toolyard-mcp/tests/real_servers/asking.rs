//! The official server that has something of everything: all kinds of content, progress, questions it asks back, and
//! calls that are given up.

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use toolyard_core::{ContentBlock, RawJson};
use toolyard_mcp::{
    cache::ServerCache,
    client::{RequestError, ToolCall},
};

use crate::{
    house::{House, Somebody},
    place::{Place, Spelling},
    row::{Kind, Wire, row},
};

/// How many tools it has for someone whom it can ask for words, folders and what a model says.
const TOOLS: usize = 16;
/// How long a call may be silent; shorter than the long call, longer than each of its steps.
const SILENCE: Duration = Duration::from_millis(2_500);
const LONG: &str = "trigger-long-running-operation";

#[tokio::test]
async fn everything_is_understood_over_stdio() {
    converse(Wire::Stdio).await;
}

#[tokio::test]
async fn everything_is_understood_over_streamable_http() {
    converse(Wire::Http).await;
}

#[tokio::test]
async fn everything_is_understood_over_sse() {
    converse(Wire::Sse).await;
}

async fn converse(wire: Wire) {
    let mut place = Place::open(row(Kind::Everything, wire)).await;
    let mut config = place.tapped(Spelling::ItsOwn).await;
    config.call_timeout = Some(SILENCE);
    let somebody = Arc::new(Somebody::default());
    let input = Arc::clone(&somebody);
    let house = House::furnished(config, place.path(), input, ServerCache::in_memory()).await;
    house.session().await;
    house.until_tools(TOOLS).await;
    content_is_read(&house).await;
    questions_are_answered(&house, &somebody).await;
    tokio::join!(progress_is_a_sign_of_life(&house), silence_is_not_waited_out(&house));
    cancelling_is_told(&house, &place).await;
    house.manager.close().await;
}

async fn content_is_read(house: &House) {
    let image = house.call("get-tiny-image", json!({})).await.unwrap();
    let is_image = |block: &ContentBlock| matches!(block, ContentBlock::Image { data, mime_type } if data.starts_with("iVBORw0KGgo") && mime_type == "image/png");
    assert!(image.content.iter().any(is_image), "{image:?}");
    let links = house.call("get-resource-links", json!({"count": 2})).await.unwrap();
    let link = ContentBlock::ResourceLink {
        uri: "demo://resource/dynamic/text/2".to_owned(),
        name: "Text Resource 2".to_owned(),
    };
    assert_eq!(links.content.get(2), Some(&link));
    let resource =
        house.call("get-resource-reference", json!({"resourceType": "Text", "resourceId": 1})).await;
    let resource = resource.unwrap();
    let ContentBlock::Resource { resource } = &resource.content[1] else { panic!("{resource:?}") };
    assert_eq!(resource["uri"], "demo://resource/dynamic/text/1");
    let weather = house.call("get-structured-content", json!({"location": "New York"})).await.unwrap();
    let structured = weather.structured.expect("structured content");
    assert_eq!(weather.content[0].as_text(), Some(structured.get()));
    assert_eq!(structured.to_value()["temperature"], 33);
}

async fn questions_are_answered(house: &House, somebody: &Somebody) {
    let elicited = house.call("trigger-elicitation-request", json!({})).await.unwrap().to_text();
    assert!(elicited.contains("- Name: Ada\n- Agreed to terms: true"), "{elicited}");
    let sampling = json!({"prompt": "say something", "maxTokens": 5});
    let sampled = house.call("trigger-sampling-request", sampling).await.unwrap().to_text();
    assert!(sampled.contains("sampled words"), "{sampled}");
    let roots = house.call("get-roots-list", json!({})).await.unwrap().to_text();
    assert!(roots.contains("file:///tmp/a-root"), "{roots}");
    let asked = somebody.asked.lock().unwrap().clone();
    for method in ["elicitation/create", "sampling/createMessage", "roots/list"] {
        assert!(asked.iter().any(|asked| asked == method), "{asked:?}");
    }
}

async fn progress_is_a_sign_of_life(house: &House) {
    let started = Instant::now();
    let done = house.call(LONG, json!({"duration": 5, "steps": 10})).await.unwrap();
    assert!(started.elapsed() > SILENCE, "{:?}", started.elapsed());
    assert!(done.to_text().contains("Duration: 5 seconds, Steps: 10"), "{done:?}");
}

async fn silence_is_not_waited_out(house: &House) {
    let silence = Duration::from_millis(700);
    let arguments = RawJson::from(json!({"duration": 6, "steps": 2}));
    let call = ToolCall { silence: Some(silence), ..ToolCall::new(LONG, &arguments) };
    let session = house.session().await;
    assert_eq!(session.call_tool(call).await, Err(RequestError::Silent(silence)));
    house.call("echo", json!({"message": "still there"})).await.unwrap();
}

async fn cancelling_is_told(house: &House, place: &Place) {
    let session = house.session().await;
    let given_up = house.call(LONG, json!({"duration": 60, "steps": 60, "mark": "given up"}));
    assert!(timeout(Duration::from_millis(500), given_up).await.is_err());
    let limit = Instant::now() + Duration::from_secs(10);
    let told = place.capture().with_extension("told");
    loop {
        let told: Vec<Value> = fs::read_to_string(&told)
            .unwrap()
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let call = told.iter().find(|message| message["params"]["arguments"]["mark"] == "given up").unwrap();
        let cancelled = |message: &&Value| {
            message["method"] == "notifications/cancelled" && message["params"]["requestId"] == call["id"]
        };
        if told.iter().any(|message| cancelled(&message)) {
            break;
        }
        assert!(Instant::now() < limit, "nobody told the server: {told:?}");
        sleep(Duration::from_millis(20)).await;
    }
    house.call("echo", json!({"message": "still there"})).await.unwrap();
    assert!(Arc::ptr_eq(&session, &house.session().await), "the connection is the same");
    house.until_idle().await;
}
