//! Messages with the sizes and shapes that real servers send.

use serde_json::{Value, json};

/// The tools of excel-mcp-server 2.2.2.
pub(crate) const TOOL_COUNT: usize = 46;

/// The bytes of a message. The list can be read from a file with the result of a real `tools/list`.
pub(crate) fn message(kind: &str, file: Option<&str>) -> Option<Vec<u8>> {
    let result = match (kind, file) {
        ("list", Some(file)) => serde_json::from_slice(&std::fs::read(file).ok()?).ok()?,
        ("small", _) => {
            json!({"content": [{"type": "text", "text": "2026-11-15T10:00:03"}], "isError": false})
        }
        ("list", None) => list(),
        ("structured", _) => structured(),
        ("text", _) => json!({"content": [{"type": "text", "text": text(1 << 20)}], "isError": false}),
        _ => return None,
    };
    serde_json::to_vec(&json!({"jsonrpc": "2.0", "id": 7, "result": result})).ok()
}

/// Tools in 69 kB, like those of excel-mcp-server 2.2.2.
fn list() -> Value {
    let tools: Vec<Value> = (0..TOOL_COUNT).map(tool).collect();
    json!({"cacheScope": "private", "resultType": "complete", "tools": tools, "ttlMs": 0})
}

fn tool(number: usize) -> Value {
    let property = |index: usize| match index % 4 {
        0 => json!({"type": "string"}),
        1 => {
            json!({"description": format!("Default: ['Sheet{number}']."), "items": {"type": "string"}, "minItems": 1, "type": "array"})
        }
        2 => {
            json!({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": null, "description": "First row to read; 1 is the \"top\" row."})
        }
        _ => json!({"default": "auto", "enum": ["auto", "manual", "auto_except_tables"], "type": "string"}),
    };
    let properties: serde_json::Map<String, Value> =
        (0..7).map(|index| (format!("property_{index}"), property(index + number))).collect();
    let schema = json!({"type": "object", "properties": properties, "required": ["property_0"]});
    let mut tool = json!({
        "annotations": {"destructiveHint": false, "idempotentHint": true, "openWorldHint": false, "readOnlyHint": true},
        "description": format!("Start here: a workbook's sheets (used range, object counts), defined names,\nproperties and settings of number {number}. `has_vba` appears only when it is true; see the tool that reads it. Ranges are given as A1:B2 and may name a sheet. Nothing is written."),
        "inputSchema": schema,
        "name": format!("describe_workbook_{number}"),
        "title": "Describe workbook",
    });
    if number.is_multiple_of(7)
        && let Some(fields) = tool.as_object_mut()
    {
        let defs = json!({"CalculationInfo": schema, "SheetInfo": schema});
        fields.insert(
            "outputSchema".to_owned(),
            json!({"$defs": defs, "type": "object", "properties": properties}),
        );
    }
    tool
}

/// 700 kB of rows and a line of text.
fn structured() -> Value {
    let row = |number: usize| {
        json!({
            "id": number, "name": format!("Customer {number}"), "email": format!("customer.{number}@example.com"),
            "amount": f64::from(u32::try_from(number).unwrap_or_default()) * 1.25, "active": number.is_multiple_of(3),
            "tags": ["new", "europe"], "address": {"city": "Köln", "zip": "50667", "note": null},
        })
    };
    let rows: Vec<Value> = (0..3_900).map(row).collect();
    json!({"content": [{"type": "text", "text": "3900 rows"}], "structuredContent": {"rows": rows}, "isError": false})
}

/// Lines of text with quotes and tabs, as in tables and code.
fn text(bytes: usize) -> String {
    let line = "The quick brown fox jumps over the lazy dog, and \"nobody\" minds;\tneither does the dog.\n";
    line.repeat(bytes / line.len())
}
