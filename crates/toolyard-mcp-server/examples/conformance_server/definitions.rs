//! Definitions of the tools.

use serde_json::{Value, json};
use toolyard_core::{ListedTool, RawJson};

/// An image of one red pixel.
pub(crate) const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// Audio without samples.
pub(crate) const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// Tools without arguments: name and description.
const TOOLS_WITHOUT_ARGUMENTS: [(&str, &str); 24] = [
    ("test_audio_content", "Answers with a sound"),
    ("test_elicitation_sep1034_defaults", "Asks with a default for every kind of value"),
    ("test_elicitation_sep1330_enums", "Asks with every kind of choice"),
    ("test_embedded_resource", "Answers with a resource sent along"),
    ("test_error_handling", "Always fails"),
    ("test_image_content", "Answers with a picture"),
    ("test_input_required_result_capabilities", "Asks only what the client can answer"),
    ("test_input_required_result_elicitation", "Asks for a name"),
    ("test_input_required_result_list_roots", "Asks for the client's roots"),
    ("test_input_required_result_multi_round", "Asks twice, one after the other"),
    ("test_input_required_result_multiple_inputs", "Asks three things at once"),
    (
        "test_input_required_result_request_state",
        "Asks for a confirmation and checks what it was reminded of",
    ),
    ("test_input_required_result_sampling", "Asks a language model"),
    ("test_input_required_result_tampered_state", "Asks for a confirmation that cannot be forged"),
    ("test_logging_tool", "Writes into the log"),
    ("test_missing_capability", "Cannot work without sampling"),
    ("test_multiple_content_types", "Answers with text, a picture and a resource"),
    ("test_simple_text", "Answers with a text"),
    ("test_streaming_elicitation", "Says how far it is, and asks"),
    ("test_tool_with_logging", "Writes into the log while it works"),
    ("test_tool_with_progress", "Says how far it is while it works"),
    ("test_trigger_prompt_change", "Changes the list of prompts"),
    ("test_trigger_resource_update", "Changes the resource that is watched"),
    ("test_trigger_tool_change", "Changes the list of tools"),
];

/// The tools, by name. One of them is added and removed at run time.
pub(crate) fn tools(with_extra_tool: bool) -> Vec<ListedTool> {
    let without_arguments = TOOLS_WITHOUT_ARGUMENTS.into_iter().map(|(name, description)| {
        json!({"name": name, "description": description, "inputSchema": {"type": "object", "properties": {}}})
    });
    let extra_tool = json!({
        "name": "test_guest", "description": "Comes and goes", "inputSchema": {"type": "object"}
    });
    let mut all: Vec<Value> = without_arguments
        .chain(tools_with_arguments())
        .chain(with_extra_tool.then_some(extra_tool))
        .collect();
    all.sort_by(|left, right| name_of(left).cmp(name_of(right)));
    all.iter()
        .map(|definition| ListedTool {
            name: name_of(definition).into(),
            definition: RawJson::from_value(definition),
        })
        .collect()
}

fn name_of(definition: &Value) -> &str {
    definition.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn tools_with_arguments() -> [Value; 4] {
    [
        json!({
            "name": "json_schema_2020_12_tool",
            "description": "Tool with JSON Schema 2020-12 features",
            "inputSchema": {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "$defs": {"address": {
                    "$anchor": "addressDef",
                    "type": "object",
                    "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
                }},
                "properties": {
                    "name": {"type": "string"},
                    "address": {"$ref": "#/$defs/address"},
                    "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                    "phone": {"type": "string"},
                    "email": {"type": "string"}
                },
                "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
                "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
                "then": {"required": ["phone"]},
                "else": {"required": ["email"]},
                "additionalProperties": false
            }
        }),
        json!({
            "name": "test_elicitation",
            "description": "Asks the user what it is told to ask",
            "inputSchema": {
                "type": "object",
                "properties": {"message": {"type": "string", "description": "What the user is shown"}},
                "required": ["message"]
            }
        }),
        json!({
            "name": "test_sampling",
            "description": "Asks the client's language model what it is told to ask",
            "inputSchema": {
                "type": "object",
                "properties": {"prompt": {"type": "string", "description": "What the model is asked"}},
                "required": ["prompt"]
            }
        }),
        json!({
            "name": "test_x_mcp_header",
            "description": "Takes an argument that travels in a header, too",
            "inputSchema": {
                "type": "object",
                "properties": {"region": {"type": "string", "description": "Where", "x-mcp-header": "Region"}},
                "required": ["region"]
            }
        }),
    ]
}
