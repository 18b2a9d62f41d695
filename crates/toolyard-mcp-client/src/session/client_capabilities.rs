//! Which input requests a client supports, according to its capabilities.

use std::sync::LazyLock;

use serde_json::json;
use toolyard_core::{CallInputKind, RawJson};
use toolyard_mcp::{
    FieldEdit, JsonObject, RpcError, edit_fields,
    error_code::{INVALID_PARAMS, METHOD_NOT_FOUND},
    input_method::input_method,
    raw_field,
};

/// The capabilities that are about input. A server behind us does not get any other.
const INPUT_CAPABILITIES: [&str; 3] = ["elicitation", "sampling", "roots"];

/// The client capabilities of requests that belong to no call, `initialize` among them: each kind of input that some caller may be
/// able to give. All commands announce the same, because some servers choose their tools by it: a tool that only some commands see
/// could not be approved.
pub(crate) static ANNOUNCED_CAPABILITIES: LazyLock<RawJson> =
    LazyLock::new(|| json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}).into());

/// Checks that a client with these capabilities supports an input request, or returns the error for the server.
pub(super) fn check_supported(
    capabilities: &RawJson,
    kind: CallInputKind,
    params: Option<&RawJson>,
) -> Result<(), RpcError> {
    let unsupported = |feature: &str, code| {
        Err(RpcError { code, message: format!("the client does not support {feature}"), data: None })
    };
    let key = match kind {
        CallInputKind::Elicitation => "elicitation",
        CallInputKind::Sampling => "sampling",
        CallInputKind::Roots => "roots",
    };
    let Some(offered) = enabled_field(capabilities, key) else {
        return unsupported(input_method(kind), METHOD_NOT_FOUND);
    };
    let param = |key| params.and_then(|params| enabled_field(params, key));
    match kind {
        CallInputKind::Elicitation => {
            let wants_url = param("mode").is_some_and(|mode| mode.get() == "\"url\"");
            let has_url = enabled_field(&offered, "url").is_some();
            // Before there were modes, an empty capability meant forms.
            let has_form = enabled_field(&offered, "form").is_some() || !has_url;
            match (wants_url, has_form) {
                (true, _) if !has_url => unsupported("elicitation by URL", INVALID_PARAMS),
                (false, false) => unsupported("elicitation by form", INVALID_PARAMS),
                _ => Ok(()),
            }
        }
        CallInputKind::Sampling if param("tools").is_some() && enabled_field(&offered, "tools").is_none() => {
            unsupported("sampling with tools", INVALID_PARAMS)
        }
        _ => Ok(()),
    }
}

/// Whether a client with these capabilities can answer any input request.
pub(crate) fn can_be_asked(capabilities: &RawJson) -> bool {
    capabilities.get() != "{}"
        && INPUT_CAPABILITIES.iter().any(|key| enabled_field(capabilities, key).is_some())
}

/// The capabilities of a client that are about input.
pub(super) fn input_capabilities(capabilities: &RawJson) -> JsonObject {
    // Needs no parsing; many clients have none.
    if capabilities.get() == "{}" {
        return JsonObject::new();
    }
    edit_fields(capabilities, |key, value| {
        if INPUT_CAPABILITIES.contains(&key) && is_enabled(value) {
            FieldEdit::Keep
        } else {
            FieldEdit::Remove
        }
    })
}

fn enabled_field(object: &RawJson, key: &str) -> Option<RawJson> {
    raw_field(object, key).filter(is_enabled)
}

fn is_enabled(value: &RawJson) -> bool {
    !matches!(value.get(), "null" | "false")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn check(capabilities: Value, kind: CallInputKind, params: Value) -> Result<(), i64> {
        check_supported(&capabilities.into(), kind, Some(&params.into())).map_err(|error| error.code)
    }

    #[test]
    fn a_client_gets_only_requests_that_it_supports() {
        let (form, url) = (json!({"message": "?"}), json!({"mode": "url", "url": "https://example.org"}));
        let elicit = CallInputKind::Elicitation;
        assert_eq!(check(json!({"elicitation": {}}), elicit, form.clone()), Ok(()));
        assert_eq!(check(json!({"elicitation": {"form": {}}}), elicit, form.clone()), Ok(()));
        assert_eq!(check(json!({"elicitation": {"url": {}}}), elicit, form.clone()), Err(INVALID_PARAMS));
        assert_eq!(check(json!({"elicitation": {"url": {}}}), elicit, url.clone()), Ok(()));
        assert_eq!(check(json!({"elicitation": {}}), elicit, url), Err(INVALID_PARAMS));
        assert_eq!(check(json!({"sampling": {}}), elicit, form.clone()), Err(METHOD_NOT_FOUND));
        assert_eq!(check(json!({"elicitation": null}), elicit, form), Err(METHOD_NOT_FOUND));
        let sample = CallInputKind::Sampling;
        assert_eq!(check(json!({"sampling": {}}), sample, json!({})), Ok(()));
        assert_eq!(check(json!({"sampling": {}}), sample, json!({"tools": []})), Err(INVALID_PARAMS));
        assert_eq!(check(json!({"sampling": {"tools": {}}}), sample, json!({"tools": []})), Ok(()));
        assert_eq!(check(json!({"roots": {}}), CallInputKind::Roots, json!(null)), Ok(()));
        assert_eq!(check(json!({}), CallInputKind::Roots, json!({})), Err(METHOD_NOT_FOUND));
    }

    #[test]
    fn a_server_gets_only_the_input_capabilities_of_a_client() {
        let all = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}, "roots": {"listChanged": true},
            "experimental": {"x": {}}, "elicitation": {"form": {}, "url": {}}, "sampling": null});
        let input = json!({"elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": true}});
        assert_eq!(
            serde_json::from_str::<Value>(&input_capabilities(&all.into()).to_string()).unwrap(),
            input
        );
        assert_eq!(input_capabilities(&json!([1]).into()).to_string(), "{}");
    }
}
