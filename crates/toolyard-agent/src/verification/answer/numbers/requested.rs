//! Numbers and times of a request, and whether the calls have them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    super::{
        fact::{StepFact, joined_leaves},
        text::{is_chinese, words},
    },
    NumberEvidence, is_counted,
    moments::{Moment, WrittenMoment, all_moments, moments},
    scan::{Number, NumberForm, has_measure, is_in_moment, numbers},
    units,
    weekdays::{weekdays, weekdays_of_dates},
};

/// Arguments that are too short to have content of their own.
const MAX_SHORT_CALL_BYTES: usize = 60;
/// Keys of arguments that count something.
const COUNT_KEYS: [&str; 8] = ["quantity", "qty", "count", "party", "guests", "people", "copies", "seats"];

/// Amounts of a request that no call of the run has: decimals and numbers of three digits or more.
pub(in super::super) fn missing_amounts(question: &str, steps: &[StepFact]) -> Vec<String> {
    let mut evidence = NumberEvidence { is_complete: true, ..NumberEvidence::default() };
    for step in steps.iter().filter(|step| step.is_done()) {
        evidence.is_complete &= step.is_complete && step.references.is_empty();
        evidence.add_value(&Value::Object(step.arguments.clone()));
        evidence.add_value(&step.result);
    }
    let is_amount = |number: &&Number| {
        matches!(number.form, NumberForm::Digits) && (number.decimals > 0 || number.normal.len() >= 3)
    };
    let numbers = numbers(question);
    let missing = numbers.iter().filter(is_amount).filter(|number| {
        // The digits of a telephone number may be grouped in another way, or follow a country's code.
        let digits = number.normal.trim_start_matches('0');
        let is_grouped = digits.len() >= 4 && evidence.text.contains(digits);
        evidence.is_complete
            && !evidence.contains(question, number)
            && !evidence.text.contains(&number.text)
            && !is_grouped
    });
    missing.map(|number| number.text.clone()).collect()
}

/// A number of the request that no call has, if a changing call has one that comes from nowhere: a table for two instead of four.
pub(in super::super) fn other_number(question: &str, steps: &[StepFact]) -> Option<String> {
    let done = || steps.iter().filter(|step| step.is_done());
    let mut calls = NumberEvidence { is_complete: true, ..NumberEvidence::default() };
    let mut sources = NumberEvidence { is_complete: true, ..NumberEvidence::default() };
    sources.add_text(question);
    sources.quantities.add_request(question);
    calls.add_step_counts(steps);
    for step in done() {
        calls.add_text(&joined_leaves(&Value::Object(step.arguments.clone())));
        calls.add_text(step.result_text());
        step.arguments.values().for_each(|value| calls.add_counts(value));
        if !step.changes {
            sources.add_value(&step.result);
            sources.quantities.add_result(&step.result);
        }
    }
    let asked: Vec<Number> = numbers(question)
        .into_iter()
        .filter(|number| matches!(number.form, NumberForm::Digits | NumberForm::Word))
        .filter(|number| {
            number.normal != "1" && has_measure(question, number) && !calls.contains(question, number)
        })
        .collect();
    let moments = moments(question);
    let invents = |(key, value): (&String, &Value)| {
        let is_count = COUNT_KEYS.iter().any(|known| key.to_lowercase().contains(known));
        value.as_f64().is_some_and(|value| {
            (value > 1.0 || is_count)
                && !sources
                    .quantities
                    .can_derive(value, 1e-6, NumberForm::Digits, "total more each", &|_| true)
                && !sources.values.contains(&value)
                && !sources.numbers.contains(&value.to_string())
        })
    };
    let is_invented = steps
        .iter()
        .filter(|step| step.is_effective())
        .any(|step| step.arguments.iter().filter(|(_, value)| value.is_number()).any(invents));
    asked
        .iter()
        .find(|number| is_invented && !is_in_moment(number, &moments))
        .map(|number| number.text.clone())
}

/// A time or day of the request that no step has, although a changing call has another one.
pub(in super::super) fn other_moment(question: &str, steps: &[StepFact]) -> Option<String> {
    let arguments = |step: &StepFact| joined_leaves(&Value::Object(step.arguments.clone()));
    let done = || steps.iter().filter(|step| step.is_done());
    let made: BTreeSet<Moment> =
        done().filter(|step| step.is_effective()).flat_map(|step| all_moments(&arguments(step))).collect();
    let mut known: BTreeSet<Moment> = done().flat_map(|step| all_moments(step.result_text())).collect();
    known.extend(done().flat_map(|step| all_moments(&arguments(step))));
    // "Ten minutes before 3 pm" is another time.
    let is_shifted =
        ["before", "after", "prior", "early", "前", "后"].iter().any(|word| question.contains(word));
    let durations: Vec<f64> =
        numbers(question).iter().filter_map(|number| units::in_minutes(question, number)).collect();
    let is_near = |asked: f64| {
        is_shifted
            && known.iter().filter_map(Moment::minutes).any(|time| {
                let span = (time - asked).abs();
                durations.contains(&span)
            })
    };
    let is_used = |reading: &Moment| known.contains(reading) || reading.minutes().is_some_and(is_near);
    let is_other = |moment: &&WrittenMoment| {
        let is_time = moment.readings.iter().any(|reading| reading.minutes().is_some());
        made.iter().any(|other| other.minutes().is_some() == is_time) && !moment.readings.iter().any(is_used)
    };
    let texts = || done().map(|step| (step, arguments(step)));
    let asked = moments(question);
    let other = asked.iter().find(is_other).and_then(|moment| question.get(moment.start..moment.end));
    other.map(str::to_owned).or_else(|| {
        let made: BTreeSet<u32> = texts()
            .filter(|(step, _)| step.is_effective())
            .flat_map(|(_, text)| {
                let named = weekdays(&text);
                weekdays_of_dates(&text).into_iter().chain(named).collect::<Vec<_>>()
            })
            .collect();
        let asked = weekdays(question);
        let is_other = asked.len() == 1 && !made.is_empty() && asked.is_disjoint(&made);
        is_other.then(|| question.to_owned())
    })
}

/// Whether a request counts more things than steps were made: "delete the three oldest files" with two calls.
pub(in super::super) fn counts_more(request: &str, steps: &[StepFact]) -> bool {
    let mut by_tool: BTreeMap<&str, usize> = BTreeMap::new();
    for step in steps.iter().filter(|step| step.is_effective()) {
        *by_tool.entry(&step.tool).or_default() += 1;
    }
    let arrays = steps.iter().filter(|step| step.is_effective()).flat_map(|step| step.arguments.values());
    let longest = arrays.filter_map(Value::as_array).map(Vec::len).max();
    let most = by_tool.into_values().chain(longest).max().filter(|most| *most > 1);
    let Some(most) = most else { return leaves_out_count(request, steps) };
    numbers(request).iter().any(|number| {
        let count = number.normal.parse::<usize>().ok().filter(|count| (3..=20).contains(count));
        is_requested_count(request, number) && count.is_some_and(|count| count > most)
    })
}

/// Whether a request counts things of which a single short call says nothing: a playlist "with five tracks" that is empty.
fn leaves_out_count(request: &str, steps: &[StepFact]) -> bool {
    let mut calls = NumberEvidence { is_complete: true, ..NumberEvidence::default() };
    for step in steps.iter().filter(|step| step.is_effective()) {
        let text = joined_leaves(&Value::Object(step.arguments.clone()));
        if text.len() > MAX_SHORT_CALL_BYTES || !step.references.is_empty() {
            return false;
        }
        calls.add_text(&text);
        calls.add_value(&step.result);
        step.arguments.values().for_each(|value| calls.add_counts(value));
    }
    numbers(request).iter().any(|number| {
        let is_count = number.normal.parse::<usize>().is_ok_and(|count| (3..=20).contains(&count));
        is_count && is_requested_count(request, number) && !calls.contains(request, number)
    })
}

/// Whether a number of a request counts things: "five calm jazz tracks", not "90 days" or "at 6 pm".
fn is_requested_count(request: &str, number: &Number) -> bool {
    if request.get(number.end..).is_some_and(|rest| rest.trim_start().starts_with(is_chinese)) {
        return is_counted(request, number);
    }
    let before = words(request.get(..number.start).unwrap_or_default());
    let after = words(request.get(number.end..).unwrap_or_default());
    let is_noun = after
        .first()
        .is_some_and(|word| word.len() > 2 && word.is_ascii() && word.chars().all(char::is_alphabetic));
    let of_others = before
        .last()
        .is_some_and(|word| matches!(word.as_str(), "of" | "for" | "from" | "in" | "at" | "than" | "last"));
    let has_unit = units::factors(request, number).len() > 1;
    let has_plural = after.iter().take(4).any(|word| word.ends_with('s'));
    is_noun && has_plural && !of_others && !has_unit && !is_in_moment(number, &moments(request))
}
