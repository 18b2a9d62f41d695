//! Tool definitions for clients: byte for byte what the server sent, apart from the name.

use serde_json::{Map, Value};
use toolyard_core::{JsonCursor, JsonError, RawJson, ToolSpec};

/// Approximate size of field names and punctuation in a definition.
const FIELD_NAMES_BYTES: usize = 64;

/// The definition of a tool in MCP's form, under a name that may differ from its own.
pub fn tool_definition(spec: &ToolSpec, name: &str) -> RawJson {
    definition(spec, name, None)
}

/// The definition of a tool under an exposed name. The description begins with what distinguishes the tool from others of
/// its name.
pub(super) fn definition(spec: &ToolSpec, name: &str, distinction: Option<&str>) -> RawJson {
    match &spec.raw {
        Some(raw) if *spec.name == *name && distinction.is_none() => raw.clone(),
        Some(raw) => edited(raw, name, distinction).unwrap_or_else(|_| from_spec(spec, name, distinction)),
        None => from_spec(spec, name, distinction),
    }
}

/// A description that begins with what distinguishes the tool: `[/data] Read a file`.
pub(super) fn distinguished(description: &str, distinction: Option<&str>) -> String {
    match distinction {
        Some(distinction) => format!("[{distinction}] {description}"),
        None => description.to_owned(),
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
fn from_spec(spec: &ToolSpec, name: &str, distinction: Option<&str>) -> RawJson {
    let mut fields = Map::new();
    let mut put = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    put("name", name.into());
    if let Some(title) = &spec.title {
        put("title", title.as_str().into());
    }
    put("description", distinguished(&spec.description, distinction).into());
    put("inputSchema", spec.input_schema.to_value());
    if let Some(schema) = &spec.output_schema {
        put("outputSchema", schema.to_value());
    }
    if !spec.hints.is_empty() {
        put("annotations", serde_json::to_value(spec.hints).unwrap_or_default());
    }
    RawJson::from_value(&Value::Object(fields))
}

/// Replaces the name, puts the distinction before the description, and leaves every other byte as it is.
fn edited(raw: &RawJson, name: &str, distinction: Option<&str>) -> Result<RawJson, JsonError> {
    let text = raw.get();
    let name = Value::from(name).to_string();
    // Without its closing quote: the rest of the description follows.
    let prefix = distinction.map(|distinction| Value::from(format!("[{distinction}] ")).to_string());
    let prefix = prefix.as_deref().and_then(|quoted| quoted.strip_suffix('"'));
    let mut is_described = prefix.is_none();
    let mut out = String::with_capacity(text.len() + name.len() + prefix.map_or(0, str::len));
    let mut copied = 0;
    let mut cursor = JsonCursor::of(raw);
    if !cursor.enter_object()? {
        return Err(JsonError::Syntax(0));
    }
    while let Some(key) = cursor.next_key()? {
        let value = cursor.next_value()?.get();
        let start = value.as_ptr().addr().saturating_sub(text.as_ptr().addr());
        let (replacement, replaced) = match (key.as_ref(), prefix) {
            ("name", _) => (name.as_str(), value.len()),
            // Its opening quote is replaced.
            ("description", Some(prefix)) if value.starts_with('"') => {
                is_described = true;
                (prefix, 1)
            }
            _ => continue,
        };
        out.push_str(text.get(copied..start).unwrap_or_default());
        out.push_str(replacement);
        copied = start + replaced;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    if !is_described {
        return Err(JsonError::Syntax(copied));
    }
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
        assert_eq!(definition(&spec, "old", None).get(), raw);
        assert_eq!(definition(&spec, "s.old", None).get(), raw.replace("\"old\"", "\"s.old\""));
    }

    #[test]
    fn the_description_begins_with_what_distinguishes_the_tool() {
        let raw = r#"{"name":"old","description" : "Reads \"a\"","inputSchema":{"description":"x"}}"#;
        let spec = ToolSpec::new("old", "d").with_raw(RawJson::parse(raw.to_owned()).unwrap());
        assert_eq!(
            definition(&spec, "s.old", Some(r#"/da"ta"#)).get(),
            r#"{"name":"s.old","description" : "[/da\"ta] Reads \"a\"","inputSchema":{"description":"x"}}"#
        );
        let bare = ToolSpec::new("old", "").with_raw(
            RawJson::parse(r#"{"name":"old","inputSchema":{"type":"object"}}"#.to_owned()).unwrap(),
        );
        assert!(definition(&bare, "old", Some("/data")).get().contains(r#""description":"[/data] ""#));
    }

    #[test]
    fn a_native_tool_gets_an_mcp_definition() {
        let spec = ToolSpec::new("t", "Does it").with_hints(ToolHints::READ_ONLY).with_capability("time");
        assert_eq!(
            definition(&spec, "t", None).get(),
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
            prop_assert_eq!(definition(&spec, &name, None).get().to_owned(), expected);
        }
    }
}
