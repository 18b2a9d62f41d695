//! Someone who agrees to everything a server asks: takes the defaults of a form, and says yes where there are none.

use serde_json::{Map, Value, json};
use toolyard_core::{BoxFuture, RawJson};
use toolyard_mcp::{
    client::{Form, FormField, InputHandler, InputRequest, declined},
    wire::RpcError,
};

/// A person who agrees to everything.
#[derive(Debug)]
pub(crate) struct Agreeable;

impl InputHandler for Agreeable {
    fn capabilities(&self) -> RawJson {
        RawJson::from_value(
            &json!({"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/skills": {}}}),
        )
    }

    fn answer<'a>(&'a self, request: InputRequest<'a>) -> BoxFuture<'a, Result<RawJson, RpcError>> {
        let answer = Form::read(request.params).and_then(|form| form.accepted(said(&form.fields)));
        Box::pin(async { Ok(answer.unwrap_or_else(|_no_form| declined())) })
    }
}

/// A word for everything that has no default.
fn said(fields: &[FormField]) -> Map<String, Value> {
    let open = fields.iter().filter(|field| field.default().is_none());
    open.filter_map(|field| {
        let word = match field.schema.get("type").and_then(Value::as_str)? {
            "boolean" => json!(true),
            "string" => json!("yes"),
            "integer" | "number" => json!(1),
            _ => return None,
        };
        Some((field.name.clone(), word))
    })
    .collect()
}
