//! Example arguments, built from a tool's required parameters.

use serde_json::{Map, Value, json};
use toolyard_core::{Param, ParamType};

/// Nesting below this is left empty.
const MAX_DEPTH: usize = 4;

/// Placeholder values for all required parameters.
pub(super) fn example_arguments(params: &[Param]) -> Value {
    fields(params, 0)
}

fn fields(params: &[Param], depth: usize) -> Value {
    let required = params.iter().filter(|param| param.required);
    Value::Object(required.map(|param| (param.name.clone(), value(param, depth))).collect::<Map<_, _>>())
}

fn value(param: &Param, depth: usize) -> Value {
    if let Some(known) = param.default.as_ref().or_else(|| param.choices.first()) {
        return known.clone();
    }
    value_of_kind(&param.kind, param, depth)
}

fn value_of_kind(kind: &ParamType, param: &Param, depth: usize) -> Value {
    match kind {
        ParamType::String | ParamType::Any => json!("..."),
        ParamType::Number => json!(1.5),
        ParamType::Integer => json!(1),
        ParamType::Boolean => json!(true),
        ParamType::Null => Value::Null,
        ParamType::Array => match &param.items {
            Some(items) if depth < MAX_DEPTH => json!([value(items, depth + 1)]),
            _ => json!([]),
        },
        ParamType::Object if depth < MAX_DEPTH => fields(&param.fields, depth + 1),
        ParamType::Object => json!({}),
        ParamType::Union(kinds) => {
            kinds.first().map_or(Value::Null, |first| value_of_kind(first, param, depth))
        }
    }
}
