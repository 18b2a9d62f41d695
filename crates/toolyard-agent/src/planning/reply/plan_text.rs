//! Parses a plan, tool calls or an answer from plain text.

use serde_json::Value;
use toolyard_model::{
    json_text::{JsonTextError, parse_document, without_fence},
    tool_call_parser::{ParsedToolCall, parse_tool_calls},
};

use super::{
    super::{
        context::PlannerDecision,
        plan::{NO_TOOL, Plan, PlanProblem, Step},
    },
    plan_json::{BrokenText, has_broken_text, name_at_source, parse_arguments, parse_decision},
};

pub(super) const TRUNCATED_REASON: &str = "it was cut off; write a shorter one";
pub(super) const INVALID_REASON: &str = "it is not valid JSON";
const PLAN_START: &str = "<plan>";
const PLAN_END: &str = "</plan>";
const REASONING_START: &str = "<think>";
const REASONING_END: &str = "</think>";
/// Characters of an unreadable call that are shown to the model again.
const MAX_SHOWN_CALL_CHARS: usize = 200;
/// Stray tags at the start or the end of an answer.
const STRAY_TAGS: [&str; 8] = [
    "<tool_call>",
    "</tool_call>",
    REASONING_START,
    REASONING_END,
    PLAN_START,
    PLAN_END,
    "<|im_end|>",
    "<|endoftext|>",
];

/// Parses a text: a plan in `<plan>` tags or as the whole text, else tool calls, else an answer.
pub(super) fn parse_text(
    text: &str,
    is_truncated: bool,
    is_tool: &dyn Fn(&str) -> bool,
) -> Result<PlannerDecision, PlanProblem> {
    let unreadable = PlanProblem::unreadable;
    let text = strip_reasoning(text);
    if let Some(plan) = tagged_plan(text) {
        return decision_from_json(plan, is_truncated, "what stands in <plan> is not JSON");
    }
    if let Some(plan) = bare_plan(text, is_tool) {
        return Ok(PlannerDecision::Plan(plan));
    }
    let found = parse_tool_calls(text, is_tool);
    if found.truncated || (is_truncated && !found.calls.is_empty()) {
        return Err(unreadable("a call was cut off; write a shorter one"));
    }
    // The other calls may depend on the unreadable one, so none is executed.
    if let Some(written) = found.malformed.first() {
        let short: String = written.chars().take(MAX_SHOWN_CALL_CHARS).collect();
        return Err(unreadable(&format!("this call cannot be read; write it as plain JSON: {short}")));
    }
    if !found.calls.is_empty() {
        let steps = found.calls.into_iter().enumerate().map(step_from_call).collect();
        return Ok(PlannerDecision::Plan(Plan { steps }));
    }
    match text.trim() {
        "" => Err(unreadable("nothing was said")),
        answer => Ok(PlannerDecision::Answer(answer.to_owned())),
    }
}

/// The decision in JSON, unless the JSON was truncated. `invalid` says what is wrong with other text.
pub(super) fn decision_from_json(
    text: &str,
    is_truncated: bool,
    invalid: &str,
) -> Result<PlannerDecision, PlanProblem> {
    match parse_document(text) {
        Ok(value) if !is_truncated && has_broken_text(&value) => Err(PlanProblem::unreadable(INVALID_REASON)),
        Ok(value) if !is_truncated => parse_decision(&value)
            .ok_or_else(|| PlanProblem::unreadable("it has neither steps nor an answer")),
        Ok(_) | Err(JsonTextError::Incomplete) => Err(PlanProblem::unreadable(TRUNCATED_REASON)),
        Err(JsonTextError::Invalid) => Err(PlanProblem::unreadable(invalid)),
    }
}

/// Whether a text is meant as a plan or a call, but is JSON with a mistake.
pub(super) fn is_broken_plan(text: &str, is_tool: &dyn Fn(&str) -> bool) -> bool {
    let is_broken = match parse_document(text) {
        Ok(value) => has_broken_text(&value),
        Err(_) => true,
    };
    if !is_broken || !without_fence(text).starts_with(['{', '[']) {
        return false;
    }
    // Single quotes are a frequent mistake.
    let json = text.replace('\'', "\"");
    let named = ["\"name\"", "\"tool_name\""].into_iter().flat_map(|key| json.split(key).skip(1));
    let mut named = named.filter_map(|rest| {
        let value = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        value.split('"').next()
    });
    json.contains("\"tool_type\"") || json.contains("\"steps\"") || named.any(is_tool)
}

/// The text after the model's reasoning.
pub(super) fn strip_reasoning(text: &str) -> &str {
    let text = text.trim_start();
    match (text.starts_with(REASONING_START), text.find(REASONING_START), text.find(REASONING_END)) {
        (true, ..) => text.split_once(REASONING_END).map_or("", |(_, after)| after),
        // Some chat templates emit the start tag themselves.
        (false, start, Some(end)) if start.is_none_or(|start| start > end) => {
            text.split_once(REASONING_END).map_or(text, |(_, after)| after)
        }
        (false, ..) => text,
    }
}

/// Removes reasoning, stray tool calls and tags from an answer. Quoted tags stay.
pub(crate) fn clean_answer(answer: &str) -> String {
    let mut text = answer.trim();
    if !text.contains(REASONING_START) {
        // A trailing end tag without content after it is stray.
        while let Some(before) = text.strip_suffix(REASONING_END).filter(|before| !ends_with_quote(before)) {
            text = before.trim_end();
        }
    }
    let is_quoted = |at: usize| text.get(..at).is_some_and(ends_with_quote);
    let end = text.match_indices(REASONING_END).filter(|(at, _)| !is_quoted(*at)).last();
    if let Some((_, after)) = end.and_then(|(at, _)| text.split_at_checked(at)) {
        text = after.strip_prefix(REASONING_END).unwrap_or(after).trim();
    }
    if text.starts_with(REASONING_START) {
        return String::new();
    }
    let found = parse_tool_calls(text, &|_| false);
    let has_calls = found.truncated || !found.calls.is_empty() || !found.malformed.is_empty();
    let text = if has_calls { found.text.as_str() } else { text };
    strip_stray_tags(text).to_owned()
}

fn ends_with_quote(before: &str) -> bool {
    before.ends_with(['`', '"', '\'', '“'])
}

fn strip_stray_tags(text: &str) -> &str {
    let mut text = text.trim();
    loop {
        let shorter =
            STRAY_TAGS.iter().find_map(|tag| text.strip_prefix(tag).or_else(|| text.strip_suffix(tag)));
        match shorter {
            Some(shorter) => text = shorter.trim(),
            None => return text,
        }
    }
}

/// The content of the first `<plan>` tags that are not quoted.
fn tagged_plan(text: &str) -> Option<&str> {
    let mut from = 0;
    while let Some(at) = text.get(from..)?.find(PLAN_START).map(|at| from + at) {
        let (before, inside) = (text.get(..at)?, text.get(at + PLAN_START.len()..)?);
        if !is_example(before, inside) {
            return Some(inside.split_once(PLAN_END).map_or(inside, |(inside, _)| inside));
        }
        from = at + PLAN_START.len();
    }
    None
}

/// Whether the tags are an example: in backticks, or in a code fence with prose around it.
fn is_example(before: &str, inside: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default();
    if line.matches('`').count() % 2 == 1 && !line.trim_start().starts_with("```") {
        return true;
    }
    let in_fence = before.matches("```").count() % 2 == 1;
    let prose_before = before.split("```").next().is_some_and(|prose| !prose.trim().is_empty());
    let behind = inside.split_once(PLAN_END).map_or("", |(_, behind)| behind);
    let prose_behind = behind.split_once("```").is_some_and(|(_, prose)| !prose.trim().is_empty());
    in_fence && (prose_before || prose_behind)
}

/// A plan that is the whole text and uses only existing tools.
fn bare_plan(text: &str, is_tool: &dyn Fn(&str) -> bool) -> Option<Plan> {
    let trimmed = text.trim();
    let is_fenced = trimmed.starts_with("```") && trimmed.ends_with("```");
    if !is_fenced && !trimmed.ends_with(['}', ']']) {
        return None;
    }
    // A single step is a plan too; other call formats are left to the tool call parser.
    let value = match parse_document(trimmed).ok()? {
        step @ Value::Object(_) if step.get("tool_type").is_some() => Value::Array(vec![step]),
        other => other,
    };
    let is_plan = match &value {
        Value::Object(entries) => entries.contains_key("steps") || entries.contains_key("plan"),
        Value::Array(items) => items.iter().any(|item| item.get("tool_type").is_some()),
        _ => false,
    };
    if !is_plan {
        return None;
    }
    let PlannerDecision::Plan(plan) = parse_decision(&value)? else { return None };
    let has_tool = plan.steps.iter().any(|step| is_tool(&step.tool_type));
    let is_executable = plan.steps.iter().all(|step| step.tool_type == NO_TOOL || is_tool(&step.tool_type));
    (has_tool && is_executable).then_some(plan)
}

fn step_from_call((at, call): (usize, ParsedToolCall)) -> Step {
    let id = call.id.unwrap_or_else(|| format!("call_{}", at + 1));
    let tool_type = name_at_source(&call.name, call.source.as_deref());
    Step { id, tool_type, arguments: call.arguments, ..Step::default() }
}

/// A step from a call whose arguments are JSON text.
pub(super) fn step_from_json(id: &str, tool: &str, arguments: &str) -> Result<Step, BrokenText> {
    let arguments = parse_arguments(&Value::String(arguments.to_owned()))?;
    Ok(Step { id: id.to_owned(), tool_type: tool.to_owned(), arguments, ..Step::default() })
}
