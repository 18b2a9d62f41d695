//! Example arguments, built from a tool's required parameters.

use serde_json::{Map, Value, json};
use toolyard_core::{Param, ParamType};

/// Objects and arrays nested deeper are left empty.
const MAX_DEPTH: usize = 4;

/// Placeholder values for all required parameters.
pub(super) fn example_arguments(params: &[Param]) -> Value {
    example_object(params, 0)
}

fn example_object(params: &[Param], depth: usize) -> Value {
    let required = params.iter().filter(|param| param.required);
    Value::Object(
        required.map(|param| (param.name.clone(), example_value(param, depth))).collect::<Map<_, _>>(),
    )
}

fn example_value(param: &Param, depth: usize) -> Value {
    if let Some(declared) = param.default.as_ref().or_else(|| param.choices.first()) {
        return declared.clone();
    }
    example_of_type(&param.kind, param, depth)
}

fn example_of_type(kind: &ParamType, param: &Param, depth: usize) -> Value {
    match kind {
        ParamType::String | ParamType::Any => json!("..."),
        ParamType::Number => json!(1.5),
        ParamType::Integer => json!(1),
        ParamType::Boolean => json!(true),
        ParamType::Null => Value::Null,
        ParamType::Array => match &param.items {
            Some(items) if depth < MAX_DEPTH => json!([example_value(items, depth + 1)]),
            _ => json!([]),
        },
        ParamType::Object if depth < MAX_DEPTH => example_object(&param.fields, depth + 1),
        ParamType::Object => json!({}),
        ParamType::Union(kinds) => {
            kinds.first().map_or(Value::Null, |first| example_of_type(first, param, depth))
        }
    }
}
