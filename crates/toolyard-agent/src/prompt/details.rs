//! One tool in words: the seeds' `format_tool_details`, in five lengths.

use std::fmt::Write as _;

use toolyard_core::{EffectiveHints, Param, ParamType};

use super::{
    fence,
    tool::PromptTool,
    words::{Words, filled},
};
use crate::Language;

/// How much of a tool is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Everything.
    Full,
    /// No example.
    Plain,
    /// No example, and parameters without their descriptions.
    Compact,
    /// The first sentence, and the names of what is required.
    Brief,
    /// The name alone.
    Name,
}

impl Form {
    /// All forms, the longest first.
    pub const ALL: [Self; 5] = [Self::Full, Self::Plain, Self::Compact, Self::Brief, Self::Name];
}

/// Everything a model should know of a tool, in the words of a language. Ends with an empty line.
pub fn format_tool_details(tool: &PromptTool, language: Language) -> String {
    details(tool, Form::Full, Words::of(language))
}

/// A tool in words. Every line but the first begins with two spaces, and what strangers wrote is behind a mark.
pub(super) fn details(tool: &PromptTool, form: Form, words: &Words) -> String {
    let mut text = format!("**{}**\n", fence::name(&tool.name));
    match form {
        Form::Full | Form::Plain | Form::Compact => {
            for line in &tool.description {
                push(&mut text, &format!("  > {}", fence::escaped(line)));
            }
            if !tool.params.is_empty() {
                push(&mut text, &format!("  {}", words.parameters));
                parameters(&mut text, &tool.params, 2, form, words);
            }
            if tool.more_params > 0 {
                let more = filled(words.more_parameters, "count", &tool.more_params.to_string());
                push(&mut text, &format!("    {more}"));
            }
        }
        Form::Brief => brief(&mut text, tool, words),
        Form::Name => {}
    }
    if form != Form::Name {
        about(&mut text, tool, form, words);
    }
    text.push('\n');
    text
}

fn brief(text: &mut String, tool: &PromptTool, words: &Words) {
    let sentence = tool.first_sentence();
    if !sentence.is_empty() {
        push(text, &format!("  > {}", fence::escaped(&sentence)));
    }
    let required: Vec<_> =
        tool.params.iter().filter(|param| param.required).map(|param| fence::name(&param.name)).collect();
    if !required.is_empty() {
        push(text, &format!("  {}{}", words.requires, required.join(", ")));
    }
}

/// What we know of a tool ourselves, and an example.
fn about(text: &mut String, tool: &PromptTool, form: Form, words: &Words) {
    if let Some(hint) = tool.hints.and_then(|hints| hint(hints, words)) {
        push(text, &format!("  {}{hint}", words.hints));
    }
    let says_something = tool.example.as_object().is_some_and(|arguments| !arguments.is_empty());
    if form == Form::Full && says_something {
        push(text, &format!("  {}{}", words.example, fence::json(&tool.example)));
    }
    if let Some(percent) = tool.success_percent.filter(|_| form != Form::Brief) {
        push(text, &format!("  {}", filled(words.success_rate, "percent", &percent.to_string())));
    }
}

fn hint(hints: EffectiveHints, words: &Words) -> Option<String> {
    let known = [
        (hints.read_only, words.read_only),
        (hints.destructive, words.destructive),
        (hints.idempotent && !hints.read_only, words.idempotent),
    ];
    let said: Vec<&str> = known.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word).collect();
    (!said.is_empty()).then(|| said.join(words.comma))
}

fn parameters(text: &mut String, params: &[Param], depth: usize, form: Form, words: &Words) {
    for param in params {
        let need = if param.required { words.required } else { words.optional };
        let described = param.description.as_deref().filter(|_| form <= Form::Plain);
        let described = described.map(|said| format!(": {}", fence::escaped(said))).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:indent$}- {} ({}){described} [{need}]",
            "",
            fence::name(&param.name),
            takes(param, words),
            indent = 2 * depth
        );
        parameters(text, inner_fields(param), depth + 1, form, words);
    }
}

/// The fields of an object, or of the objects in an array.
fn inner_fields(param: &Param) -> &[Param] {
    match &param.items {
        Some(items) if param.fields.is_empty() => inner_fields(items),
        _ => &param.fields,
    }
}

/// The type, the only values, the default.
fn takes(param: &Param, words: &Words) -> String {
    let mut takes = kind(param, words);
    if !param.choices.is_empty() {
        let choices: Vec<String> = param.choices.iter().map(fence::json).collect();
        let _ = write!(takes, "{}{}{}", words.comma, words.one_of, choices.join(" | "));
    }
    if let Some(default) = &param.default {
        let _ = write!(takes, "{}{}{}", words.comma, words.default, fence::json(default));
    }
    takes
}

fn kind(param: &Param, words: &Words) -> String {
    match (&param.kind, param.items.as_deref()) {
        (ParamType::Array, Some(items)) if items.kind != ParamType::Any || items.items.is_some() => {
            filled(words.array_of, "kind", &takes(items, words))
        }
        (kind, _) => kind.to_string(),
    }
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}
