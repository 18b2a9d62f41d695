//! Tool definitions for clients: byte for byte what the server sent, apart from the name.

use serde_json::{Map, Value};
use toolyard_core::{JsonCursor, JsonError, RawJson, ToolSpec};

/// Approximate size of field names and punctuation in a definition.
const FIELD_NAMES_BYTES: usize = 64;

/// The definition of a tool under an exposed name.
pub(super) fn definition(spec: &ToolSpec, name: &str) -> RawJson {
    match &spec.raw {
        Some(raw) if *spec.name == *name => raw.clone(),
        Some(raw) => renamed(raw, name).unwrap_or_else(|_| from_spec(spec, name)),
        None => from_spec(spec, name),
    }
}

/// The approximate size of a definition in bytes, without serializing it.
pub(super) fn definition_size(spec: &ToolSpec) -> usize {
    match &spec.raw {
        Some(raw) => raw.get().len(),
        None => spec.name.len() + spec.description.len() + spec.input_schema.get().len() + FIELD_NAMES_BYTES,
    }
}

/// The definition built from the spec, for a tool that no server sent or whose JSON cannot be renamed.
fn from_spec(spec: &ToolSpec, name: &str) -> RawJson {
    let mut fields = Map::new();
    let mut put = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    put("name", name.into());
    if let Some(title) = &spec.title {
        put("title", title.as_str().into());
    }
    put("description", spec.description.as_str().into());
    put("inputSchema", spec.input_schema.to_value());
    if let Some(schema) = &spec.output_schema {
        put("outputSchema", schema.to_value());
    }
    if !spec.hints.is_empty() {
        put("annotations", serde_json::to_value(spec.hints).unwrap_or_default());
    }
    RawJson::from_value(&Value::Object(fields))
}

/// Replaces the value of the field `name` and leaves every other byte as it is.
fn renamed(raw: &RawJson, name: &str) -> Result<RawJson, JsonError> {
    let text = raw.get();
    let name = Value::from(name).to_string();
    let mut out = String::with_capacity(text.len() + name.len());
    let mut copied = 0;
    let mut cursor = JsonCursor::of(raw);
    if !cursor.enter_object()? {
        return Err(JsonError::Syntax(0));
    }
    while let Some(key) = cursor.next_key()? {
        let value = cursor.next_value()?.get();
        if key == "name" {
            let start = value.as_ptr().addr().saturating_sub(text.as_ptr().addr());
            out.push_str(text.get(copied..start).unwrap_or_default());
            out.push_str(&name);
            copied = start + value.len();
        }
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    RawJson::parse(out).map_err(|_| JsonError::Syntax(copied))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toolyard_core::ToolHints;

    use super::*;

    #[test]
    fn only_the_name_changes() {
        let raw = r#"{ "description":"d\u00e9", "name" : "old", "inputSchema":{"name":"x","type":"object"}, "n":1.50 }"#;
        let spec = ToolSpec::new("old", "d").with_raw(RawJson::parse(raw.to_owned()).unwrap());
        assert_eq!(definition(&spec, "old").get(), raw);
        assert_eq!(definition(&spec, "s.old").get(), raw.replace("\"old\"", "\"s.old\""));
    }

    #[test]
    fn a_native_tool_gets_an_mcp_definition() {
        let spec = ToolSpec::new("t", "Does it").with_hints(ToolHints::READ_ONLY).with_capability("time");
        assert_eq!(
            definition(&spec, "t").get(),
            r#"{"name":"t","description":"Does it","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}"#
        );
    }

    proptest! {
        /// The keys are of `[a-m]`, so that none is `name`.
        #[test]
        fn the_rest_stays_byte_for_byte(before in "[ \\n]{0,3}", key in "[a-m]{1,5}", text in "\\PC{0,20}", name in "[a-z.]{1,10}") {
            let value = Value::from(text);
            let raw = format!("{{{before}\"{key}\":{value},{before}\"name\":{before}\"old\"{before},\"z\":{value}}}");
            let spec = ToolSpec::new("old", "d").with_raw(RawJson::parse(raw.clone()).unwrap());
            let expected = raw.replace("\"old\"", &format!("\"{name}\""));
            prop_assume!(raw.matches("\"old\"").count() == 1);
            prop_assert_eq!(definition(&spec, &name).get().to_owned(), expected);
        }
    }
}
