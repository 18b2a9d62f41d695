//! An input handler that accepts every form: defaults where there are any, and `yes` elsewhere.

use serde_json::{Map, Value, json};
use toolyard_core::{BoxFuture, RawJson};
use toolyard_mcp::RpcError;
use toolyard_mcp_client::{ElicitationForm, FormField, InputHandler, InputRequest, declined_elicitation};

#[derive(Debug)]
pub(crate) struct AcceptingUser;

impl InputHandler for AcceptingUser {
    fn capabilities(&self) -> RawJson {
        RawJson::from_value(
            &json!({"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/skills": {}}}),
        )
    }

    fn answer<'a>(&'a self, request: InputRequest<'a>) -> BoxFuture<'a, Result<RawJson, RpcError>> {
        let answer = ElicitationForm::read(request.params)
            .and_then(|form| form.accept(values_without_default(&form.fields)));
        Box::pin(async { Ok(answer.unwrap_or_else(|_no_form| declined_elicitation())) })
    }
}

/// Values for all fields without a default.
fn values_without_default(fields: &[FormField]) -> Map<String, Value> {
    let without_default = fields.iter().filter(|field| field.default().is_none());
    without_default
        .filter_map(|field| {
            let value = match field.schema.get("type").and_then(Value::as_str)? {
                "boolean" => json!(true),
                "string" => json!("yes"),
                "integer" | "number" => json!(1),
                _ => return None,
            };
            Some((field.name.clone(), value))
        })
        .collect()
}
