//! Numbers, dates and times of an answer that no step returned.
//!
//! | file | purpose |
//! |---|---|
//! | `scan.rs` | finds numbers in texts |
//! | `moments.rs` | finds dates and times in texts |
//! | `weekdays.rs` | finds days of the week in texts |
//! | `units.rs` | units that a model converts |
//! | `requested.rs` | numbers and times of a request, and whether the calls have them |
//! | `counts.rs` | what can be counted in a result |
//! | `derived.rs` | what follows from results by simple arithmetic |

mod counts;
mod derived;
mod moments;
mod requested;
mod scan;
mod units;
mod weekdays;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub(super) use self::requested::{counts_more, missing_amounts, other_moment, other_number};
use self::{
    counts::counts,
    derived::{Quantities, StatedValue, follows_from},
    moments::{Moment, all_moments, moments},
    scan::{Number, NumberForm, has_measure, is_in_moment, next_letter, numbers},
    weekdays::{weekday_name, weekdays, weekdays_of_dates},
};
use super::{
    claims::{Claim, ClaimedVerb, Voice},
    fact::{FactOutcome, StepFact, joined_leaves},
    records::LinkedRecords,
    text::{is_chinese, words},
};

/// Numbers shown as unverified at most.
const MAX_REPORTED: usize = 8;
/// Numbers of an answer that are compared at most.
const MAX_REVIEWED_NUMBERS: usize = 300;
/// Bytes before and after a number that tell what it is at most: a table or JSON may be one endless sentence.
const MAX_CONTEXT_BYTES: usize = 500;
/// Values near a number that it may follow from at most.
const MAX_TOLD_OPERANDS: usize = 12;
/// Times of day that are combined with each other at most.
const MAX_COMBINED_TIMES: usize = 12;
/// Words before a number that is rounded.
const APPROXIMATIONS: &str =
    "about around approximately roughly nearly almost over some circa ca approx under";
const CHINESE_APPROXIMATIONS: [&str; 8] = ["约", "近", "超过", "差不多", "大概", "将近", "接近", "不到"];
/// What follows a number that is rounded.
const CHINESE_APPROXIMATION_ENDS: [&str; 5] = ["左右", "上下", "多", "余", "来"];

/// The numbers that an answer may contain.
#[derive(Debug, Default)]
pub(super) struct NumberEvidence {
    numbers: BTreeSet<String>,
    values: Vec<f64>,
    moments: BTreeSet<Moment>,
    /// Days, months and hours of moments.
    moment_parts: BTreeSet<String>,
    /// Numbers of the request and of changing calls that may be durations.
    durations: Vec<f64>,
    quantities: Quantities,
    /// Values that the answer tells.
    told: Vec<f64>,
    /// Everything that steps returned, in lower case.
    text: String,
    /// Arguments of changing calls, in lower case.
    written: String,
    /// Whether the values of all steps are known.
    is_complete: bool,
    /// Whether no tool made several changes.
    has_single_step: bool,
}

impl NumberEvidence {
    /// What the request and the results contain. Arguments of changing calls are a model's own words: they count only as
    /// dates and times, and for the number of their items.
    pub(super) fn of_answer(question: &str, answer: &str, steps: &[StepFact]) -> Self {
        let told = numbers(answer).into_iter().take(MAX_REVIEWED_NUMBERS).flat_map(|number| number.values);
        let mut evidence = Self { is_complete: true, told: told.collect(), ..Self::default() };
        evidence.add_text(question);
        evidence.quantities.add_request(question);
        evidence.durations = evidence.values.iter().copied().filter(|value| *value > 0.0).collect();
        for step in steps.iter().filter(|step| step.is_done()) {
            evidence.is_complete &= step.is_complete;
            evidence.add_value(&step.result);
            evidence.quantities.add_result(&step.result);
            let arguments = Value::Object(step.arguments.clone());
            if step.changes {
                let text = joined_leaves(&arguments);
                evidence.add_moments(&text);
                step.arguments.values().for_each(|value| evidence.add_counts(value));
                evidence.written.extend([text.to_lowercase().as_str(), "\n"]);
                // What a command says was passed.
                let commands = step.arguments.iter().filter(|(key, _)| is_command_key(key));
                commands.filter_map(|(_, value)| value.as_str()).for_each(|text| evidence.add_text(text));
                // A setting such as `ttl` was passed; content such as a table is a model's own words.
                let settings = step.arguments.values().filter(|value| value.is_number());
                settings.for_each(|value| {
                    evidence.add_text(&value.to_string());
                    evidence.durations.extend(value.as_f64());
                });
            } else {
                // What a calculation combined is known to the reader of the run.
                let operands = numbers(&joined_leaves(&arguments));
                evidence.told.extend(operands.into_iter().flat_map(|number| number.values));
                evidence.add_value(&arguments);
            }
        }
        evidence.add_step_counts(steps);
        // An answer may tell how often and why something failed at first.
        let mut attempts: BTreeMap<&str, usize> = BTreeMap::new();
        steps.iter().for_each(|step| *attempts.entry(&step.tool).or_default() += 1);
        evidence.numbers.extend(attempts.into_values().map(|count| count.to_string()));
        for step in steps {
            if let FactOutcome::Unfinished { reason } = &step.outcome {
                evidence.add_text(reason);
            }
        }
        evidence.numbers.insert(steps.iter().filter(|step| step.is_done()).count().to_string());
        evidence
    }

    /// What a claim to have changed so many things may count.
    pub(super) fn of_changes(question: &str, steps: &[StepFact], records: &LinkedRecords) -> Self {
        let mut evidence = Self { is_complete: true, ..Self::default() };
        evidence.add_text(question);
        for step in steps.iter().filter(|step| step.is_effective()) {
            evidence.is_complete &= step.is_complete;
            evidence.add_value(&step.result);
            evidence.add_text(&joined_leaves(&Value::Object(step.arguments.clone())));
            step.arguments.values().for_each(|value| evidence.add_counts(value));
            let referred = steps.iter().filter(|other| step.references.contains(&other.id));
            referred.for_each(|other| evidence.add_value(&other.result));
        }
        evidence.numbers.insert(records.linked.len().to_string());
        let tools: Vec<&String> =
            steps.iter().filter(|step| step.is_effective()).map(|step| &step.tool).collect();
        let has_lists = steps
            .iter()
            .filter(|step| step.is_effective())
            .any(|step| step.arguments.values().any(Value::is_array));
        evidence.has_single_step = !has_lists
            && tools
                .iter()
                .enumerate()
                .all(|(at, tool)| !tools.iter().skip(at + 1).any(|other| other == tool));
        evidence.add_step_counts(steps);
        evidence
    }

    fn add_value(&mut self, value: &Value) {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Null => return,
            other => joined_leaves(other),
        };
        self.add_text(&text);
        self.add_counts(value);
    }

    fn add_counts(&mut self, value: &Value) {
        self.numbers.extend(counts(value).into_iter().map(|count| count.to_string()));
    }

    fn add_text(&mut self, text: &str) {
        let numbers = numbers(text);
        self.values.extend(units::minutes(text, &numbers));
        for number in numbers {
            // `1 349` may also be one number.
            if number.text.chars().all(|letter| letter.is_ascii_digit()) {
                self.values.extend(without_grouping(text, &number).parse::<f64>());
            }
            self.values.extend(number.values);
            self.numbers.insert(number.normal);
        }
        self.add_moments(text);
        self.text.push_str(&text.to_lowercase());
        self.text.push('\n');
    }

    fn add_moments(&mut self, text: &str) {
        for moment in moments(text) {
            for reading in &moment.readings {
                let parts = match *reading {
                    Moment::Day { month, day } => [month, day],
                    // Of 11:05, 23 is not a part.
                    Moment::Time { hour, .. } if hour > 12 && moment.readings.len() > 1 => continue,
                    Moment::Time { hour, .. } => [hour, (hour + 11) % 12 + 1],
                };
                self.moment_parts.extend(parts.map(|part| part.to_string()));
            }
            self.moments.extend(moment.readings);
        }
    }

    /// How many steps of each tool there are.
    fn add_step_counts(&mut self, steps: &[StepFact]) {
        let mut by_tool: BTreeMap<&str, usize> = BTreeMap::new();
        for step in steps.iter().filter(|step| step.is_done()) {
            *by_tool.entry(&step.tool).or_default() += 1;
        }
        self.numbers.extend(by_tool.into_values().map(|count| count.to_string()));
    }

    fn contains(&self, answer: &str, number: &Number) -> bool {
        if number.form == NumberForm::Name {
            return self.text.contains(&number.normal) || self.written.contains(&number.normal);
        }
        let spellings = [number.normal.clone(), without_grouping(answer, number)];
        let is_known = |spelling: &String| {
            // The 4 of April counts nothing.
            self.numbers.contains(spelling)
                || (self.moment_parts.contains(spelling) && !counts_in_chinese(answer, number))
        };
        if spellings.iter().any(is_known)
            || self.names_token(&token(answer, number))
            || self.is_time_span(answer, number)
        {
            return true;
        }
        let sentence = sentence_at(answer, number);
        let is_approximate = is_approximate(answer, number);
        let rounding = if is_approximate { number.rounded_precision() } else { number.precision };
        let factors = units::factors(answer, number);
        number.values.iter().flat_map(|value| factors.iter().map(move |factor| (*value, *factor))).any(
            |(value, factor)| {
                // 12.35 for 12.3456, 15 % for 0.15, about 1,900 for 1,890, 31 minutes for 1,860 s.
                let (value, tolerance) = (value * factor, 0.5 * rounding * factor + 1e-9);
                let may_round = is_approximate || factor != 1.0 || number.precision > 1.0;
                let is_known = |known: &f64| {
                    let tolerance = if may_round || known.fract() != 0.0 { tolerance } else { 1e-9 };
                    (known - value).abs() <= tolerance
                        || (number.form == NumberForm::Percentage
                            && (known * 100.0 - value).abs() <= tolerance)
                };
                let is_sum = || {
                    factor != 1.0
                        && self.quantities.can_derive(value, tolerance, number.form, sentence, &|_| false)
                };
                self.values.iter().any(is_known)
                    || is_sum()
                    || (factor == 1.0
                        && self.quantities.can_derive(value, tolerance, number.form, sentence, &|operand| {
                            // The value itself is an operand only of a difference to zero.
                            operand != value && self.told.contains(&operand)
                        }))
            },
        )
    }

    /// Whether degrees are known in the other scale.
    fn has_degrees(&self, answer: &str, number: &Number) -> bool {
        let tolerance = 0.5 * number.precision.max(1.0);
        units::other_degrees(answer, number)
            .is_some_and(|value| self.values.iter().any(|known| (known - value).abs() <= tolerance))
    }

    /// Whether a duration is known in seconds, minutes or milliseconds.
    fn has_duration(&self, seconds: f64) -> bool {
        let is_same =
            |known: &f64| [1.0, 60.0, 0.001].iter().any(|factor| (known * factor - seconds).abs() <= 0.5);
        self.values.iter().any(is_same)
    }

    /// Times of day in minutes, if they are few enough to be combined.
    fn times(&self) -> Vec<f64> {
        let times: Vec<f64> = self.moments.iter().filter_map(Moment::minutes).collect();
        if times.len() > MAX_COMBINED_TIMES { Vec::new() } else { times }
    }

    /// Whether a time is a known time plus a known number of minutes or hours.
    fn is_end(&self, moment: Moment) -> bool {
        let Some(end) = moment.minutes() else { return false };
        let is_span = |minutes: f64| {
            self.durations.iter().any(|duration| *duration == minutes || *duration * 60.0 == minutes)
        };
        self.times().iter().any(|start| is_span(end - start))
    }

    /// Whether a number of minutes or hours lies between two known times.
    fn is_time_span(&self, answer: &str, number: &Number) -> bool {
        let Some(minutes) = units::in_minutes(answer, number) else { return false };
        let times = self.times();
        times.iter().any(|start| times.iter().any(|end| end - start == minutes))
    }

    /// Whether a name with the number is in a result or was passed to a tool: `report-11.pdf`.
    fn names_token(&self, token: &str) -> bool {
        token.chars().any(char::is_alphabetic) && (self.text.contains(token) || self.written.contains(token))
    }
}

fn is_command_key(key: &str) -> bool {
    matches!(key, "command" | "cmd" | "args" | "options" | "shell")
}

/// The name that a number is part of, in lower case: letters, digits and what joins them.
fn token(text: &str, number: &Number) -> String {
    let is_part =
        |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/' | ':' | '#');
    let before = text.get(..number.start).unwrap_or_default();
    let after = text.get(number.end..).unwrap_or_default();
    let start = before.trim_end_matches(is_part).len();
    let end = number.end + after.len() - after.trim_start_matches(is_part).len();
    text.get(start..end).unwrap_or_default().trim_end_matches(['.', ':', '-']).to_lowercase()
}

/// The sentence that a number is part of; of a long one, what is near the number.
fn sentence_at<'a>(text: &'a str, number: &Number) -> &'a str {
    let is_end = |letter: char| matches!(letter, '\n' | '。' | '！' | '？' | '!' | '?');
    let earliest = text.floor_char_boundary(number.start.saturating_sub(MAX_CONTEXT_BYTES));
    let before = text.get(earliest..number.start).unwrap_or_default();
    let latest = text.floor_char_boundary(number.end.saturating_add(MAX_CONTEXT_BYTES));
    let after = text.get(number.end..latest).unwrap_or_default();
    let start = earliest + before.rfind(is_end).max(before.rfind(". ")).unwrap_or_default();
    let end = [after.find(is_end), after.find(". ")].into_iter().flatten().min().unwrap_or(after.len());
    text.get(start..number.end + end).unwrap_or(text)
}

/// The number with the groups of three digits before and after it: `1 890`, `1.890`, `1'890`.
fn without_grouping(answer: &str, number: &Number) -> String {
    let is_separator = |letter: char| matches!(letter, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}' | '\'' | '.');
    let mut digits: String = number.text.chars().filter(char::is_ascii_digit).collect();
    let mut rest = answer.get(number.end..).unwrap_or_default();
    while let Some(group) =
        rest.strip_prefix(is_separator).and_then(|rest| rest.get(..3)).filter(|group| is_group(group))
    {
        digits.push_str(group);
        rest = rest.char_indices().nth(4).and_then(|(at, _)| rest.get(at..)).unwrap_or_default();
    }
    let mut before = answer.get(..number.start).unwrap_or_default();
    while is_group(digits.get(..3).unwrap_or_default()) {
        let Some(earlier) = before.strip_suffix(is_separator) else { break };
        let start = earlier.trim_end_matches(|letter: char| letter.is_ascii_digit()).len();
        let group = earlier.get(start..).unwrap_or_default();
        if !(1..=3).contains(&group.len()) {
            break;
        }
        digits.insert_str(0, group);
        if group.len() < 3 {
            break;
        }
        before = earlier.get(..start).unwrap_or_default();
    }
    digits.trim_start_matches('0').to_owned()
}

fn is_group(text: &str) -> bool {
    text.len() == 3 && text.chars().all(|letter| letter.is_ascii_digit())
}

fn is_approximate(answer: &str, number: &Number) -> bool {
    let before =
        answer.get(..number.start).unwrap_or_default().trim_end_matches([' ', '~', '$', '€', '£', '¥']);
    let after = answer.get(number.end..).unwrap_or_default();
    let unit = after.trim_start_matches(|letter: char| letter == ' ' || is_chinese(letter));
    let of_number = after.get(..after.len() - unit.len()).unwrap_or_default();
    let nearest = before.floor_char_boundary(before.len().saturating_sub(MAX_CONTEXT_BYTES));
    let last_word = words(before.get(nearest..).unwrap_or_default()).pop().unwrap_or_default();
    APPROXIMATIONS.split(' ').any(|word| last_word == word)
        || CHINESE_APPROXIMATIONS.iter().any(|word| before.ends_with(word))
        || CHINESE_APPROXIMATION_ENDS.iter().any(|word| of_number.contains(word))
        || answer.get(..number.start).is_some_and(|before| before.ends_with('~'))
}

/// The numbers, dates and times of an answer that are not in the evidence, as they are written; none if the evidence is
/// incomplete.
pub(super) fn unverified_numbers(answer: &str, evidence: &NumberEvidence) -> Vec<String> {
    if !evidence.is_complete {
        return Vec::new();
    }
    let mut found: Vec<String> = Vec::new();
    let mut report = |text: &str| {
        let text = text.trim().to_owned();
        if !text.is_empty() && !found.contains(&text) {
            found.push(text);
        }
    };
    let written = moments(answer);
    for moment in &written {
        let is_known = |reading: &Moment| evidence.moments.contains(reading) || evidence.is_end(*reading);
        if !moment.readings.iter().any(is_known) {
            report(answer.get(moment.start..moment.end).unwrap_or_default());
        }
    }
    let written_numbers = numbers(answer);
    let reviewed = written_numbers.iter().take(MAX_REVIEWED_NUMBERS);
    let (verified, unverified): (Vec<&Number>, Vec<&Number>) =
        reviewed.partition(|number| evidence.contains(answer, number));
    // 5,104 MB (5.1 GB)
    let is_converted = |number: &Number| {
        let factors = units::factors(answer, number);
        verified.iter().any(|other| {
            factors.iter().skip(1).any(|factor| {
                let tolerance = 0.5 * number.precision * factor;
                let is_near = |value: &f64| {
                    other.values.iter().any(|known| (known - value * factor).abs() <= tolerance)
                };
                number.values.iter().any(is_near)
            })
        })
    };
    let durations = units::composite_seconds(answer, &written_numbers);
    let is_duration = |number: &Number| {
        durations
            .iter()
            .any(|(starts, seconds)| starts.contains(&number.start) && evidence.has_duration(*seconds))
    };
    // The difference of two totals that the answer tells.
    let follows = |number: &Number| {
        let is_operand = |other: &&&Number| {
            other.start.abs_diff(number.start) <= MAX_CONTEXT_BYTES && !is_in_moment(other, &written)
        };
        let operand = |other: &&Number| {
            let value = other.values.first().copied()?;
            Some(StatedValue { value, is_near: is_same_sentence(answer, number, other) })
        };
        let told: Vec<StatedValue> =
            verified.iter().filter(is_operand).take(MAX_TOLD_OPERANDS).filter_map(operand).collect();
        follows_from(number, &told)
    };
    for number in unverified {
        if !is_in_moment(number, &written)
            && needs_evidence(answer, number)
            && !is_converted(number)
            && !is_duration(number)
            && !evidence.has_degrees(answer, number)
            && !follows(number)
        {
            report(&number.text);
        }
    }
    found.truncate(MAX_REPORTED);
    found
}

/// Whether two numbers stand in the same sentence.
fn is_same_sentence(answer: &str, number: &Number, other: &Number) -> bool {
    let (start, end) = (number.end.min(other.end), number.start.max(other.start));
    let between = answer.get(start..end).unwrap_or_default();
    !between.contains(['\n', '。', '！', '？', '!', '?']) && !between.contains(". ")
}

/// Whether a number says something: one, list numbers and numerals in words say nothing.
fn needs_evidence(answer: &str, number: &Number) -> bool {
    match number.form {
        NumberForm::ListNumber => false,
        NumberForm::Word => number.normal != "1" && has_measure(answer, number),
        NumberForm::Digits => number.normal != "1",
        NumberForm::Percentage | NumberForm::Name => true,
    }
}

/// Days of the week in an answer that neither the request nor a step names, by name or by date.
pub(super) fn unverified_weekdays(question: &str, answer: &str, steps: &[StepFact]) -> Vec<String> {
    let is_relative = [question, answer].iter().any(|text| {
        let text = text.to_lowercase();
        ["today", "tomorrow", "tonight", "yesterday", "week", "今", "明", "昨", "后天", "周末"]
            .iter()
            .any(|word| text.contains(word))
    });
    let mut known = weekdays(question);
    for step in steps {
        known.extend(weekdays(step.result_text()));
        known.extend(weekdays(step.call_text()));
        known.extend(weekdays_of_dates(step.result_text()));
        known.extend(weekdays_of_dates(step.call_text()));
        // A date without a year has no day of the week.
        let moments = all_moments(step.result_text()).into_iter().chain(all_moments(step.call_text()));
        if !step.is_complete || moments.into_iter().any(|moment| moment.minutes().is_none()) {
            return Vec::new();
        }
    }
    let unknown = weekdays(answer).into_iter().filter(|day| !is_relative && !known.contains(day));
    unknown.filter_map(weekday_name).map(str::to_owned).collect()
}

/// Whether a claim contains a number that is not in the evidence, or counts more or fewer things than were changed: "all
/// five sheets", 五个表头.
pub(super) fn miscounts(
    claim: &Claim,
    answer: &NumberEvidence,
    changes: &NumberEvidence,
    records: &LinkedRecords,
) -> bool {
    if !unverified_numbers(&claim.text, answer).is_empty() {
        return true;
    }
    // 甲报了两次 may tell what was read.
    let tells =
        matches!(&claim.verb, ClaimedVerb::Unknown(stem) if stem.is_empty()) && claim.voice != Voice::Own;
    let claim = &claim.text;
    // A call without a list of its own may be about all that was read.
    changes.is_complete
        && !tells
        && !(records.linked.is_empty() && changes.has_single_step)
        && numbers(claim).iter().any(|number| {
            let counts = matches!(number.form, NumberForm::Digits | NumberForm::Word) && number.decimals == 0;
            counts && number.normal != "1" && is_counted(claim, number) && !changes.contains(claim, number)
        })
}

const CHINESE_COUNTS: &str = "个条封项张份行列件次名位篇本台种处笔组页家人段栏格套只场班趟首部通间";

/// Whether a Chinese measure word follows the number.
fn counts_in_chinese(text: &str, number: &Number) -> bool {
    next_letter(text, number).is_some_and(|next| CHINESE_COUNTS.contains(next))
}

fn is_counted(claim: &str, number: &Number) -> bool {
    // 第5条 counts nothing.
    if claim.get(..number.start).is_some_and(|before| before.trim_end().ends_with('第')) {
        return false;
    }
    if counts_in_chinese(claim, number) {
        return true;
    }
    let before = words(claim.get(..number.start).unwrap_or_default());
    let after = words(claim.get(number.end..).unwrap_or_default());
    let is_noun = after
        .first()
        .is_some_and(|word| word.len() > 2 && word.is_ascii() && word.chars().all(char::is_alphabetic));
    let of_others =
        before.iter().rev().take(2).any(|word| matches!(word.as_str(), "of" | "for" | "from" | "in"));
    let follows = before.last().is_none_or(|word| {
        matches!(word.as_str(), "all" | "the" | "these" | "those" | "both")
            || word.ends_with("ed")
            || word.ends_with("nt")
    });
    is_noun && follows && !of_others
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn evidence(result: Value) -> NumberEvidence {
        let step = StepFact { result, is_complete: true, ..StepFact::default() };
        NumberEvidence::of_answer("Which month of 2025?", "", &[step])
    }

    #[test]
    fn numbers_of_results_are_verified_in_any_spelling() {
        let known = evidence(
            json!({"rows": [["July", 1890.0], ["May", 1234.567]], "share": 0.15, "at": "2026-11-10T17:03:20"}),
        );
        for answer in [
            "July: 1,890",
            "1890.00 in 2025",
            "about 1234.57, that is 15 %",
            "there are two rows in A1:D17",
            "1. July\n2. May\n3. June",
            "一千八百九十元",
            "about 1,900",
            "1 890 or 1.890 or 1'890",
            "on 10 November at 5:03 pm",
        ] {
            assert_eq!(unverified_numbers(answer, &known), [""; 0], "{answer}");
        }
        assert_eq!(unverified_numbers("February, 1350", &known), ["1350"]);
        assert_eq!(unverified_numbers("1,889 or 1889", &known), ["1,889", "1889"]);
        assert_eq!(unverified_numbers("on 12 November at 09:41", &known), ["12 November", "09:41"]);
        assert_eq!(unverified_numbers("九个", &known), ["九"]);
    }

    #[test]
    fn without_all_values_no_number_is_doubted() {
        let step = StepFact { result: json!("17"), is_complete: false, ..StepFact::default() };
        assert_eq!(unverified_numbers("99", &NumberEvidence::of_answer("", "", &[step])), [""; 0]);
    }

    #[test]
    fn what_a_model_wrote_is_no_evidence_for_a_number() {
        let write = StepFact {
            changes: true,
            arguments: json!({"data": [[240]]}).as_object().unwrap().clone(),
            result: json!("written"),
            is_complete: true,
            ..StepFact::default()
        };
        assert_eq!(unverified_numbers("I put 240", &NumberEvidence::of_answer("", "", &[write])), ["240"]);
    }
}
