//! A strict parser of prompts: every line of the tool section must match a template of ours, which proves that untrusted
//! text did not break out.

use toolyard_core::Param;

use crate::{
    Language,
    escape::{is_plain_name, unescape_markup},
    prompt::{PromptTool, templates::SystemTemplates},
};

/// A tool as a prompt shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ParsedTool {
    pub(super) name: String,
    pub(super) description: String,
    /// Depth, name, description, whether it is required.
    pub(super) params: Vec<(usize, String, Option<String>, bool)>,
}

impl ParsedTool {
    /// What a full prompt must contain of a tool.
    pub(super) fn expected(tool: &PromptTool) -> Self {
        let mut params = Vec::new();
        flatten(tool.params(), 0, &mut params);
        Self { name: tool.name().to_owned(), description: tool.description(), params }
    }
}

fn flatten(params: &[Param], depth: usize, flat: &mut Vec<(usize, String, Option<String>, bool)>) {
    for param in params {
        flat.push((depth, param.name.clone(), param.description.clone(), param.required));
        let mut inner = param;
        while let (true, Some(items)) = (inner.fields.is_empty(), &inner.items) {
            inner = items;
        }
        flatten(&inner.fields, depth + 1, flat);
    }
}

/// The tools of a prompt, or the first line that matches no template.
pub(super) fn parse_prompt(text: &str, language: Language) -> Result<Vec<ParsedTool>, String> {
    let templates = SystemTemplates::of(language);
    let heading = format!("\n{}\n\n{}\n\n", templates.tools_heading, templates.tools_notice);
    let (_, section) = text.split_once(&heading).ok_or("no tool section")?;
    let mut tools: Vec<ParsedTool> = Vec::new();
    let mut lines = section.split('\n');
    for line in lines.by_ref() {
        if line.starts_with("**") {
            let closing = [
                templates.one_tool.to_owned(),
                templates.many_tools.replace("{count}", &tools.len().to_string()),
            ];
            let is_closing = closing.iter().any(|closing| line.starts_with(closing))
                || line.starts_with(templates.no_tools);
            return if is_closing && lines.eq([""]) {
                Ok(tools)
            } else {
                Err(format!("after the end: {line}"))
            };
        }
        read_line(line, &mut tools, templates).ok_or_else(|| format!("matches no template: {line:?}"))?;
    }
    Err("no end".to_owned())
}

fn read_line(line: &str, tools: &mut Vec<ParsedTool>, templates: &SystemTemplates) -> Option<()> {
    let number = format!("{}. **", tools.len() + 1);
    if let Some(name) = line.strip_prefix(&number) {
        let (name, rest) = read_name(name)?;
        tools.push(ParsedTool { name, ..ParsedTool::default() });
        return (rest == "**").then_some(());
    }
    let is_group = |group: &str| is_plain_name(group);
    if line.is_empty() || line.strip_prefix("### ").is_some_and(is_group) {
        return Some(());
    }
    let tool = tools.last_mut()?;
    if let Some(text) = line.strip_prefix("  > ") {
        if !tool.description.is_empty() {
            tool.description.push('\n');
        }
        tool.description.push_str(&unescape_markup(text));
        return Some(());
    }
    let labels = [templates.parameters, templates.requires, templates.hints, templates.example];
    let rate = templates.success_rate.split('{').next()?;
    if labels
        .iter()
        .chain([&rate])
        .any(|label| line.strip_prefix("  ").is_some_and(|rest| rest.starts_with(label)))
    {
        return Some(());
    }
    let trimmed = line.trim_start_matches(' ');
    let depth = ((line.len() - trimmed.len()) / 2).checked_sub(2)?;
    let more = templates.more_parameters.split('{').next()?;
    match trimmed.strip_prefix("- ") {
        None => trimmed.starts_with(more).then_some(()),
        Some(param) => {
            tool.params.push(read_param(param, depth, templates)?);
            Some(())
        }
    }
}

fn read_param(
    text: &str,
    depth: usize,
    templates: &SystemTemplates,
) -> Option<(usize, String, Option<String>, bool)> {
    let (name, rest) = read_name(text)?;
    let rest = after_parenthesis(rest.strip_prefix(" (")?)?;
    let (described, requirement) = rest.strip_suffix(']')?.rsplit_once(" [")?;
    let required = requirement == templates.required;
    if !required && requirement != templates.optional {
        return None;
    }
    let description = match described {
        "" => None,
        text => Some(unescape_markup(text.strip_prefix(": ")?)),
    };
    Some((depth, name, description, required))
}

/// A name and the remaining text.
fn read_name(text: &str) -> Option<(String, &str)> {
    if text.starts_with('"') {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
        let name = values.next()?.ok()?;
        return Some((name, text.get(values.byte_offset()..)?));
    }
    let end = text.find([' ', '*']).unwrap_or(text.len());
    text.split_at_checked(end).map(|(name, rest)| (name.to_owned(), rest))
}

/// The text after the closing parenthesis, ignoring those inside JSON strings.
fn after_parenthesis(text: &str) -> Option<&str> {
    let (mut quoted, mut escaped) = (false, false);
    for (index, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ')' if !quoted => return text.get(index + 1..),
            _ => {}
        }
    }
    None
}
