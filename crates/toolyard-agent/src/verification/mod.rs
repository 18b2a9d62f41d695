//! [`VerificationAgent`]: decides whether a result can be used, by rules first and by a model if needed.
//!
//! | file | purpose |
//! |---|---|
//! | `error_detection.rs` | errors that a tool returned as a regular result |
//! | `plausibility.rs` | impossible numbers and dates |
//! | `review.rs` | whether an answer is what was asked for, in the opinion of a model |
//! | `similarity.rs` | similarity of two texts, to compare repeated calls |
//! | `values.rs` | values of an answer that are in no result |

mod error_detection;
mod plausibility;
mod review;
mod similarity;
mod values;

use jsonschema::PatternOptions;
use serde_json::{Value, json};
use toolyard_core::{RawJson, ToolKind, extract_capabilities};
use toolyard_model::{
    ModelMessage, ModelReply, ModelRequest, ResponseSchema, ToolCalling, json_text::parse_document,
};

pub use self::review::{Fulfilled, Review, ReviewRule};
pub(crate) use self::values::Evidence;
use self::{
    error_detection::{DetectedError, detect_error},
    plausibility::{impossible_dates, invalid_numbers, looks_like_time, out_of_range_numbers},
    similarity::jaccard_similarity,
};
use crate::{
    Language, Step, Verification, escape,
    prompt::templates::{RunTemplates, fill},
};

/// Bytes of an output schema that is compiled.
const MAX_SCHEMA_BYTES: usize = 1 << 20;
/// Bytes of a result that is validated against its schema.
const MAX_VALIDATED_BYTES: usize = 4 << 20;
/// Results of the same call with a lower similarity contradict each other.
const MIN_SIMILARITY: f64 = 0.3;
/// Issues reported per result.
const MAX_ISSUES: usize = 6;
const MAX_JUDGEMENT_TOKENS: u32 = 300;
/// Memory for a compiled pattern of an output schema.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// A result to verify.
#[derive(Debug, Clone, Copy)]
pub struct VerificationInput<'a> {
    /// The step.
    pub step: &'a Step,
    /// Whether its tool may change something.
    pub changes: bool,
    /// The value of the result.
    pub value: &'a Value,
    /// The text of the result.
    pub text: &'a str,
    /// The output schema of the tool.
    pub output_schema: Option<&'a RawJson>,
    /// Step ids and texts of earlier results of the same call.
    pub earlier: &'a [(&'a str, &'a str)],
}

/// Verifies results.
#[derive(Debug, Clone, Copy, Default)]
pub struct VerificationAgent {
    language: Language,
}

struct Findings {
    verified: bool,
    confidence: f64,
    issues: Vec<String>,
}

impl Findings {
    fn reject(&mut self, factor: f64, issue: impl Into<String>) {
        self.verified = false;
        self.doubt(factor, issue);
    }

    /// Multiplies the confidence by `factor`.
    fn doubt(&mut self, factor: f64, issue: impl Into<String>) {
        self.confidence *= factor;
        if self.issues.len() < MAX_ISSUES {
            self.issues.push(issue.into());
        }
    }
}

impl VerificationAgent {
    /// An agent whose prompts are in this language.
    pub fn new(language: Language) -> Self {
        Self { language }
    }

    /// Verifies a result by rules (`verify_result` of the specification): errors, output schema, emptiness, value ranges,
    /// dates, and consistency with earlier results of the same call.
    pub fn verify(self, input: &VerificationInput<'_>) -> Verification {
        let mut findings = Findings { verified: true, confidence: 1.0, issues: Vec::new() };
        let kind = ToolKind::of(&extract_capabilities(&input.step.tool_type, ""));
        let detected = detect_error(input);
        let reported_error = matches!(detected, Some(DetectedError::Certain(_)));
        match detected {
            Some(DetectedError::Certain(issue)) => findings.reject(0.1, issue),
            Some(DetectedError::Possible(issue)) => findings.doubt(0.4, issue),
            None => {}
        }
        if !reported_error {
            check_schema(input, &mut findings);
            check_emptiness(input, kind, &mut findings);
            check_values(input, kind, &mut findings);
            check_consistency(input, kind, &mut findings);
        }
        let Findings { verified, confidence, issues } = findings;
        Verification { verified, confidence, issues, reported_error }
    }

    /// The model request that asks whether a result fulfils its step, for results that passed the rules.
    pub fn judge_request(
        self,
        step: &Step,
        question: &str,
        preview: &str,
        mode: ToolCalling,
    ) -> ModelRequest {
        let templates = RunTemplates::of(self.language);
        let lines = [
            fill(templates.task, &[("question", question)]),
            fill(templates.reason_step, &[("description", &step.description)]),
            "---".to_owned(),
            escape::quote(preview),
            "---".to_owned(),
            templates.judge_format.to_owned(),
        ];
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["verified", "confidence", "issues"],
            "properties": {"verified": {"type": "boolean"}, "confidence": {"type": "number"},
                "issues": {"type": "array", "maxItems": 3, "items": {"type": "string"}}}});
        ModelRequest {
            messages: vec![
                ModelMessage::system(templates.judge_prompt),
                ModelMessage::user(lines.join("\n")),
            ],
            schema: (mode == ToolCalling::Schema).then(|| ResponseSchema {
                name: "judgement".to_owned(),
                schema: RawJson::from_value(&schema),
            }),
            max_tokens: Some(MAX_JUDGEMENT_TOKENS),
            temperature: Some(0.0),
            ..ModelRequest::default()
        }
    }

    /// Parses the reply to a judge request; none if it has no opinion that can be read.
    pub fn parse_judgement(self, reply: &ModelReply) -> Option<Verification> {
        let start = reply.text.find('{')?;
        let json = reply.text.get(start..)?;
        let judgement = match parse_document(json) {
            Ok(judgement) => judgement,
            Err(_) if says_no(json, "verified") => json!({"verified": false}),
            Err(_) => return None,
        };
        let verified = match judgement.get("verified")? {
            Value::Bool(verified) => *verified,
            Value::String(word) => word.eq_ignore_ascii_case("true") || word.eq_ignore_ascii_case("yes"),
            _ => return None,
        };
        let default_confidence = if verified { 0.8 } else { 0.2 };
        let confidence = judgement.get("confidence").and_then(Value::as_f64).unwrap_or(default_confidence);
        let confidence = if confidence > 1.0 { confidence / 100.0 } else { confidence };
        let issues = judgement.get("issues").and_then(Value::as_array).into_iter().flatten();
        let issues = issues.filter_map(Value::as_str).take(MAX_ISSUES).map(str::to_owned).collect();
        let confidence = confidence.clamp(0.0, 1.0);
        Some(Verification { verified, confidence, issues, reported_error: false })
    }
}

/// Whether an opinion says no in its field of this name, although its JSON is cut or has mistakes.
fn says_no(json: &str, field: &str) -> bool {
    let json = json.replace('\'', "\"");
    let Some((_, rest)) = json.split_once(&format!("\"{field}\"")) else { return false };
    let word = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ':' | '"'));
    let word = word.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    word.eq_ignore_ascii_case("false") || word.eq_ignore_ascii_case("no")
}

/// Validates a result against the output schema, unwrapped or wrapped in `result`.
fn check_schema(input: &VerificationInput<'_>, findings: &mut Findings) {
    let Some(schema) = input.output_schema else { return };
    if schema.get().len() > MAX_SCHEMA_BYTES || input.text.len() > MAX_VALIDATED_BYTES {
        return;
    }
    let options = jsonschema::options().with_pattern_options(
        PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES),
    );
    // An invalid output schema is ignored.
    let Ok(validator) = options.build(&schema.to_value()) else { return };
    if validator.is_valid(input.value)
        || validator.is_valid(&json!({ "result": input.value }))
        || validator.is_valid(&json!({ "result": input.text }))
    {
        return;
    }
    let first = validator.iter_errors(input.value).next();
    let location =
        first.map(|error| format!("{}: {}", error.instance_path(), error.masked())).unwrap_or_default();
    findings.reject(
        0.3,
        format!("the result is not what the tool promises: {}", location.trim_start_matches(": ")),
    );
}

fn check_emptiness(input: &VerificationInput<'_>, kind: ToolKind, findings: &mut Findings) {
    let is_empty = match input.value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    match kind {
        _ if !is_empty => {}
        // These tools always have a result.
        ToolKind::Calculate | ToolKind::Time => findings.reject(0.2, "the result is empty"),
        _ => findings.doubt(0.5, "the result is empty"),
    }
}

fn check_values(input: &VerificationInput<'_>, kind: ToolKind, findings: &mut Findings) {
    // Values that a tool computes must be right. Values that it passes on may be wrong at their source, and field names are
    // ambiguous: `age` may be in days.
    let mut report = |is_computed: bool, issues: Vec<String>| {
        for issue in issues {
            if is_computed {
                findings.reject(0.4, issue);
            } else {
                findings.doubt(0.7, issue);
            }
        }
    };
    report(kind == ToolKind::Calculate, invalid_numbers(input.value));
    report(false, out_of_range_numbers(input.value));
    report(kind == ToolKind::Time, impossible_dates(input.value));
    if kind == ToolKind::Time && findings.verified && !looks_like_time(input.text) {
        findings.doubt(0.5, "there is no time or date in the result");
    }
}

fn check_consistency(input: &VerificationInput<'_>, kind: ToolKind, findings: &mut Findings) {
    // The time changes between calls.
    if kind == ToolKind::Time {
        return;
    }
    for (step, text) in input.earlier {
        if jaccard_similarity(input.text, text) < MIN_SIMILARITY {
            findings.doubt(0.6, format!("it differs from what the same call gave in step `{step}`"));
        }
    }
}

#[cfg(test)]
mod tests;
