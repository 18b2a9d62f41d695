//! Arguments while they are put together: parts of values stay where they are until they are written.

use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::Value;
use toolyard_core::{Param, ParamType};

use super::walk::Found;
use crate::fit::fitted;

/// Arguments on the way: parts of values stay where they are until they are written.
pub(super) enum Node<'v> {
    Literal(&'v Value),
    Text(String),
    Found(Found<'v>),
    Array(Vec<Self>),
    Object(Vec<(&'v str, Self)>),
}

impl Node<'_> {
    pub(super) fn into_value(self) -> Value {
        match self {
            Node::Literal(value) => value.clone(),
            Node::Text(text) => Value::String(text),
            Node::Found(found) => found.into_value(),
            Node::Array(items) => Value::Array(items.into_iter().map(Node::into_value).collect()),
            Node::Object(entries) => Value::Object(
                entries.into_iter().map(|(key, node)| (key.to_owned(), node.into_value())).collect(),
            ),
        }
    }

    /// The same in the form that a parameter has. Lists are looked at and never copied.
    pub(super) fn fitted(self, param: &Param) -> Self {
        let (items, holds_list) = match &self {
            Node::Found(Found::One(Value::Array(items))) => (items.len(), items.iter().any(Value::is_array)),
            Node::Found(Found::Many(items)) => (items.len(), items.iter().any(Found::is_list)),
            Node::Array(items) => (items.len(), items.iter().any(Node::is_list)),
            _ => return Node::Found(Found::Made(fitted(self.into_value(), param))),
        };
        let wants_lists = param.items.as_deref().is_some_and(|inner| inner.kind == ParamType::Array);
        match &param.kind {
            ParamType::Array if wants_lists && items > 0 && !holds_list => Node::Array(vec![self]),
            ParamType::Array => self,
            _ if items == 1 => Node::Found(Found::Made(fitted(self.into_value(), param))),
            _ => self,
        }
    }

    fn is_list(&self) -> bool {
        match self {
            Node::Literal(value) => value.is_array(),
            Node::Found(found) => found.is_list(),
            Node::Array(_) => true,
            Node::Text(_) | Node::Object(_) => false,
        }
    }
}

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Node::Literal(value) => value.serialize(serializer),
            Node::Text(text) => serializer.serialize_str(text),
            Node::Found(found) => found.serialize(serializer),
            Node::Array(items) => items.serialize(serializer),
            Node::Object(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, node) in entries {
                    map.serialize_entry(key, node)?;
                }
                map.end()
            }
        }
    }
}

/// Whether something is at most so many bytes of JSON; nothing is kept of it.
pub(super) fn fits(node: &impl Serialize, bytes: usize) -> bool {
    serde_json::to_writer(Room(bytes), node).is_ok()
}

/// Takes as many bytes as there is room for.
struct Room(usize);

impl std::io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
