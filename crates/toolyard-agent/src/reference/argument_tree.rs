//! Arguments under construction: referenced values stay borrowed until they are serialized.

use serde::{Serialize, Serializer};
use serde_json::Value;
use toolyard_core::{Param, ParamType};

use super::{coerce::coerce_value, path::PathValue};

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ArgumentNode<'v> {
    Literal(&'v Value),
    Text(String),
    Resolved(PathValue<'v>),
    Array(Vec<Self>),
    #[serde(serialize_with = "serialize_entries")]
    Object(Vec<(&'v str, Self)>),
}

impl ArgumentNode<'_> {
    pub(super) fn into_value(self) -> Value {
        match self {
            ArgumentNode::Literal(value) => value.clone(),
            ArgumentNode::Text(text) => Value::String(text),
            ArgumentNode::Resolved(value) => value.into_value(),
            ArgumentNode::Array(items) => {
                Value::Array(items.into_iter().map(ArgumentNode::into_value).collect())
            }
            ArgumentNode::Object(entries) => Value::Object(
                entries.into_iter().map(|(key, node)| (key.to_owned(), node.into_value())).collect(),
            ),
        }
    }

    /// Converts the node to the type of a parameter. Lists are never copied.
    pub(super) fn coerce(self, param: &Param) -> Self {
        let (length, has_nested_list) = match &self {
            ArgumentNode::Resolved(PathValue::Borrowed(Value::Array(items))) => {
                (items.len(), items.iter().any(Value::is_array))
            }
            ArgumentNode::Resolved(PathValue::List(items)) => {
                (items.len(), items.iter().any(PathValue::is_list))
            }
            ArgumentNode::Array(items) => (items.len(), items.iter().any(ArgumentNode::is_list)),
            _ => return ArgumentNode::Resolved(PathValue::Owned(coerce_value(self.into_value(), param))),
        };
        let wants_lists = param.items.as_deref().is_some_and(|inner| inner.kind == ParamType::Array);
        match &param.kind {
            ParamType::Array if wants_lists && length > 0 && !has_nested_list => {
                ArgumentNode::Array(vec![self])
            }
            ParamType::Array => self,
            _ if length == 1 => {
                ArgumentNode::Resolved(PathValue::Owned(coerce_value(self.into_value(), param)))
            }
            _ => self,
        }
    }

    fn is_list(&self) -> bool {
        match self {
            ArgumentNode::Literal(value) => value.is_array(),
            ArgumentNode::Resolved(value) => value.is_list(),
            ArgumentNode::Array(_) => true,
            ArgumentNode::Text(_) | ArgumentNode::Object(_) => false,
        }
    }
}

fn serialize_entries<S: Serializer>(
    entries: &[(&str, ArgumentNode<'_>)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(entries.iter().map(|(key, node)| (key, node)))
}

/// Whether a node serializes to at most `max_bytes` of JSON.
pub(super) fn fits(node: &impl Serialize, max_bytes: usize) -> bool {
    serde_json::to_writer(ByteBudget(max_bytes), node).is_ok()
}

/// Discards what is written and fails once the budget is exceeded.
struct ByteBudget(usize);

impl std::io::Write for ByteBudget {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
