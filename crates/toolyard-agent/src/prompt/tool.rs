//! What a model is shown of one tool: cleaned, bounded, taken apart.

use serde_json::{Map, Value};
use toolyard_core::{
    EffectiveHints, Param, RawJson, SourceKind, ToolSpec, extract_capabilities, params, redact_json,
};
use toolyard_hub::ToolCandidate;
use unicode_segmentation::UnicodeSegmentation as _;

use super::{docstring::take_apart, example::example, fence};
use crate::result_form;

/// A description is cut after this many characters: nobody describes a tool for longer who wants it to be used.
const MAX_DESCRIPTION: usize = 2_000;
/// The description of a parameter is cut after this many characters.
const MAX_PARAM_DESCRIPTION: usize = 400;
/// Choices are left out when they are longer than this in all, and defaults when they are.
const MAX_VALUES: usize = 600;
/// A longer form of results is not shown.
const MAX_RETURNS: usize = 300;
/// More parameters than this are counted and not shown, nested ones included.
const MAX_PARAMS: usize = 100;
/// A success rate is known after this many calls.
const ENOUGH_CALLS: f64 = 5.0;

/// One tool as it is put before a model. What strangers wrote is cleaned and bounded when this is made.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptTool {
    pub(super) name: String,
    pub(super) description: Vec<String>,
    pub(super) params: Vec<Param>,
    pub(super) more_params: usize,
    pub(super) hints: Option<EffectiveHints>,
    pub(super) group: Option<String>,
    pub(super) success_percent: Option<u32>,
    pub(super) example: Value,
    /// What its results look like, where that is known.
    pub(crate) returns: Option<String>,
    pub(super) schema: RawJson,
    /// Whether it is code of this process, so that its name means what we say it means.
    pub(super) native: bool,
}

impl PromptTool {
    /// A tool by its description alone.
    pub fn new(spec: &ToolSpec) -> Self {
        Self::from_parts(spec, spec.params())
    }

    /// A tool of the hub, with what is believed of its effects and what it is good for.
    pub fn of(candidate: &ToolCandidate) -> Self {
        let mut tool = Self::from_parts(candidate.spec(), candidate.params().to_vec());
        tool.hints = Some(candidate.hints);
        tool.native = candidate.source.info.kind == SourceKind::Native;
        // A word in a description is a weak reason to stand under a heading.
        let declared = candidate.spec().capabilities.first().cloned();
        let tag = declared.or_else(|| extract_capabilities(&candidate.name, "").into_iter().next());
        tool.group = tag.map(|tag| tag.as_str().to_owned()).filter(|tag| fence::is_plain(tag));
        tool
    }

    fn from_parts(spec: &ToolSpec, mut params: Vec<Param>) -> Self {
        let told =
            if spec.description.trim().is_empty() { spec.title.as_deref() } else { Some(&*spec.description) };
        // What is cut off is not looked at: a description may be as long as a message.
        let told: String = told.unwrap_or_default().chars().take(4 * MAX_DESCRIPTION).collect();
        let lines = take_apart(fence::lines(&told), &mut params);
        let more_params = bounded(&mut params);
        Self {
            name: spec.name.to_string(),
            description: dedented(cut_lines(lines)),
            example: example(&params),
            params,
            more_params,
            hints: None,
            group: None,
            success_percent: None,
            schema: spec.input_schema.clone(),
            returns: spec.output_schema.as_ref().and_then(promised),
            native: false,
        }
    }

    /// The same tool with what is believed of its effects.
    #[must_use]
    pub fn with_hints(mut self, hints: EffectiveHints) -> Self {
        self.hints = Some(hints);
        self
    }

    /// The same tool with how it has been doing. It is shown in steps of ten, so that a prompt rarely changes by it.
    #[must_use]
    pub fn with_success(mut self, rate: f64, calls: f64) -> Self {
        let step = (rate.clamp(0.0, 1.0) * 10.0).round();
        let percent = (0..=10_u32).find(|tenth| f64::from(*tenth) >= step).map(|tenth| tenth * 10);
        self.success_percent = percent.filter(|_| calls >= ENOUGH_CALLS);
        self
    }

    /// The same tool with arguments that succeeded as its example, without the secrets in them. For tools that are shown
    /// by relevance: in the part of a prompt that should stay the same, it would change with every call.
    #[must_use]
    pub fn with_last_arguments(mut self, arguments: &RawJson) -> Self {
        let redacted = redact_json(arguments).0.to_value();
        if redacted.is_object() && fence::json(&redacted).len() <= MAX_VALUES {
            self.example = redacted;
        }
        self
    }

    /// The same tool with what its results look like: JSON whose values only stand for what is there.
    #[must_use]
    pub fn with_returns(mut self, form: impl Into<String>) -> Self {
        let form: String = form.into();
        self.returns = (form.chars().count() <= MAX_RETURNS).then_some(form).or(self.returns);
        self
    }

    /// What its results look like, as far as that is known or promised.
    pub fn returns(&self) -> Option<&str> {
        self.returns.as_deref()
    }

    /// The name by which it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its description as a model reads it: without what people do not see, and without what it says about parameters.
    pub fn description(&self) -> String {
        self.description.join("\n")
    }

    /// Its parameters as a model reads them.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// The first sentence of the description.
    pub(crate) fn first_sentence(&self) -> String {
        let line = self.description.first().map(String::as_str).unwrap_or_default();
        let sentence = line.unicode_sentences().next().unwrap_or(line).trim();
        cut(sentence, MAX_PARAM_DESCRIPTION)
    }
}

/// What a tool promises to give, where that says more than that it gives something.
fn promised(schema: &RawJson) -> Option<String> {
    let fields = params(&schema.to_value());
    let is_wrapping = fields.len() == 1 && fields.iter().all(|field| field.name == "result");
    if fields.is_empty() || is_wrapping {
        return None;
    }
    let none_required = !fields.iter().any(|field| field.required);
    let shown = |field: Param| Param { required: field.required || none_required, default: None, ..field };
    result_form(&example(&fields.into_iter().map(shown).collect::<Vec<_>>()))
}

/// Cleans what parameters say, and takes out those beyond the bound. How many those were.
fn bounded(params: &mut Vec<Param>) -> usize {
    let all = count(params);
    if all > MAX_PARAMS {
        // Without what it requires, a tool cannot be called.
        params.sort_by_key(|param| !param.required);
    }
    let mut left = MAX_PARAMS;
    keep(params, &mut left);
    params.iter_mut().for_each(clean);
    all.saturating_sub(count(params))
}

fn count(params: &[Param]) -> usize {
    let inner = |param: &Param| count(&param.fields) + param.items.as_deref().map_or(0, count_items);
    params.iter().map(|param| 1 + inner(param)).sum()
}

fn count_items(items: &Param) -> usize {
    count(&items.fields) + items.items.as_deref().map_or(0, count_items)
}

fn keep(params: &mut Vec<Param>, left: &mut usize) {
    params.truncate(*left);
    *left -= params.len();
    for param in params {
        keep_inside(param, left);
    }
}

fn keep_inside(param: &mut Param, left: &mut usize) {
    keep(&mut param.fields, left);
    if let Some(items) = param.items.as_deref_mut() {
        keep_inside(items, left);
    }
}

fn clean(param: &mut Param) {
    let description = param.description.take().map(|text| {
        let text: String = text.chars().take(4 * MAX_PARAM_DESCRIPTION).collect();
        cut(&fence::one_line(&text), MAX_PARAM_DESCRIPTION)
    });
    param.description = description.filter(|text| !text.is_empty());
    param.default =
        param.default.take().filter(|default| !default.is_null() && is_short(std::slice::from_ref(default)));
    if !is_short(&param.choices) {
        param.choices = Vec::new();
    }
    param.fields.iter_mut().for_each(clean);
    if let Some(items) = param.items.as_deref_mut() {
        clean(items);
    }
}

fn is_short(values: &[Value]) -> bool {
    let mut left = MAX_VALUES;
    values.iter().all(|value| pay(value, &mut left))
}

fn pay(value: &Value, left: &mut usize) -> bool {
    let cost = match value {
        Value::String(text) => 2 + text.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 5,
        Value::Array(_) | Value::Object(_) => 2,
    };
    let Some(rest) = left.checked_sub(cost) else { return false };
    *left = rest;
    match value {
        Value::Array(items) => items.iter().all(|item| pay(item, left)),
        Value::Object(entries) => pay_for_entries(entries, left),
        _ => true,
    }
}

fn pay_for_entries(entries: &Map<String, Value>, left: &mut usize) -> bool {
    entries.iter().all(|(key, value)| {
        *left = left.saturating_sub(key.len());
        pay(value, left)
    })
}

/// The lines up to the longest description that is shown.
fn cut_lines(lines: Vec<String>) -> Vec<String> {
    let mut left = MAX_DESCRIPTION;
    let mut kept = Vec::new();
    for line in lines {
        let length = line.chars().count();
        if length >= left {
            kept.push(cut(&line, left));
            break;
        }
        left -= length;
        kept.push(line);
    }
    kept
}

/// At most so many characters; a mark shows where something was cut off.
fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default().trim_end()),
    }
}

/// Lines without the indentation that all but the first share, as docstrings have it.
fn dedented(lines: Vec<String>) -> Vec<String> {
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let shared = lines.iter().skip(1).map(|line| indent(line)).min().unwrap_or(0);
    let without = |(at, line): (usize, String)| {
        let spaces = if at == 0 { indent(&line) } else { shared };
        line.get(spaces..).unwrap_or_default().to_owned()
    };
    lines.into_iter().enumerate().map(without).collect()
}
