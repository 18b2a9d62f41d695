//! A program that serves its own functions, prompts and resources over MCP, seen by an independent client.

use rmcp::{
    ServiceExt as _,
    model::{CallToolRequestParams, GetPromptRequestParams, ReadResourceRequestParams},
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use tokio::{net::TcpListener, sync::oneshot};
use toolyard::{
    gateway::{Access, AccessToken},
    prelude::*,
};

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Greeting {
    text: String,
}

#[tokio::test]
async fn functions_prompts_and_resources_are_served_over_http() {
    let toolyard =
        Toolyard::builder()
            .native_tools([])
            .function("greet", "Greets a person", |g: Greet| async move {
                Json(Greeting { text: format!("Hello, {}!", g.name) })
            })
            .prompt("welcome", "A welcome", |g: Greet| async move {
                Ok::<_, String>(format!("Welcome {}.", g.name))
            })
            .resource("memo://today", "today", "text/plain", || async { Ok::<_, String>("sunny") })
            .build()
            .await
            .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(async move {
        let until = async move { drop(stopped.await) };
        let access = Access::Token(AccessToken::new("secret"));
        toolyard.serve("greeter", "1.0.0").until(until).http(listener, access).await
    });

    let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header("secret");
    let client = ().serve(StreamableHttpClientTransport::from_config(config)).await.unwrap();
    let tools = client.list_all_tools().await.unwrap();
    assert_eq!(tools.iter().map(|tool| tool.name.as_ref()).collect::<Vec<_>>(), ["greet"]);
    assert!(tools[0].output_schema.is_some());
    let arguments = json!({"name": "Ada"}).as_object().cloned().unwrap();
    let called =
        client.call_tool(CallToolRequestParams::new("greet").with_arguments(arguments)).await.unwrap();
    assert_eq!(called.structured_content, Some(json!({"text": "Hello, Ada!"})));

    let prompts = client.list_all_prompts().await.unwrap();
    let argument = &prompts[0].arguments.as_ref().unwrap()[0];
    assert_eq!(
        (prompts[0].name.as_str(), argument.name.as_str(), argument.required),
        ("welcome", "name", Some(true))
    );
    let arguments = json!({"name": "Ada"}).as_object().cloned().unwrap();
    let prompt =
        client.get_prompt(GetPromptRequestParams::new("welcome").with_arguments(arguments)).await.unwrap();
    assert!(serde_json::to_string(&prompt.messages).unwrap().contains("Welcome Ada."));
    let missing = client.get_prompt(GetPromptRequestParams::new("welcome")).await;
    assert!(missing.unwrap_err().to_string().contains("name"));

    assert_eq!(client.list_all_resources().await.unwrap()[0].uri, "memo://today");
    let read = client.read_resource(ReadResourceRequestParams::new("memo://today")).await.unwrap();
    assert!(serde_json::to_string(&read.contents).unwrap().contains("sunny"));
    client.cancel().await.unwrap();
    stop.send(()).unwrap();
    serving.await.unwrap().unwrap();
}
