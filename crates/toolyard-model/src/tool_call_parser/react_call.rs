//! ReAct calls: `Action: get_time` with `Action Input: {…}` on the next line.

use serde_json::Value;

use super::{
    call_end::skip_whitespace,
    call_object::normalize_name,
    element::{Element, ParseContext},
};
use crate::lenient_json::{LenientJsonError, parse_prefix};

const ACTION: &str = "Action:";
const ACTION_INPUT: &str = "Action Input:";

/// Matches a call of a known tool at the start of a line; `None` if there is none.
pub(super) fn match_action(text: &str, context: ParseContext<'_>) -> Option<Element> {
    if !context.is_final && ACTION.starts_with(text) {
        return Some(Element::Incomplete);
    }
    let after = text.strip_prefix(ACTION)?;
    let Some(end) = after.find('\n') else { return (!context.is_final).then_some(Element::Incomplete) };
    let name = normalize_name(after.get(..end).unwrap_or_default(), context.is_tool);
    if !(context.is_tool)(&name) {
        return None;
    }
    let (at, rest) = skip_whitespace(text, ACTION.len() + end);
    if !context.is_final && ACTION_INPUT.starts_with(rest) {
        return Some(Element::Incomplete);
    }
    if !rest.starts_with(ACTION_INPUT) {
        return None;
    }
    let (at, rest) = skip_whitespace(text, at + ACTION_INPUT.len());
    if rest.is_empty() {
        return Some(context.at_end(Element::Truncated(text.len())));
    }
    match parse_prefix(rest) {
        Ok((Value::Object(arguments), used)) => {
            Some(Element::named_call(at + used, &name, arguments, context))
        }
        Err(LenientJsonError::Incomplete) => Some(context.at_end(Element::Truncated(text.len()))),
        _ => None,
    }
}
