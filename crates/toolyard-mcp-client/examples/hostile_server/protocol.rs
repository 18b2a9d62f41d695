//! Valid responses in legacy and modern revisions.

use serde_json::{Value, json};

/// A message of the client.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// As JSON; none for a notification or a response.
    pub(crate) id: Option<Value>,
    pub(crate) method: String,
    pub(crate) params: Value,
}

impl Request {
    pub(crate) fn read(text: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(text).ok()?;
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        let id = message.get("id").cloned().filter(|_| !method.is_empty());
        Some(Self { id, method, params: message.get("params").cloned().unwrap_or_default() })
    }

    /// The id if it is a number, or 0.
    pub(crate) fn numeric_id(&self) -> i64 {
        self.id.as_ref().and_then(Value::as_i64).unwrap_or_default()
    }

    /// The token for progress notifications.
    pub(crate) fn progress_token(&self) -> Value {
        self.params.pointer("/_meta/progressToken").cloned().unwrap_or_default()
    }

    pub(crate) fn result(&self, result: &Value) -> String {
        json!({"jsonrpc": "2.0", "id": self.id, "result": result}).to_string()
    }

    /// A response whose result is JSON text, valid or not.
    pub(crate) fn raw_result(&self, result: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, self.numeric_id())
    }

    pub(crate) fn error(&self, error: &Value) -> String {
        json!({"jsonrpc": "2.0", "id": self.id, "error": error}).to_string()
    }

    /// The argument of a call to `echo`.
    pub(crate) fn text_argument(&self) -> String {
        self.params.pointer("/arguments/text").and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}

pub(crate) fn notification(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

/// A successful result with a text.
pub(crate) fn text_result(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": false})
}

pub(crate) fn tool(name: &str) -> Value {
    json!({
        "name": name,
        "description": "Says what it is told",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "annotations": {"readOnlyHint": true},
    })
}

pub(crate) fn list_result(tools: &Value) -> Value {
    json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"})
}

/// The revision family of a response.
pub(crate) const LEGACY: bool = true;
pub(crate) const MODERN: bool = false;

/// The valid response; none to notifications.
pub(crate) fn valid_response(request: &Request, legacy: bool) -> Option<String> {
    request.id.as_ref()?;
    let capabilities = json!({"tools": {"listChanged": legacy}});
    let info = json!({"name": "hostile", "version": "1"});
    let result = match request.method.as_str() {
        "server/discover" if !legacy => json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
            "ttlMs": 0, "cacheScope": "private", "_meta": {"io.modelcontextprotocol/serverInfo": info},
        }),
        "initialize" => {
            json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info})
        }
        "tools/list" => list_result(&json!([tool("echo")])),
        "tools/call" => text_result(&request.text_argument()),
        "ping" => json!({}),
        other => {
            let error = json!({"code": -32601, "message": format!("no method {other}")});
            return Some(request.error(&error));
        }
    };
    Some(request.result(&result))
}
