//! Assigns pieces of tool calls to their calls, for servers that send an index, an id, both or neither.

use serde_json::{Map, Value};

use crate::{ModelEvent, ToolCallDelta, reply::MAX_TOOL_CALLS};

#[derive(Debug, Default)]
pub(super) struct ToolCallAssembler(Vec<PartialToolCall>);

#[derive(Debug, Default)]
struct PartialToolCall {
    /// The server's index; not unique, because some servers number all calls 0.
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl PartialToolCall {
    /// Whether a piece with the same index starts another call: this one is complete, and the piece has a name.
    fn is_followed_by(&self, name: &str, arguments: &str) -> bool {
        !name.is_empty()
            && arguments.starts_with('{')
            && arguments != self.arguments
            && serde_json::from_str::<Map<String, Value>>(&self.arguments).is_ok()
    }
}

impl ToolCallAssembler {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn push(&mut self, call: &Value, events: &mut Vec<ModelEvent>) {
        let index = call.get("index").and_then(Value::as_u64);
        let id = call.get("id").and_then(id_text).unwrap_or_default();
        // Some servers omit the `function` object around name and arguments.
        let function = call.get("function").filter(|function| function.is_object()).unwrap_or(call);
        self.push_function(index, id, function, events);
    }

    /// Adds the `function_call` of older servers, which make one call at most.
    pub(super) fn push_legacy(&mut self, function: &Value, events: &mut Vec<ModelEvent>) {
        self.push_function(Some(0), String::new(), function, events);
    }

    fn push_function(
        &mut self,
        index: Option<u64>,
        id: String,
        function: &Value,
        events: &mut Vec<ModelEvent>,
    ) {
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
        let arguments = match function.get("arguments").or_else(|| function.get("parameters")) {
            Some(Value::String(text)) => text.clone(),
            Some(value @ Value::Object(_)) => value.to_string(),
            _ => String::new(),
        };
        let Some(position) = self.find_or_insert(index, &id, name, &arguments) else { return };
        let Some(call) = self.0.get_mut(position) else { return };
        // Servers send the name once, in pieces, or whole with every piece.
        let name = name.strip_prefix(call.name.as_str()).unwrap_or(name).to_owned();
        // Arguments are one object, so an equal object is a repetition.
        let is_repeated = arguments.starts_with('{') && arguments == call.arguments;
        let arguments = if is_repeated { String::new() } else { arguments };
        call.name.push_str(&name);
        call.arguments.push_str(&arguments);
        let id = (call.id != id && !id.is_empty()).then(|| call.id.clone_from(&id)).map(|()| id);
        let name = Some(name).filter(|name| !name.is_empty());
        if id.is_some() || name.is_some() || !arguments.is_empty() {
            events.push(ModelEvent::ToolCall(ToolCallDelta { index: position, id, name, arguments }));
        }
    }

    /// The position of the call that a piece belongs to. An id outweighs an index.
    fn find_or_insert(&mut self, index: Option<u64>, id: &str, name: &str, arguments: &str) -> Option<usize> {
        let is_same_call = |call: &PartialToolCall| match (id, call.id.as_str()) {
            ("", _) | (_, "") => !call.is_followed_by(name, arguments),
            (id, known_id) => id == known_id,
        };
        let position = match index {
            Some(_) => self.0.iter().rposition(|call| call.index == index && is_same_call(call)),
            None if !id.is_empty() => self.0.iter().rposition(|call| call.id == id),
            // Neither index nor id: a name starts a call, anything else belongs to the last one.
            None if name.is_empty() => self.0.len().checked_sub(1),
            None => None,
        };
        if position.is_some() {
            return position;
        }
        let is_empty = id.is_empty() && name.is_empty() && self.0.is_empty() && index.is_none();
        if self.0.len() >= MAX_TOOL_CALLS || is_empty {
            return None;
        }
        self.0.push(PartialToolCall { index, ..PartialToolCall::default() });
        Some(self.0.len() - 1)
    }
}

fn id_text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned).or_else(|| value.as_u64().map(|number| number.to_string()))
}
