//! The three tools that stand for all others: finding tools by what they do, showing one, calling one.

use std::fmt::Write as _;

use serde::Deserialize;
use toolyard_core::{
    ArgumentProblem, Param, RawJson, ToolCallRequest, ToolError, ToolOutput, grouped, without_hidden,
};

use super::{
    offer::{Offer, Offering},
    words::{FOUND, MOST_FOUND},
};

/// No more of a description is shown with a tool that was found.
const LINE: usize = 160;
/// No more parameters are shown with a tool that was found.
const PARAMS: usize = 12;
/// No more choices of a parameter are shown.
const CHOICES: usize = 6;

/// What `search_tools` was asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) query: String,
    pub(super) limit: usize,
}

#[derive(Deserialize)]
struct SearchArguments {
    query: String,
    limit: Option<f64>,
}

#[derive(Deserialize)]
struct DescribeArguments {
    name: String,
}

#[derive(Deserialize)]
struct CallArguments {
    name: String,
    #[serde(default = "RawJson::empty_object")]
    arguments: RawJson,
}

pub(super) fn wish(request: &ToolCallRequest) -> Result<Wish, ToolError> {
    let SearchArguments { query, limit } = arguments(request)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is within 1 and 25 by then"
    )]
    let limit = limit.map_or(FOUND, |limit| limit.clamp(1.0, MOST_FOUND as f64) as usize);
    Ok(Wish { query, limit })
}

pub(super) fn wanted_name(request: &ToolCallRequest) -> Result<String, ToolError> {
    arguments(request).map(|DescribeArguments { name }| name)
}

/// The call that `call_tool` stands for. Some models write the arguments as a text; that is read too.
pub(super) fn inner_call(request: &ToolCallRequest) -> Result<ToolCallRequest, ToolError> {
    let CallArguments { name, arguments } = arguments(request)?;
    let written = arguments.read::<String>().ok().and_then(|text| RawJson::parse(text).ok());
    Ok(ToolCallRequest {
        id: request.id.clone(),
        tool_name: name,
        arguments: written.unwrap_or(arguments),
        source: request.source.clone(),
    })
}

fn arguments<'a, T: Deserialize<'a>>(request: &'a ToolCallRequest) -> Result<T, ToolError> {
    serde_json::from_str(request.arguments.get()).map_err(|error| {
        let problem = ArgumentProblem { path: String::new(), message: error.to_string() };
        ToolError::invalid_arguments(vec![problem]).on_tool(&request.tool_name)
    })
}

/// What was found, a line for each tool.
pub(super) fn found(query: &str, tools: &[&Offering], offer: &Offer) -> ToolOutput {
    if tools.is_empty() {
        let (number, query) = (grouped(offer.tools.len()), one_line(query, LINE));
        return ToolOutput::text(format!(
            "Nothing found for: {query}. Say it in other words; there are {number} tools."
        ));
    }
    let mut text = String::new();
    for tool in tools {
        let params = signature(tool.candidate.params());
        let _ =
            writeln!(text, "{}({params}): {}", tool.name, one_line(&tool.candidate.spec().description, LINE));
    }
    text.truncate(text.trim_end().len());
    ToolOutput::text(text).sized()
}

/// Parameters in one line: `path: string, lines?: integer, mode?: read|write`.
fn signature(params: &[Param]) -> String {
    let mut shown: Vec<String> = params.iter().take(PARAMS).map(parameter).collect();
    if params.len() > PARAMS {
        shown.push("…".to_owned());
    }
    shown.join(", ")
}

fn parameter(param: &Param) -> String {
    let mark = if param.required { "" } else { "?" };
    let name = one_line(&param.name, 64);
    format!("{name}{mark}: {}", kind(param))
}

fn kind(param: &Param) -> String {
    let choices = param.choices.iter().take(CHOICES).map(ToString::to_string).collect::<Vec<_>>();
    match (&param.items, param.fields.as_slice()) {
        _ if !choices.is_empty() => {
            let more = if param.choices.len() > CHOICES { "|…" } else { "" };
            one_line(&format!("{}{more}", choices.join("|")), LINE)
        }
        (Some(items), _) => format!("{}[]", kind(items)),
        (None, [_, ..]) => format!("{{{}}}", signature(&param.fields)),
        _ => param.kind.to_string(),
    }
}

/// The first sentence of a text, in one line of at most so many characters, without anything that hides.
fn one_line(text: &str, most: usize) -> String {
    let (clean, _) = without_hidden(text);
    let mut line = String::new();
    for word in clean.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        let sentence = word.ends_with(['.', '。', '!', '！', '?', '？']) && line.chars().nth(20).is_some();
        if sentence || line.chars().nth(most).is_some() {
            break;
        }
    }
    if line.chars().nth(most).is_none() {
        return line;
    }
    line.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
#[path = "finding_tests.rs"]
mod tests;
