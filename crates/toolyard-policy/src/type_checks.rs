//! Adds checks of types to a policy, so that an argument of an unexpected type fails its evaluation.
//!
//! Most operators of Cedar fail for an operand of the wrong type. Some do not: `==` is false for a text and a set, and so is
//! `["a"].contains(x)` for any `x` that is not a text. A caller could evade `forbid … when { context.arguments.path == "/etc/passwd" }`
//! with the path `["/etc/passwd"]`. So such an operand `x` is replaced by `if CHECK then x else x`, where CHECK needs the type
//! that the policy expects and is true for all its values.

use serde_json::{Map, Value, json};

use crate::attribute_usage::{AttributeUsage, Scalar, ValueType, operation};

/// The condition, in which every attribute of unknown type is checked where Cedar does not check it.
pub(crate) fn with_type_checks(condition: &Value, usage: &AttributeUsage) -> Value {
    let mut condition = condition.clone();
    if let Some(body) = condition.get_mut("body") {
        *body = rewrite(body, true, usage);
    }
    condition
}

/// `is_checked`: whether the place of the expression needs a type by itself.
fn rewrite(expression: &Value, is_checked: bool, usage: &AttributeUsage) -> Value {
    if let Some(expected) = usage.expected_type(expression) {
        return match is_checked {
            true => expression.clone(),
            false => checked_read(expression, expected),
        };
    }
    let Some((operator, operands)) = operation(expression) else { return expression.clone() };
    let operands = match (operator, operands) {
        ("Value" | "Var", operands) => operands.clone(),
        (_, Value::Object(members)) => members
            .iter()
            .map(|(name, operand)| {
                let is_checked = is_operand_checked(operator, name, is_checked);
                (name.clone(), rewrite(operand, is_checked, usage))
            })
            .collect::<Map<_, _>>()
            .into(),
        (_, Value::Array(items)) => items.iter().map(|item| rewrite(item, false, usage)).collect(),
        (_, other) => other.clone(),
    };
    json!({ operator: operands })
}

/// Whether Cedar fails if this operand has not the type that the operator implies.
fn is_operand_checked(operator: &str, operand: &str, is_result_checked: bool) -> bool {
    match (operator, operand) {
        ("if-then-else", "then" | "else") => is_result_checked,
        ("if-then-else", "if") => true,
        // Cedar evaluates the right side only if it decides, and then needs a boolean.
        ("&&" | "||" | "!" | "neg" | "+" | "-" | "*" | "<" | "<=" | ">" | ">=" | "like" | "isEmpty", _) => {
            true
        }
        ("contains", "left") | ("containsAll" | "containsAny", _) => true,
        // Of the wrong type, it has no attributes.
        ("." | "has", "left") => true,
        _ => false,
    }
}

fn checked_read(read: &Value, expected: ValueType) -> Value {
    let check = match expected {
        ValueType::Scalar(Scalar::Text) => json!({"like": {"left": read, "pattern": ["Wildcard"]}}),
        ValueType::Scalar(Scalar::Long) => json!({"<=": {"left": read, "right": read}}),
        ValueType::Scalar(Scalar::Bool) => json!({"||": {"left": read, "right": {"Value": true}}}),
        ValueType::Set(_) => json!({"containsAll": {"left": read, "right": {"Set": []}}}),
    };
    json!({"if-then-else": {"if": check, "then": read, "else": read}})
}
