//! Results about prompts, resources and completions.

use serde_json::{Value, json};
use toolyard_mcp::RpcError;
use toolyard_mcp::input_method::input_error_code;
use toolyard_mcp_server::ContentRequest;

use crate::{content::WATCHED_URI, definitions::PIXEL, input_requests::form, skills};

type ContentResult = Option<Result<Value, RpcError>>;

pub(crate) async fn respond(request: &ContentRequest<'_>) -> ContentResult {
    let params = request.params.to_value();
    let text = |key: &str| params.get(key).and_then(Value::as_str).unwrap_or_default();
    match request.method {
        "prompts/get" => prompt(request, text("name"), &params).await,
        "resources/read" => resource(text("uri")),
        "resources/subscribe" | "resources/unsubscribe" => {
            (text("uri").starts_with("test://")).then(|| Ok(json!({})))
        }
        "resources/directory/read" => skills::directory(text("uri")),
        "skills/get" => skills::get(text("uri")),
        "completion/complete" => Some(Ok(completion(&params))),
        _ => None,
    }
}

async fn prompt(request: &ContentRequest<'_>, name: &str, params: &Value) -> ContentResult {
    let argument = |name: &str| {
        params.get("arguments").and_then(|all| all.get(name)).and_then(Value::as_str).unwrap_or_default()
    };
    let text = |text: &str| json!({"role": "user", "content": {"type": "text", "text": text}});
    let messages = match name {
        "test_simple_prompt" | "test_guest_prompt" => json!([text("This is a simple prompt for testing.")]),
        "test_prompt_with_arguments" => json!([text(&format!(
            "Prompt with arguments: arg1='{}', arg2='{}'",
            argument("arg1"),
            argument("arg2")
        ))]),
        "test_prompt_with_embedded_resource" => json!([
            {"role": "user", "content": {"type": "resource", "resource": {
                "uri": argument("resourceUri"),
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing."
            }}},
            text("Please process the embedded resource above.")
        ]),
        "test_prompt_with_image" => json!([
            {"role": "user", "content": {"type": "image", "data": PIXEL, "mimeType": "image/png"}},
            text("Please analyze the image above.")
        ]),
        "test_input_required_result_prompt" => {
            let input_request =
                form("user_context", "What context should the prompt use?", "context", "string");
            let caller = request.caller.as_ref()?;
            match caller.request_input(&[input_request]).await {
                Ok(responses) => {
                    let response =
                        responses.first().map(toolyard_core::RawJson::to_value).unwrap_or_default();
                    let context =
                        response.pointer("/content/context").and_then(Value::as_str).unwrap_or_default();
                    json!([text(&format!("Use this context: {context}"))])
                }
                Err(input_error) => {
                    let (code, message) = (input_error_code(&input_error), input_error.to_string());
                    return Some(Err(RpcError { code, message, data: None }));
                }
            }
        }
        _ => return None,
    };
    Some(Ok(json!({"messages": messages})))
}

fn resource(uri: &str) -> ContentResult {
    let contents = match uri {
        "test://static-text" => json!({
            "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."
        }),
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": PIXEL}),
        WATCHED_URI => json!({"uri": uri, "mimeType": "text/plain", "text": "This resource changes."}),
        _ => match uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data")) {
            Some(id) => {
                let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
            }
            None => return skills::read(uri),
        },
    };
    Some(Ok(json!({"contents": [contents]})))
}

fn completion(params: &Value) -> Value {
    let prefix = params.pointer("/argument/value").and_then(Value::as_str).unwrap_or_default();
    let values: Vec<&str> =
        ["paris", "park", "party"].into_iter().filter(|value| value.starts_with(prefix)).collect();
    json!({"completion": {"values": values, "total": values.len(), "hasMore": false}})
}
