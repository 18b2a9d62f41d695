//! Which call a piece of a call belongs to, from servers that number them, name them, or do neither.

use serde_json::{Map, Value};

use crate::{ModelEvent, ToolCallDelta};

/// A model that counts to a million has not made a million calls.
const MOST: usize = 256;

/// The calls of an answer so far.
#[derive(Debug, Default)]
pub(super) struct CallSlots(Vec<Slot>);

#[derive(Debug, Default)]
struct Slot {
    number: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Slot {
    /// Whether this piece begins another call although it has the same number: it has a name, and we are complete.
    fn is_followed_by(&self, name: &str, arguments: &str) -> bool {
        !name.is_empty()
            && arguments.starts_with('{')
            && arguments != self.arguments
            && serde_json::from_str::<Map<String, Value>>(&self.arguments).is_ok()
    }
}

impl CallSlots {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a piece of a call.
    pub(super) fn take(&mut self, call: &Value, events: &mut Vec<ModelEvent>) {
        let number = call.get("index").and_then(Value::as_u64);
        let id = call.get("id").and_then(text_of).unwrap_or_default();
        // Some servers leave out the function around name and arguments.
        let function = call.get("function").filter(|function| function.is_object()).unwrap_or(call);
        self.take_function(number, id, function, events);
    }

    /// Takes a piece of the one call that older servers can make.
    pub(super) fn take_legacy(&mut self, function: &Value, events: &mut Vec<ModelEvent>) {
        self.take_function(Some(0), String::new(), function, events);
    }

    fn take_function(
        &mut self,
        number: Option<u64>,
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
        let Some(index) = self.slot(number, &id, name, &arguments) else { return };
        let Some(slot) = self.0.get_mut(index) else { return };
        let name = more_of_name(&slot.name, name).to_owned();
        // Two objects after one another are never arguments: it is the same ones again.
        let is_repeated = arguments.starts_with('{') && arguments == slot.arguments;
        let arguments = if is_repeated { String::new() } else { arguments };
        slot.name.push_str(&name);
        slot.arguments.push_str(&arguments);
        let id = (slot.id != id && !id.is_empty()).then(|| slot.id.clone_from(&id)).map(|()| id);
        let name = Some(name).filter(|name| !name.is_empty());
        if id.is_some() || name.is_some() || !arguments.is_empty() {
            events.push(ModelEvent::ToolCall(ToolCallDelta { index, id, name, arguments }));
        }
    }

    /// The call that a piece belongs to. A number is believed unless the id says that it is another call: some servers
    /// number all calls 0.
    fn slot(&mut self, number: Option<u64>, id: &str, name: &str, arguments: &str) -> Option<usize> {
        let same_call = |slot: &Slot| match (id, slot.id.as_str()) {
            ("", _) | (_, "") => !slot.is_followed_by(name, arguments),
            (id, of_slot) => id == of_slot,
        };
        let found = match number {
            Some(_) => self.0.iter().rposition(|slot| slot.number == number && same_call(slot)),
            None if !id.is_empty() => self.0.iter().rposition(|slot| slot.id == id),
            // Neither number nor id: a name begins a call, anything else belongs to the last one.
            None if name.is_empty() => self.0.len().checked_sub(1),
            None => None,
        };
        if found.is_some() {
            return found;
        }
        let is_nothing = id.is_empty() && name.is_empty() && self.0.is_empty() && number.is_none();
        if self.0.len() >= MOST || is_nothing {
            return None;
        }
        self.0.push(Slot { number, ..Slot::default() });
        Some(self.0.len() - 1)
    }
}

/// What a name adds to the name so far: servers send it once, in pieces, or whole every time.
fn more_of_name<'a>(so_far: &str, name: &'a str) -> &'a str {
    name.strip_prefix(so_far).unwrap_or(name)
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned).or_else(|| value.as_u64().map(|number| number.to_string()))
}
