//! A plan, calls or an answer in what a model wrote as plain text.

use serde_json::{Map, Value};
use toolyard_model::tool_call_tag::{TextCall, read_calls};

use super::{
    lenient,
    read::{Said, arguments, said},
    reading::unreadable,
};
use crate::{Complexity, NO_TOOL, Plan, PlanProblem, Step};

const BEGIN: &str = "<plan>";
const END: &str = "</plan>";
/// So much of a call that cannot be read is shown to the model again.
const SHOWN_CALL: usize = 200;
const THOUGHT_END: &str = "</think>";
/// What is left of calls and thoughts at the beginning or the end of an answer.
const REMAINS: [&str; 8] = [
    "<tool_call>",
    "</tool_call>",
    "<think>",
    "</think>",
    "<plan>",
    "</plan>",
    "<|im_end|>",
    "<|endoftext|>",
];

/// What a text says. A plan counts in its tags, or where it is the whole text and names a tool; anything else is calls,
/// and what holds none is the answer.
pub(super) fn read(text: &str, cut_off: bool, is_tool: &dyn Fn(&str) -> bool) -> Result<Said, PlanProblem> {
    let text = without_thoughts(text);
    if let Some(plan) = tagged(text) {
        let read = lenient::read(plan).ok_or_else(|| unreadable("what stands in <plan> is not JSON"))?;
        if cut_off || read.cut_off {
            return Err(unreadable("it was cut off; write a shorter one"));
        }
        return said(&read.value).ok_or_else(|| unreadable("it has neither steps nor an answer"));
    }
    if let Some(said) = whole(text, is_tool) {
        return Ok(said);
    }
    let found = read_calls(text, is_tool);
    if found.cut_off || (cut_off && !found.calls.is_empty()) {
        return Err(unreadable("a call was cut off; write a shorter one"));
    }
    // A call that cannot be read was meant nevertheless: the others are not what was wanted without it.
    if let Some(written) = found.unreadable.first() {
        let short: String = written.chars().take(SHOWN_CALL).collect();
        return Err(unreadable(&format!("this call cannot be read; write it as plain JSON: {short}")));
    }
    if !found.calls.is_empty() {
        return Ok(Said::Plan(Plan { steps: found.calls.into_iter().enumerate().map(called).collect() }));
    }
    match text.trim() {
        "" => Err(unreadable("nothing was said")),
        answer => Ok(Said::Answer(answer.to_owned())),
    }
}

/// What follows a model's thoughts, where it wrote them into its text.
pub(super) fn without_thoughts(text: &str) -> &str {
    let text = text.trim_start();
    match (text.starts_with("<think>"), text.find("<think>"), text.find("</think>")) {
        (true, ..) => text.split_once("</think>").map_or("", |(_, after)| after),
        // Some templates begin the thoughts themselves.
        (false, begin, Some(end)) if begin.is_none_or(|begin| begin > end) => {
            text.split_once("</think>").map_or(text, |(_, after)| after)
        }
        (false, ..) => text,
    }
}

/// An answer without thoughts, calls that nobody asked for, and what is left of their tags. What is quoted stays.
pub(crate) fn cleaned(answer: &str) -> String {
    let mut text = answer.trim();
    if !text.contains("<think>") {
        // Nothing follows: such a tag is all that is left of a thought.
        while let Some(before) = text.strip_suffix(THOUGHT_END).filter(|before| !is_open_quote(before)) {
            text = before.trim_end();
        }
    }
    let is_quoted = |at: usize| text.get(..at).is_some_and(is_open_quote);
    let end = text.match_indices(THOUGHT_END).filter(|(at, _)| !is_quoted(*at)).last();
    if let Some((_, after)) = end.and_then(|(at, _)| text.split_at_checked(at)) {
        text = after.strip_prefix(THOUGHT_END).unwrap_or(after).trim();
    }
    if text.starts_with("<think>") {
        return String::new();
    }
    let found = read_calls(text, &|_| false);
    let has_calls = found.cut_off || !found.calls.is_empty() || !found.unreadable.is_empty();
    let text = if has_calls { found.rest.as_str() } else { text };
    without_remains(text).to_owned()
}

fn is_open_quote(before: &str) -> bool {
    before.ends_with(['`', '"', '\'', '“'])
}

fn without_remains(text: &str) -> &str {
    let mut text = text.trim();
    loop {
        let shorter =
            REMAINS.iter().find_map(|tag| text.strip_prefix(tag).or_else(|| text.strip_suffix(tag)));
        match shorter {
            Some(shorter) => text = shorter.trim(),
            None => return text,
        }
    }
}

/// What stands in the first tags that are not quoted.
fn tagged(text: &str) -> Option<&str> {
    let mut from = 0;
    while let Some(at) = text.get(from..)?.find(BEGIN).map(|at| from + at) {
        let (before, inside) = (text.get(..at)?, text.get(at + BEGIN.len()..)?);
        if !is_quoted(before, inside) {
            return Some(inside.split_once(END).map_or(inside, |(inside, _)| inside));
        }
        from = at + BEGIN.len();
    }
    None
}

/// Whether what stands between is an example in prose: in a fence with words before or behind it, or in backticks.
fn is_quoted(before: &str, inside: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default();
    if line.matches('`').count() % 2 == 1 && !line.trim_start().starts_with("```") {
        return true;
    }
    let in_fence = before.matches("```").count() % 2 == 1;
    let prose_before = before.split("```").next().is_some_and(|prose| !prose.trim().is_empty());
    let behind = inside.split_once(END).map_or("", |(_, behind)| behind);
    let prose_behind = behind.split_once("```").is_some_and(|(_, prose)| !prose.trim().is_empty());
    in_fence && (prose_before || prose_behind)
}

/// A text that is JSON from its beginning to its end, and a plan with a tool that exists.
fn whole(text: &str, is_tool: &dyn Fn(&str) -> bool) -> Option<Said> {
    let trimmed = text.trim();
    let is_fenced = trimmed.starts_with("```") && trimmed.ends_with("```");
    if !is_fenced && !trimmed.ends_with(['}', ']']) {
        return None;
    }
    let read = lenient::read(trimmed).filter(|read| !read.cut_off)?;
    // One step in the form of a plan's is a plan too; calls in other forms are found by those who know what is none.
    let value = match read.value {
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
    let Said::Plan(plan) = said(&value)? else { return None };
    let known = plan.steps.iter().filter(|step| is_tool(&step.tool_type)).count();
    let rest =
        plan.steps.iter().filter(|step| !is_tool(&step.tool_type)).all(|step| step.tool_type == NO_TOOL);
    (known > 0 && rest).then_some(Said::Plan(plan))
}

fn called((at, call): (usize, TextCall)) -> Step {
    let id = call.id.unwrap_or_else(|| format!("call_{}", at + 1));
    plain_step(id, call.name, call.arguments)
}

/// A step from a call whose arguments are JSON text.
pub(super) fn step(id: &str, tool: &str, written: &str) -> Step {
    plain_step(id.to_owned(), tool.to_owned(), arguments(&Value::String(written.to_owned())))
}

fn plain_step(id: String, tool_type: String, arguments: Map<String, Value>) -> Step {
    Step {
        id,
        description: String::new(),
        tool_type,
        arguments,
        dependencies: Vec::new(),
        complexity: Complexity::default(),
    }
}
