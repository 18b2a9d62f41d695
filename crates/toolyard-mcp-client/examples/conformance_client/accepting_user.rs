//! A caller who accepts every form: defaults where there are any, and `yes` elsewhere.

use serde_json::{Map, Value, json};
use toolyard_core::{BoxFuture, CallInputError, CallInputRequest, Caller, RawJson};
use toolyard_mcp_client::{ElicitationForm, FormField, declined_elicitation};

#[derive(Debug)]
pub(crate) struct AcceptingUser;

impl Caller for AcceptingUser {
    fn capabilities(&self) -> RawJson {
        RawJson::from_value(&json!({"elicitation": {"form": {}}}))
    }

    fn session_id(&self) -> u64 {
        1
    }

    fn request_input<'a>(
        &'a self,
        requests: &'a [CallInputRequest],
    ) -> BoxFuture<'a, Result<Vec<RawJson>, CallInputError>> {
        let answers = requests.iter().map(|request| {
            ElicitationForm::read(request.params.as_ref())
                .and_then(|form| form.accept(values_without_default(&form.fields)))
                .unwrap_or_else(|_no_form| declined_elicitation())
        });
        Box::pin(std::future::ready(Ok(answers.collect())))
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
