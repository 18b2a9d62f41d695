//! The text of one tool in a prompt, at five detail levels (`format_tool_details` of the specification).

use std::fmt::Write as _;

use toolyard_core::{EffectiveHints, Param, ParamType};

use super::{
    prompt_tool::PromptTool,
    templates::{SystemTemplates, fill},
};
use crate::{Language, escape};

/// How much of a tool a prompt shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DetailLevel {
    /// Everything.
    Full,
    /// Without the example.
    Plain,
    /// Without the example and the descriptions of parameters.
    Compact,
    /// The first sentence and the names of required parameters.
    Brief,
    /// The name only.
    Name,
}

impl DetailLevel {
    /// All levels, the most detailed first.
    pub const ALL: [Self; 5] = [Self::Full, Self::Plain, Self::Compact, Self::Brief, Self::Name];
}

/// The full text of a tool in a language. Ends with an empty line.
pub fn format_tool_details(tool: &PromptTool, language: Language) -> String {
    format_details(tool, DetailLevel::Full, SystemTemplates::of(language))
}

/// The text of a tool. Every line but the first is indented, and untrusted prose is quoted.
pub(super) fn format_details(tool: &PromptTool, level: DetailLevel, templates: &SystemTemplates) -> String {
    let mut text = format!("**{}**\n", escape::name(&tool.name));
    match level {
        DetailLevel::Full | DetailLevel::Plain | DetailLevel::Compact => {
            for line in &tool.description {
                push_line(&mut text, &format!("  > {}", escape::markup(line)));
            }
            if !tool.params.is_empty() {
                push_line(&mut text, &format!("  {}", templates.parameters));
                let indent_level = 2;
                push_parameters(&mut text, &tool.params, indent_level, level, templates);
            }
            if tool.omitted_params > 0 {
                let more = fill(templates.more_parameters, &[("count", &tool.omitted_params.to_string())]);
                push_line(&mut text, &format!("    {more}"));
            }
        }
        DetailLevel::Brief => push_brief(&mut text, tool, templates),
        DetailLevel::Name => {}
    }
    if level != DetailLevel::Name {
        push_metadata(&mut text, tool, level, templates);
    }
    text.push('\n');
    text
}

fn push_brief(text: &mut String, tool: &PromptTool, templates: &SystemTemplates) {
    let sentence = tool.first_sentence();
    if !sentence.is_empty() {
        push_line(text, &format!("  > {}", escape::markup(&sentence)));
    }
    let required: Vec<_> =
        tool.params.iter().filter(|param| param.required).map(|param| escape::name(&param.name)).collect();
    if !required.is_empty() {
        push_line(text, &format!("  {}{}", templates.requires, required.join(", ")));
    }
}

/// Hints, the example, and the success rate of a tool that often fails.
fn push_metadata(text: &mut String, tool: &PromptTool, level: DetailLevel, templates: &SystemTemplates) {
    if let Some(hint) = tool.hints.and_then(|hints| hint_text(hints, templates)) {
        push_line(text, &format!("  {}{hint}", templates.hints));
    }
    let example = tool.learned_example().unwrap_or(&tool.example);
    let has_example = example.as_object().is_some_and(|arguments| !arguments.is_empty());
    if level == DetailLevel::Full && has_example {
        push_line(text, &format!("  {}{}", templates.example, escape::json(example)));
    }
    if let Some(percent) = tool.bad_success_percent().filter(|_| level != DetailLevel::Brief) {
        push_line(text, &format!("  {}", fill(templates.success_rate, &[("percent", &percent.to_string())])));
    }
}

fn hint_text(hints: EffectiveHints, templates: &SystemTemplates) -> Option<String> {
    let known = [
        (hints.read_only, templates.read_only),
        (hints.destructive, templates.destructive),
        (hints.idempotent && !hints.read_only, templates.idempotent),
    ];
    let set: Vec<&str> = known.into_iter().filter(|(is_set, _)| *is_set).map(|(_, text)| text).collect();
    (!set.is_empty()).then(|| set.join(templates.list_separator))
}

fn push_parameters(
    text: &mut String,
    params: &[Param],
    indent_level: usize,
    level: DetailLevel,
    templates: &SystemTemplates,
) {
    for param in params {
        let need = if param.required { templates.required } else { templates.optional };
        let description = param.description.as_deref().filter(|_| level <= DetailLevel::Plain);
        let description = description.map(|text| format!(": {}", escape::markup(text))).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:indent$}- {} ({}){description} [{need}]",
            "",
            escape::name(&param.name),
            type_text(param, templates),
            indent = 2 * indent_level
        );
        push_parameters(text, inner_fields(param), indent_level + 1, level, templates);
    }
}

/// The fields of an object, or of the objects in an array.
fn inner_fields(param: &Param) -> &[Param] {
    match &param.items {
        Some(items) if param.fields.is_empty() => inner_fields(items),
        _ => &param.fields,
    }
}

/// The type, choices and default of a parameter.
fn type_text(param: &Param, templates: &SystemTemplates) -> String {
    let mut text = kind_text(param, templates);
    if !param.choices.is_empty() {
        let choices: Vec<String> = param.choices.iter().map(escape::json).collect();
        let _ = write!(text, "{}{}{}", templates.list_separator, templates.one_of, choices.join(" | "));
    }
    if let Some(default) = &param.default {
        let _ = write!(text, "{}{}{}", templates.list_separator, templates.default, escape::json(default));
    }
    text
}

fn kind_text(param: &Param, templates: &SystemTemplates) -> String {
    match (&param.kind, param.items.as_deref()) {
        (ParamType::Array, Some(items)) if items.kind != ParamType::Any || items.items.is_some() => {
            fill(templates.array_of, &[("kind", &type_text(items, templates))])
        }
        (kind, _) => kind.to_string(),
    }
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}
