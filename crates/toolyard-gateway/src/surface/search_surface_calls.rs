//! Arguments and results of the search surface's tools: `search_tools`, `describe_tool` and `call_tool`.

use std::fmt::Write as _;

use serde::Deserialize;
use toolyard_core::{
    ArgumentProblem, Param, RawJson, ToolCallRequest, ToolError, ToolOutput, group_digits, sanitize,
};

use super::{
    exposed_tools::ExposedTool,
    permitted_tools::VisibleTools,
    search_surface_definitions::{DEFAULT_RESULTS, MAX_RESULTS},
};
use crate::naming::tool_names::DESCRIBE_TOOL;

/// Descriptions and choices are shortened to this length.
const MAX_LINE_CHARS: usize = 160;
/// A full stop before this length is taken for an abbreviation.
const MIN_SENTENCE_CHARS: usize = 20;
const MAX_PARAM_NAME_CHARS: usize = 64;
const MAX_SHOWN_PARAMS: usize = 12;
const MAX_SHOWN_CHOICES: usize = 6;
/// Search results in all if the caller sets no limit: those after the first few in a short form.
const MAX_DEFAULT_RESULTS: usize = 20;
/// A result in the short form has at least this part of the best score. With 637 tools of 40 servers, the tool that
/// everyday requests mean was among the first five for 81 % of them and among those shown for 92 %, at 14 results in the
/// median (2026-11-16).
const MIN_SHORT_RESULT_SHARE: f32 = 0.25;
const MAX_SHORT_RESULT_CHARS: usize = 80;
/// Tools of one definition that are named with the first of them.
const MAX_SAME_TOOLS: usize = 8;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct SearchQuery {
    pub(super) query: String,
    /// How many results the caller asks for.
    pub(super) limit: Option<usize>,
}

impl SearchQuery {
    /// How many results are looked for.
    pub(super) fn max_results(&self) -> usize {
        self.limit.unwrap_or(MAX_DEFAULT_RESULTS)
    }

    /// How many results are shown with their parameters.
    fn detailed_results(&self) -> usize {
        self.limit.unwrap_or(DEFAULT_RESULTS)
    }
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

pub(super) fn search_query(request: &ToolCallRequest) -> Result<SearchQuery, ToolError> {
    let SearchArguments { query, limit } = arguments(request)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the value is between 1 and MAX_RESULTS"
    )]
    let limit = limit.map(|limit| limit.clamp(1.0, MAX_RESULTS as f64) as usize);
    Ok(SearchQuery { query, limit })
}

pub(super) fn described_name(request: &ToolCallRequest) -> Result<String, ToolError> {
    arguments(request).map(|DescribeArguments { name }| name)
}

/// The call that `call_tool` makes. Some models write the arguments as a string that contains JSON.
pub(super) fn inner_call(request: &ToolCallRequest) -> Result<ToolCallRequest, ToolError> {
    let CallArguments { name, arguments } = arguments(request)?;
    let unquoted = arguments.read::<String>().ok().and_then(|text| RawJson::parse(text).ok());
    Ok(ToolCallRequest {
        id: request.id.clone(),
        tool_name: name,
        arguments: unquoted.unwrap_or(arguments),
        source: request.source.clone(),
    })
}

fn arguments<'a, T: Deserialize<'a>>(request: &'a ToolCallRequest) -> Result<T, ToolError> {
    serde_json::from_str(request.arguments.get()).map_err(|error| {
        let problem = ArgumentProblem { path: String::new(), message: error.to_string() };
        ToolError::invalid_arguments(vec![problem]).on_tool(&request.tool_name)
    })
}

/// A tool that a search found, and those of the same name and definition that act on something else.
pub(super) struct FoundTool<'a> {
    pub(super) tool: &'a ExposedTool,
    pub(super) score: f32,
    pub(super) same: Vec<&'a ExposedTool>,
}

/// Search results, one line per tool, and one for other tools of its definition. Where several scores are close, more
/// tools follow in a short form: the right one is often among them, and a client reads on instead of searching again.
pub(super) fn search_results(
    query: &SearchQuery,
    tools: &[FoundTool<'_>],
    visible: &VisibleTools,
) -> ToolOutput {
    let Some(best) = tools.first() else {
        let (tool_count, query) =
            (group_digits(visible.iter().count()), one_line(&query.query, MAX_LINE_CHARS));
        return ToolOutput::text(format!(
            "Nothing found for: {query}. Say it in other words; there are {tool_count} tools."
        ));
    };
    let (detailed, short) = tools.split_at_checked(query.detailed_results()).unwrap_or((tools, &[]));
    let mut text = String::new();
    for FoundTool { tool, same, .. } in detailed {
        let params = signature(tool.candidate.params());
        let _ = writeln!(text, "{}({params}): {}", tool.name, one_line(&tool.description(), MAX_LINE_CHARS));
        let names: Vec<String> = same.iter().take(MAX_SAME_TOOLS).map(|tool| short_reference(tool)).collect();
        match same.len().saturating_sub(names.len()) {
            _ if names.is_empty() => {}
            0 => _ = writeln!(text, "  same parameters: {}", names.join(", ")),
            more => _ = writeln!(text, "  same parameters: {} and {more} more", names.join(", ")),
        }
    }
    let short: Vec<&FoundTool<'_>> =
        short.iter().filter(|found| found.score >= best.score * MIN_SHORT_RESULT_SHARE).collect();
    if !short.is_empty() {
        let _ = writeln!(text, "Also possible (parameters: {DESCRIBE_TOOL}):");
        for FoundTool { tool, same, .. } in short {
            let names = std::iter::once(tool).chain(same).take(MAX_SAME_TOOLS).map(|tool| &*tool.name);
            let names = names.collect::<Vec<_>>().join(", ");
            let _ = writeln!(text, "{names}: {}", one_line(&tool.description(), MAX_SHORT_RESULT_CHARS));
        }
    }
    text.truncate(text.trim_end().len());
    ToolOutput::text(text).exempt_from_budget()
}

/// A name with what distinguishes the tool: `filesystem.read_text_file [/data]`.
fn short_reference(tool: &ExposedTool) -> String {
    match &tool.distinction {
        Some(distinction) => format!("{} [{}]", tool.name, one_line(distinction, MAX_LINE_CHARS)),
        None => tool.name.to_string(),
    }
}

/// Parameters in one line: `path: string, lines?: integer, mode?: read|write`.
fn signature(params: &[Param]) -> String {
    let mut shown: Vec<String> = params.iter().take(MAX_SHOWN_PARAMS).map(describe_param).collect();
    if params.len() > MAX_SHOWN_PARAMS {
        shown.push("…".to_owned());
    }
    shown.join(", ")
}

fn describe_param(param: &Param) -> String {
    let optional_mark = if param.required { "" } else { "?" };
    let name = one_line(&param.name, MAX_PARAM_NAME_CHARS);
    format!("{name}{optional_mark}: {}", describe_type(param))
}

fn describe_type(param: &Param) -> String {
    let choices = param.choices.iter().take(MAX_SHOWN_CHOICES).map(ToString::to_string).collect::<Vec<_>>();
    match (&param.items, param.fields.as_slice()) {
        _ if !choices.is_empty() => {
            let more = if param.choices.len() > MAX_SHOWN_CHOICES { "|…" } else { "" };
            one_line(&format!("{}{more}", choices.join("|")), MAX_LINE_CHARS)
        }
        (Some(items), _) => format!("{}[]", describe_type(items)),
        (None, [_, ..]) => format!("{{{}}}", signature(&param.fields)),
        _ => param.kind.to_string(),
    }
}

/// The first sentence of a text, as one line of at most `max_chars` characters without unsafe characters.
fn one_line(text: &str, max_chars: usize) -> String {
    let (sanitized, _) = sanitize(text);
    let mut line = String::new();
    for word in sanitized.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        let ends_sentence = word.ends_with(['.', '。', '!', '！', '?', '？'])
            && line.chars().nth(MIN_SENTENCE_CHARS).is_some();
        if ends_sentence || line.chars().nth(max_chars).is_some() {
            break;
        }
    }
    if line.chars().nth(max_chars).is_none() {
        return line;
    }
    line.chars().take(max_chars.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
#[path = "search_surface_calls_tests.rs"]
mod tests;
