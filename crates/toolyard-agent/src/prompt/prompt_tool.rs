//! One tool as a prompt shows it: sanitized and bounded.

use serde_json::Value;
use toolyard_core::{EffectiveHints, Param, RawJson, SourceKind, SuccessRate, ToolSpec, params};
use toolyard_hub::ToolCandidate;
use unicode_segmentation::UnicodeSegmentation as _;

use super::{docstring::extract_param_descriptions, example_arguments::example_arguments};
use crate::{ToolPlaces, escape, values::result_shape};

const MAX_DESCRIPTION_CHARS: usize = 2_000;
const MAX_PARAM_DESCRIPTION_CHARS: usize = 400;
/// Longer choices and defaults are omitted.
const MAX_VALUE_BYTES: usize = 600;
/// Characters of a result shape; a longer one is omitted.
const MAX_RESULT_SHAPE_CHARS: usize = 300;
/// Parameters shown, nested ones included; further ones are only counted.
const MAX_PARAMS: usize = 100;
/// Calls after which a success rate is shown.
const MIN_RATED_CALLS: f64 = 5.0;
/// A higher success rate tells a model nothing, and is not shown.
const MAX_SHOWN_PERCENT: u32 = 70;

/// One tool as a prompt shows it. Untrusted text is sanitized and bounded on construction.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptTool {
    pub(super) name: String,
    pub(super) description: Vec<String>,
    pub(super) params: Vec<Param>,
    /// Number of parameters that are not shown.
    pub(super) omitted_params: usize,
    pub(super) hints: Option<EffectiveHints>,
    /// The capability under which prompts with many tools list it.
    pub(super) group: Option<String>,
    pub(super) success_percent: Option<u32>,
    /// Placeholders for the required parameters.
    pub(super) example: Value,
    /// The arguments of a successful call.
    learned_example: Option<Value>,
    /// The shape of its results, if known.
    result_shape: Option<String>,
    pub(super) schema: RawJson,
    /// Whether it runs in this process, so that its name can be trusted.
    pub(super) is_native: bool,
    /// The operator's name of the server or skill that it comes from; none for native tools.
    server: Option<String>,
}

impl PromptTool {
    /// A tool from its definition alone.
    pub fn new(spec: &ToolSpec) -> Self {
        Self::from_parts(spec, spec.params())
    }

    /// A tool of this process, from its definition alone.
    pub(crate) fn native(spec: &ToolSpec) -> Self {
        Self { is_native: true, ..Self::new(spec) }
    }

    /// A tool of the hub, with its effective hints and its capability.
    pub fn from_candidate(candidate: &ToolCandidate) -> Self {
        let places = ToolPlaces::of(&candidate.source.info);
        let mut params = candidate.params().to_vec();
        // What the settings decide is filled in later.
        params.retain(|param| places.settled_value(param).is_none());
        let mut tool = Self::from_parts(candidate.spec(), params);
        tool.hints = Some(candidate.hints);
        tool.is_native = candidate.source.info.kind == SourceKind::Native;
        tool.server = (!tool.is_native).then(|| candidate.source_id().to_string());
        // Capabilities guessed from descriptions are too unreliable for a group heading.
        let capability = candidate.main_capability.as_ref();
        tool.group = capability
            .map(|capability| capability.as_str().to_owned())
            .filter(|name| escape::is_plain_name(name));
        tool
    }

    fn from_parts(spec: &ToolSpec, mut params: Vec<Param>) -> Self {
        let description =
            if spec.description.trim().is_empty() { spec.title.as_deref() } else { Some(&*spec.description) };
        // A description may be as long as a message: bound the work before processing.
        let description: String =
            description.unwrap_or_default().chars().take(4 * MAX_DESCRIPTION_CHARS).collect();
        let lines = extract_param_descriptions(escape::sanitized_lines(&description), &mut params);
        let omitted_params = limit_params(&mut params);
        Self {
            name: spec.name.to_string(),
            description: dedent(truncate_lines(lines)),
            example: example_arguments(&params),
            learned_example: None,
            params,
            omitted_params,
            hints: None,
            group: None,
            success_percent: None,
            schema: spec.input_schema.clone(),
            result_shape: spec.output_schema.as_ref().and_then(declared_result_shape),
            is_native: false,
            server: None,
        }
    }

    /// Sets the name by which a plan calls the tool, and what distinguishes it from other tools of its own name.
    #[must_use]
    pub fn called(mut self, name: &str, distinction: Option<&str>) -> Self {
        name.clone_into(&mut self.name);
        if let Some(distinction) = distinction {
            let prefix = format!("[{}]", escape::sanitized_lines(distinction).join(" "));
            match self.description.first_mut() {
                Some(first) => *first = format!("{prefix} {first}"),
                None => self.description.push(prefix),
            }
        }
        self
    }

    /// Sets the success rate. Only that of a tool which often fails is shown, in steps of ten percent, so that prompts rarely
    /// change.
    #[must_use]
    pub fn with_success_rate(mut self, success: SuccessRate) -> Self {
        let SuccessRate { rate, calls } = success;
        let tenths = (rate.clamp(0.0, 1.0) * 10.0).round();
        let percent = (0..=10_u32).find(|tenth| f64::from(*tenth) >= tenths).map(|tenth| tenth * 10);
        let is_bad = |percent: &u32| *percent <= MAX_SHOWN_PERCENT;
        self.success_percent = percent.filter(|_| calls >= MIN_RATED_CALLS).filter(is_bad);
        self
    }

    /// The success rate in percent, if the tool often fails.
    pub(crate) fn bad_success_percent(&self) -> Option<u32> {
        self.success_percent
    }

    /// Sets the arguments of a successful call.
    #[must_use]
    pub fn with_example(mut self, arguments: Value) -> Self {
        self.learned_example = Some(arguments);
        self
    }

    /// The arguments of a successful call, if known.
    pub fn learned_example(&self) -> Option<&Value> {
        self.learned_example.as_ref()
    }

    /// Sets the shape of its results: JSON whose values are placeholders.
    #[must_use]
    pub fn with_result_shape(mut self, shape: impl Into<String>) -> Self {
        let shape: String = shape.into();
        let is_short = shape.chars().count() <= MAX_RESULT_SHAPE_CHARS;
        self.result_shape = is_short.then_some(shape).or(self.result_shape);
        self
    }

    /// The observed or declared shape of its results.
    pub fn result_shape(&self) -> Option<&str> {
        self.result_shape.as_deref()
    }

    /// The name of the tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The operator's name of the server or skill that it comes from; none for native tools.
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// The sanitized description, without the part that describes parameters.
    pub fn description(&self) -> String {
        self.description.join("\n")
    }

    /// The sanitized parameters.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    pub(crate) fn first_sentence(&self) -> String {
        let line = self.description.first().map(String::as_str).unwrap_or_default();
        let sentence = line.unicode_sentences().next().unwrap_or(line).trim();
        truncate(sentence, MAX_PARAM_DESCRIPTION_CHARS)
    }
}

/// The result shape that an output schema declares, if it declares more than a lone `result`.
fn declared_result_shape(schema: &RawJson) -> Option<String> {
    let fields = params(&schema.to_value());
    let is_wrapper = fields.len() == 1 && fields.iter().all(|field| field.name == "result");
    if fields.is_empty() || is_wrapper {
        return None;
    }
    let none_required = !fields.iter().any(|field| field.required);
    let placeholder =
        |field: Param| Param { required: field.required || none_required, default: None, ..field };
    result_shape(&example_arguments(&fields.into_iter().map(placeholder).collect::<Vec<_>>()))
}

/// Sanitizes parameters and removes those beyond the limit; returns the number removed.
fn limit_params(params: &mut Vec<Param>) -> usize {
    let total = count_params(params);
    if total > MAX_PARAMS {
        // Required parameters are kept: without them the tool cannot be called.
        params.sort_by_key(|param| !param.required);
    }
    let mut left = MAX_PARAMS;
    truncate_params(params, &mut left);
    params.iter_mut().for_each(sanitize_param);
    total.saturating_sub(count_params(params))
}

fn count_params(params: &[Param]) -> usize {
    params.iter().map(|param| 1 + count_nested_params(param)).sum()
}

fn count_nested_params(param: &Param) -> usize {
    count_params(&param.fields) + param.items.as_deref().map_or(0, count_nested_params)
}

fn truncate_params(params: &mut Vec<Param>, left: &mut usize) {
    params.truncate(*left);
    *left -= params.len();
    for param in params {
        truncate_nested(param, left);
    }
}

fn truncate_nested(param: &mut Param, left: &mut usize) {
    truncate_params(&mut param.fields, left);
    if let Some(items) = param.items.as_deref_mut() {
        truncate_nested(items, left);
    }
}

fn sanitize_param(param: &mut Param) {
    let description = param.description.take().map(|text| {
        let text: String = text.chars().take(4 * MAX_PARAM_DESCRIPTION_CHARS).collect();
        truncate(&escape::sanitized_line(&text), MAX_PARAM_DESCRIPTION_CHARS)
    });
    param.description = description.filter(|text| !text.is_empty());
    param.default =
        param.default.take().filter(|default| !default.is_null() && are_short(std::slice::from_ref(default)));
    if !are_short(&param.choices) {
        param.choices = Vec::new();
    }
    param.fields.iter_mut().for_each(sanitize_param);
    if let Some(items) = param.items.as_deref_mut() {
        sanitize_param(items);
    }
}

fn are_short(values: &[Value]) -> bool {
    let mut left = MAX_VALUE_BYTES;
    values.iter().all(|value| subtract_size(value, &mut left))
}

/// Subtracts the approximate JSON size of a value from `left`; false if it does not fit.
fn subtract_size(value: &Value, left: &mut usize) -> bool {
    let cost = match value {
        Value::String(text) => 2 + text.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 5,
        Value::Array(_) | Value::Object(_) => 2,
    };
    let Some(rest) = left.checked_sub(cost) else { return false };
    *left = rest;
    match value {
        Value::Array(items) => items.iter().all(|item| subtract_size(item, left)),
        Value::Object(entries) => entries.iter().all(|(key, value)| {
            *left = left.saturating_sub(key.len());
            subtract_size(value, left)
        }),
        _ => true,
    }
}

/// Lines up to the length limit of a description.
fn truncate_lines(lines: Vec<String>) -> Vec<String> {
    let mut left = MAX_DESCRIPTION_CHARS;
    let mut kept = Vec::new();
    for line in lines {
        let length = line.chars().count();
        if length >= left {
            kept.push(truncate(&line, left));
            break;
        }
        left -= length;
        kept.push(line);
    }
    kept
}

/// At most `max_chars` characters, followed by `…` where the text was cut.
fn truncate(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default().trim_end()),
    }
}

/// Removes the indentation that all lines but the first share, as in docstrings.
fn dedent(lines: Vec<String>) -> Vec<String> {
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let shared = lines.iter().skip(1).map(|line| indent(line)).min().unwrap_or(0);
    let dedented = |(at, line): (usize, String)| {
        let spaces = if at == 0 { indent(&line) } else { shared };
        line.get(spaces..).unwrap_or_default().to_owned()
    };
    lines.into_iter().enumerate().map(dedented).collect()
}
