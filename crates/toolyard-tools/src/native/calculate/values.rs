//! Sums and the like over a list of values: `sum(values)`, exact, whatever else is in the list.

use std::cmp::Ordering;

use serde_json::{Number, Value};
use toolyard_core::{ToolError, grouped};

/// Longer lists are not added up here.
const MAX_VALUES: usize = 1_000_000;
/// A list within an expression is read up to this size.
const MAX_INLINE: usize = 4 << 20;
/// The name that stands for the list in an expression.
const NAME: &str = "values";
/// More digits than this are not added up.
const MAX_DIGITS: usize = 30;
/// Numbers are added up in units of ten to the power of minus this.
const SCALE: usize = 18;

/// An expression in which numbers stand in the place of the list, and how many of its values were used.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) expression: String,
    pub(super) counted: usize,
    pub(super) ignored: usize,
}

/// What is made of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Sum,
    Average,
    Minimum,
    Maximum,
    Count,
    Median,
}

impl Function {
    fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "sum" | "total" | "add" | "sum_of" => Self::Sum,
            "average" | "avg" | "mean" => Self::Average,
            "min" | "minimum" | "smallest" => Self::Minimum,
            "max" | "maximum" | "largest" => Self::Maximum,
            "count" | "len" | "length" | "number" => Self::Count,
            "median" => Self::Median,
            _ => return None,
        })
    }
}

/// The expression with the list put in. None where it is not about a list.
pub(super) fn counted(expression: &str, values: Option<&Value>) -> Result<Option<Counted>, ToolError> {
    match values {
        Some(values) => over(&unwritten(expression), values).map(Some),
        None => inline(expression),
    }
}

/// `sum`, `sum values` and `sum of values` as `sum(values)`.
fn unwritten(expression: &str) -> String {
    let mut words = expression.split_whitespace().filter(|word| !["of", "the", "all"].contains(word));
    let (first, second, third) = (words.next(), words.next(), words.next());
    let names_list = second.is_none_or(|word| word.eq_ignore_ascii_case(NAME));
    match first {
        Some(name) if Function::named(name).is_some() && names_list && third.is_none() => {
            format!("{name}({NAME})")
        }
        _ => expression.to_owned(),
    }
}

/// Puts results in the place of `sum([1, 2])` and `sum(1, 2)`, wherever they stand in an expression.
fn inline(expression: &str) -> Result<Option<Counted>, ToolError> {
    if expression.len() > MAX_INLINE {
        return Ok(None);
    }
    let mut all = Counted { expression: String::new(), counted: 0, ignored: 0 };
    let mut rest = expression.trim().trim_start_matches('=');
    let mut used = false;
    while let Some((before, function, values, after)) = next_inline(rest) {
        let (numbers, ignored) = numbers(&values)?;
        all.expression.push_str(before);
        all.expression.push_str(&applied(function, &numbers)?);
        all.counted += numbers.len();
        all.ignored += ignored;
        used = true;
        rest = after;
    }
    all.expression.push_str(rest);
    Ok(used.then_some(all))
}

/// The next function with a list behind it, what stands before it, and what follows.
fn next_inline(text: &str) -> Option<(&str, Function, Value, &str)> {
    for (at, _) in text.match_indices('(') {
        let (head, behind) = (text.get(..at)?, text.get(at + 1..)?);
        let begin = word_start(head);
        let Some(function) = head.get(begin..).and_then(Function::named) else { continue };
        let Some((values, after)) = list_at(behind.trim_start()) else { continue };
        if let Some(after) = after.trim_start().strip_prefix(')') {
            return Some((head.get(..begin)?, function, values, after));
        }
    }
    None
}

/// Where the word at the end of a text begins.
fn word_start(text: &str) -> usize {
    let before =
        text.char_indices().rev().find(|(_, letter)| !(letter.is_ascii_alphanumeric() || *letter == '_'));
    before.map_or(0, |(at, letter)| at + letter.len_utf8())
}

/// A list at the beginning of a text, in brackets or as numbers with commas between them, and what follows it.
fn list_at(text: &str) -> Option<(Value, &str)> {
    if text.starts_with('[') {
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let list = stream.next()?.ok()?;
        return Some((list, text.get(stream.byte_offset()..)?));
    }
    let end = text.find(')')?;
    let list: Value = serde_json::from_str(&format!("[{}]", text.get(..end)?)).ok()?;
    let is_list =
        list.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(Value::is_number));
    is_list.then_some((list, text.get(end..)?))
}

fn over(expression: &str, values: &Value) -> Result<Counted, ToolError> {
    let (numbers, ignored) = numbers(values)?;
    let mut out = String::new();
    let mut rest = expression;
    let mut used = false;
    while let Some((before, function, after)) = next_function(rest) {
        out.push_str(before);
        out.push_str(&applied(function, &numbers)?);
        used = true;
        rest = after;
    }
    out.push_str(rest);
    if let ([only], true) = (numbers.as_slice(), out.trim().eq_ignore_ascii_case(NAME)) {
        (out, used) = (only.written.clone(), true);
    }
    if !used {
        return Err(ToolError::failed("the expression says nothing about `values`").with_hint(
            "say sum(values), average(values), min(values), max(values), median(values) or count(values)",
        ));
    }
    Ok(Counted { expression: out, counted: numbers.len(), ignored })
}

/// The next `name(values)`, what stands before it, and what follows.
fn next_function(text: &str) -> Option<(&str, Function, &str)> {
    for (at, _) in text.match_indices('(') {
        let (head, behind) = (text.get(..at)?, text.get(at + 1..)?);
        let begin = word_start(head);
        let Some(function) = head.get(begin..).and_then(Function::named) else { continue };
        let Some((inside, after)) = behind.split_once(')') else { continue };
        if inside.trim().trim_start_matches('$').eq_ignore_ascii_case(NAME) {
            return Some((head.get(..begin)?, function, after));
        }
    }
    None
}

/// A number as it was written, without anything between its digits.
#[derive(Debug, Clone, PartialEq)]
struct Given {
    written: String,
    size: f64,
}

/// All numbers of a value, and how many other things were in it.
fn numbers(values: &Value) -> Result<(Vec<Given>, usize), ToolError> {
    let mut waiting = vec![values];
    let (mut found, mut ignored) = (Vec::new(), 0_usize);
    while let Some(value) = waiting.pop() {
        if found.len() + ignored > MAX_VALUES {
            let most = grouped(MAX_VALUES);
            return Err(ToolError::failed(format!("there are more than {most} values")));
        }
        match value {
            Value::Array(items) => waiting.extend(items.iter().rev()),
            Value::Number(number) => found.push(given(number.to_string())),
            Value::String(text) => match number_in(text) {
                Some(written) => found.push(given(written)),
                None => ignored += 1,
            },
            // A cell of a table, with where it stands.
            Value::Object(cell) if cell.contains_key("value") => waiting.extend(cell.get("value")),
            Value::Null | Value::Bool(_) | Value::Object(_) => ignored += 1,
        }
    }
    Ok((found, ignored))
}

fn given(written: String) -> Given {
    let size = written.parse().unwrap_or(f64::NAN);
    Given { written, size }
}

/// A text that is a number and nothing else; thousands may be set apart.
fn number_in(text: &str) -> Option<String> {
    let text = text.trim();
    let plain = if text.contains(',') { without_groups(text)? } else { text.to_owned() };
    let number: Number = serde_json::from_str(plain.strip_prefix('+').unwrap_or(&plain)).ok()?;
    Some(number.to_string())
}

/// `18,420.5` as `18420.5`; nothing where the commas do not set thousands apart.
fn without_groups(text: &str) -> Option<String> {
    let (whole, rest) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let mut groups = whole.split(',');
    let first = groups.next()?.trim_start_matches(['-', '+']);
    let fits = (1..=3).contains(&first.len()) && groups.all(|group| group.len() == 3);
    let plain = whole.replace(',', "");
    fits.then(|| rest.map_or(plain.clone(), |rest| format!("{plain}.{rest}")))
}

/// What a function makes of the numbers, as a part of an expression.
fn applied(function: Function, numbers: &[Given]) -> Result<String, ToolError> {
    if function == Function::Count {
        return Ok(numbers.len().to_string());
    }
    if numbers.is_empty() {
        return Err(ToolError::failed("there is no number among the values")
            .with_hint("give numbers: `values` may be a list, or a reference to one"));
    }
    let ordered = || {
        let mut ordered: Vec<&Given> = numbers.iter().collect();
        ordered.sort_by(|one, other| one.size.partial_cmp(&other.size).unwrap_or(Ordering::Equal));
        ordered
    };
    let at = |place: usize| ordered().get(place).map(|given| given.written.clone()).unwrap_or_default();
    let middle = numbers.len() / 2;
    Ok(match function {
        Function::Sum => format!("({})", sum(numbers)?),
        Function::Average => format!("(({}) / {})", sum(numbers)?, numbers.len()),
        Function::Minimum => format!("({})", at(0)),
        Function::Maximum => format!("({})", at(numbers.len() - 1)),
        Function::Median if numbers.len() % 2 == 1 => format!("({})", at(middle)),
        Function::Median => format!("(({} + {}) / 2)", at(middle - 1), at(middle)),
        Function::Count => numbers.len().to_string(),
    })
}

/// The exact sum, as it is written in decimals.
fn sum(numbers: &[Given]) -> Result<String, ToolError> {
    let mut total: i128 = 0;
    for number in numbers {
        let units = units(&number.written).and_then(|units| total.checked_add(units));
        total = units.ok_or_else(|| {
            ToolError::failed("a number is too large or too small to be added up exactly")
                .with_hint("round the values first")
        })?;
    }
    let digits = format!("{:0>width$}", total.unsigned_abs(), width = SCALE + 1);
    let (whole, fraction) = digits.split_at_checked(digits.len() - SCALE).unwrap_or((&digits, ""));
    let sign = if total < 0 { "-" } else { "" };
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    Ok(format!("{sign}{whole}{point}{fraction}"))
}

/// A decimal number in units of the last place that is counted.
fn units(written: &str) -> Option<i128> {
    let (mantissa, exponent) = match written.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (written, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}");
    if digits.len() > MAX_DIGITS {
        return None;
    }
    let shift = i32::try_from(SCALE).ok()? - i32::try_from(fraction.len()).ok()? + exponent;
    let number: i128 = digits.parse().ok()?;
    if number == 0 {
        return Some(0);
    }
    number.checked_mul(10_i128.checked_pow(u32::try_from(shift).ok()?)?)
}

#[cfg(test)]
#[path = "values_tests.rs"]
mod tests;
