//! [`VerificationAgent`]: whether a result can be used. What can be decided without a model is decided first.

mod hidden_error;
mod values;

use jsonschema::PatternOptions;
use serde_json::{Value, json};
use toolyard_core::{RawJson, ToolKind, extract_capabilities};
use toolyard_model::{ModelMessage, ModelReply, ModelRequest, ToolCalling, WantedSchema};

use self::{
    hidden_error::{Hidden, hidden_error},
    values::{bad_dates, bad_numbers, looks_like_time, out_of_range},
};
use crate::{
    Language, Step, Verification,
    execution::quoted,
    planning::{
        lenient,
        words::{Words, filled},
    },
};

/// A schema larger than this is not compiled.
const MAX_SCHEMA: usize = 1 << 20;
/// A result larger than this is not held against its schema.
const MAX_CHECKED: usize = 4 << 20;
/// More of a result is not compared with earlier ones.
const MAX_COMPARED: usize = 20_000;
/// Results of one call that share fewer of their words contradict each other.
const SIMILAR: f64 = 0.3;
/// More issues than this help nobody.
const MAX_ISSUES: usize = 6;
/// A result and what is known of it.
#[derive(Debug, Clone, Copy)]
pub struct VerifyInput<'a> {
    /// The step.
    pub step: &'a Step,
    /// Its value.
    pub value: &'a Value,
    /// Its text.
    pub text: &'a str,
    /// The JSON Schema that the tool promises for structured results.
    pub output_schema: Option<&'a RawJson>,
    /// Whether the tool said that it failed.
    pub is_error: bool,
    /// What the same tool gave for the same arguments in earlier steps: the step and its text.
    pub earlier: &'a [(&'a str, &'a str)],
}

/// Looks at results.
#[derive(Debug, Clone, Copy, Default)]
pub struct VerificationAgent {
    language: Language,
}

/// What was found so far.
struct Findings {
    verified: bool,
    confidence: f64,
    issues: Vec<String>,
}

impl Findings {
    /// Something that makes a result useless.
    fn refuse(&mut self, confidence: f64, issue: impl Into<String>) {
        self.verified = false;
        self.doubt(confidence, issue);
    }

    /// Something that only makes it less certain.
    fn doubt(&mut self, confidence: f64, issue: impl Into<String>) {
        self.confidence *= confidence;
        if self.issues.len() < MAX_ISSUES {
            self.issues.push(issue.into());
        }
    }
}

impl VerificationAgent {
    /// One that speaks this language.
    pub fn new(language: Language) -> Self {
        Self { language }
    }

    /// The seeds' `verify_result`, without a model: errors, the promised schema, emptiness, ranges, dates, and
    /// consistency with what the same call gave before.
    pub fn verify(self, input: &VerifyInput<'_>) -> Verification {
        let mut found = Findings { verified: true, confidence: 1.0, issues: Vec::new() };
        let kind = ToolKind::of(&extract_capabilities(&input.step.tool_type, ""));
        let hidden = match hidden_error(&input.step.tool_type, input.value, input.text, input.output_schema) {
            Some(Hidden::Doubt(issue)) if !input.is_error => {
                found.doubt(0.4, issue);
                None
            }
            hidden => hidden,
        };
        let said_error = input.is_error || hidden.is_some();
        if input.is_error {
            found.refuse(0.0, "the tool says that it failed");
        } else if let Some(Hidden::Error(issue)) = hidden {
            found.refuse(0.1, issue);
        } else {
            check_schema(input, &mut found);
            check_emptiness(input, kind, &mut found);
            check_values(input, kind, &mut found);
            check_consistency(input, kind, &mut found);
        }
        let Findings { verified, confidence, issues } = found;
        Verification { verified, confidence, issues, said_error }
    }

    /// Asks a model whether a result is what a step was for. For results that nothing was found against.
    pub fn judge_request(self, step: &Step, question: &str, shown: &str, mode: ToolCalling) -> ModelRequest {
        let words = Words::of(self.language);
        let lines = [
            filled(words.task, &[("question", question)]),
            filled(words.reason_step, &[("description", &step.description)]),
            "---".to_owned(),
            quoted(shown),
            "---".to_owned(),
            words.judge_form.to_owned(),
        ];
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["verified", "confidence", "issues"],
            "properties": {"verified": {"type": "boolean"}, "confidence": {"type": "number"},
                "issues": {"type": "array", "maxItems": 3, "items": {"type": "string"}}}});
        ModelRequest {
            messages: vec![ModelMessage::system(words.judge), ModelMessage::user(lines.join("\n"))],
            schema: (mode == ToolCalling::Schema)
                .then(|| WantedSchema { name: "judgement".to_owned(), schema: RawJson::from_value(&schema) }),
            max_tokens: Some(300),
            temperature: Some(0.0),
            ..ModelRequest::default()
        }
    }

    /// A model's opinion; none where it gave none that can be read.
    pub fn read_judgement(self, reply: &ModelReply) -> Option<Verification> {
        let begin = reply.text.find('{')?;
        let read = lenient::read(reply.text.get(begin..)?)?.value;
        let verified = match read.get("verified")? {
            Value::Bool(verified) => *verified,
            Value::String(word) => word.eq_ignore_ascii_case("true") || word.eq_ignore_ascii_case("yes"),
            _ => return None,
        };
        let sure = if verified { 0.8 } else { 0.2 };
        let confidence = read.get("confidence").and_then(Value::as_f64).unwrap_or(sure);
        let confidence = if confidence > 1.0 { confidence / 100.0 } else { confidence };
        let issues = read.get("issues").and_then(Value::as_array).into_iter().flatten();
        let issues = issues.filter_map(Value::as_str).take(MAX_ISSUES).map(str::to_owned).collect();
        let confidence = confidence.clamp(0.0, 1.0);
        Some(Verification { verified, confidence, issues, said_error: false })
    }
}

/// Whether the structured result is what the tool promised, in its wrapping or without it.
fn check_schema(input: &VerifyInput<'_>, found: &mut Findings) {
    let Some(schema) = input.output_schema else { return };
    if schema.get().len() > MAX_SCHEMA || input.text.len() > MAX_CHECKED {
        return;
    }
    let options = jsonschema::options()
        .with_pattern_options(PatternOptions::regex().size_limit(1 << 20).dfa_size_limit(1 << 20));
    // A promise that cannot be read binds nobody.
    let Ok(validator) = options.build(&schema.to_value()) else { return };
    if validator.is_valid(input.value)
        || validator.is_valid(&json!({ "result": input.value }))
        || validator.is_valid(&json!({ "result": input.text }))
    {
        return;
    }
    let first = validator.iter_errors(input.value).next();
    let place =
        first.map(|error| format!("{}: {}", error.instance_path(), error.masked())).unwrap_or_default();
    found
        .refuse(0.3, format!("the result is not what the tool promises: {}", place.trim_start_matches(": ")));
}

fn check_emptiness(input: &VerifyInput<'_>, kind: ToolKind, found: &mut Findings) {
    let is_empty = match input.value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    match kind {
        _ if !is_empty => {}
        // These always have something to say.
        ToolKind::Calculate | ToolKind::Time => found.refuse(0.2, "the result is empty"),
        _ => found.doubt(0.5, "the result is empty"),
    }
}

fn check_values(input: &VerifyInput<'_>, kind: ToolKind, found: &mut Findings) {
    // What a tool makes itself must be right; what it only passes on may be wrong where it comes from, and what a field is
    // called says little: `age` may be one in days.
    let mut say = |is_made: bool, issues: Vec<String>| {
        for issue in issues {
            if is_made {
                found.refuse(0.4, issue);
            } else {
                found.doubt(0.7, issue);
            }
        }
    };
    say(kind == ToolKind::Calculate, bad_numbers(input.value));
    say(false, out_of_range(input.value));
    say(kind == ToolKind::Time, bad_dates(input.value));
    if kind == ToolKind::Time && found.verified && !looks_like_time(input.text) {
        found.doubt(0.5, "there is no time or date in the result");
    }
}

/// What the same call gave before should share its words.
fn check_consistency(input: &VerifyInput<'_>, kind: ToolKind, found: &mut Findings) {
    // The time is another one each time.
    if kind == ToolKind::Time {
        return;
    }
    for (step, text) in input.earlier {
        let similarity = jaccard(input.text, text);
        if similarity < SIMILAR {
            found.doubt(0.6, format!("it differs from what the same call gave in step `{step}`"));
        }
    }
}

/// How many of all words two texts share, from 0 to 1.
pub(crate) fn jaccard(one: &str, other: &str) -> f64 {
    let (one, other) = (values::words(one, MAX_COMPARED), values::words(other, MAX_COMPARED));
    let all = one.union(&other).count();
    if all == 0 {
        return 1.0;
    }
    let count = |number: usize| u32::try_from(number).map_or(f64::MAX, f64::from);
    count(one.intersection(&other).count()) / count(all)
}

#[cfg(test)]
#[path = "verification_tests.rs"]
mod tests;
