//! Aggregate functions over a list: replaces `sum(values)` in an expression with the exact number.

use std::cmp::Ordering;

use serde_json::{Number, Value};
use toolyard_core::{ToolError, group_digits};

const MAX_VALUES: usize = 1_000_000;
/// Longer expressions are not searched for lists such as `sum([1, 2])`.
const MAX_SEARCHED_EXPRESSION_BYTES: usize = 4 << 20;
/// The name of the list in an expression.
const LIST_NAME: &str = "values";
/// Numbers with more digits are not summed.
const MAX_DIGITS: usize = 30;
/// Sums are exact to this many decimal places.
const DECIMAL_PLACES: usize = 18;

/// An expression whose aggregate functions are replaced by their results.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExpandedExpression {
    pub(super) expression: String,
    /// How many values are numbers.
    pub(super) counted: usize,
    /// How many values are not.
    pub(super) ignored: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aggregate {
    Sum,
    Average,
    Minimum,
    Maximum,
    Count,
    Median,
}

impl Aggregate {
    fn from_name(name: &str) -> Option<Self> {
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

/// Replaces aggregate functions with their results; `None` if the expression has none.
pub(super) fn expand_aggregates(
    expression: &str,
    values: Option<&Value>,
) -> Result<Option<ExpandedExpression>, ToolError> {
    match values {
        Some(values) => expand_named_list(&add_parentheses(expression), values).map(Some),
        None => expand_inline_lists(expression),
    }
}

/// Rewrites `sum`, `sum values` and `sum of values` as `sum(values)`.
fn add_parentheses(expression: &str) -> String {
    let mut words = expression.split_whitespace().filter(|word| !["of", "the", "all"].contains(word));
    let (first, second, third) = (words.next(), words.next(), words.next());
    let names_list = second.is_none_or(|word| word.eq_ignore_ascii_case(LIST_NAME));
    match first {
        Some(name) if Aggregate::from_name(name).is_some() && names_list && third.is_none() => {
            format!("{name}({LIST_NAME})")
        }
        _ => expression.to_owned(),
    }
}

/// Replaces every `sum([1, 2])` and `sum(1, 2)` of an expression with its result.
fn expand_inline_lists(expression: &str) -> Result<Option<ExpandedExpression>, ToolError> {
    if expression.len() > MAX_SEARCHED_EXPRESSION_BYTES {
        return Ok(None);
    }
    let mut expanded = ExpandedExpression { expression: String::new(), counted: 0, ignored: 0 };
    let mut rest = expression.trim().trim_start_matches('=');
    let mut used = false;
    while let Some((before, function, values, after)) = next_call(rest, parse_inline_list) {
        let (numbers, ignored) = collect_numbers(&values)?;
        expanded.expression.push_str(before);
        expanded.expression.push_str(&apply(function, &numbers)?);
        expanded.counted += numbers.len();
        expanded.ignored += ignored;
        used = true;
        rest = after;
    }
    expanded.expression.push_str(rest);
    Ok(used.then_some(expanded))
}

/// The next aggregate function whose argument `parse` accepts, with the text before and after the call. `parse` gets the
/// text after the opening parenthesis and returns the argument and the text after the closing one.
fn next_call<'t, T>(
    text: &'t str,
    parse: impl Fn(&'t str) -> Option<(T, &'t str)>,
) -> Option<(&'t str, Aggregate, T, &'t str)> {
    text.match_indices('(').find_map(|(at, _)| {
        let (head, inside) = (text.get(..at)?, text.get(at + 1..)?);
        let name_start = last_word_start(head);
        let function = Aggregate::from_name(head.get(name_start..)?)?;
        let (argument, after) = parse(inside)?;
        Some((head.get(..name_start)?, function, argument, after))
    })
}

/// Where the last word of a text begins; the end of the text if it does not end in a word.
fn last_word_start(text: &str) -> usize {
    let before =
        text.char_indices().rev().find(|(_, letter)| !(letter.is_ascii_alphanumeric() || *letter == '_'));
    before.map_or(0, |(at, letter)| at + letter.len_utf8())
}

/// Parses a list up to the closing parenthesis, in brackets or as comma-separated numbers; returns it and the rest.
fn parse_inline_list(text: &str) -> Option<(Value, &str)> {
    let text = text.trim_start();
    if text.starts_with('[') {
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let list = stream.next()?.ok()?;
        return Some((list, text.get(stream.byte_offset()..)?.trim_start().strip_prefix(')')?));
    }
    let (inside, after) = text.split_once(')')?;
    // Commas with and without spaces: those without may separate thousands, as in `sum(1,234, 5,678)`.
    let spaced = inside.split(',').skip(1).filter(|item| item.starts_with(' ')).count();
    if spaced > 0 && spaced < inside.matches(',').count() {
        return None;
    }
    let list: Value = serde_json::from_str(&format!("[{inside}]")).ok()?;
    let is_list =
        list.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(Value::is_number));
    is_list.then_some((list, after))
}

/// Accepts the name of the list up to the closing parenthesis; returns the rest.
fn parse_list_name(text: &str) -> Option<((), &str)> {
    let (inside, after) = text.split_once(')')?;
    inside.trim().trim_start_matches('$').eq_ignore_ascii_case(LIST_NAME).then_some(((), after))
}

/// Replaces every `sum(values)` of an expression with its result.
fn expand_named_list(expression: &str, values: &Value) -> Result<ExpandedExpression, ToolError> {
    let (numbers, ignored) = collect_numbers(values)?;
    let mut expanded = String::new();
    let mut rest = expression;
    let mut used = false;
    while let Some((before, function, (), after)) = next_call(rest, parse_list_name) {
        expanded.push_str(before);
        expanded.push_str(&apply(function, &numbers)?);
        used = true;
        rest = after;
    }
    expanded.push_str(rest);
    if let ([only], true) = (numbers.as_slice(), expanded.trim().eq_ignore_ascii_case(LIST_NAME)) {
        (expanded, used) = (only.decimal_text.clone(), true);
    }
    if !used {
        return Err(ToolError::failed("the expression does not use `values`").with_hint(
            "use sum(values), average(values), min(values), max(values), median(values) or count(values)",
        ));
    }
    Ok(ExpandedExpression { expression: expanded, counted: numbers.len(), ignored })
}

/// A number as decimal text without thousands separators, and as a float for comparisons.
#[derive(Debug, Clone, PartialEq)]
struct DecimalNumber {
    decimal_text: String,
    approximation: f64,
}

/// All numbers of a value, and how many of its other elements were ignored.
fn collect_numbers(values: &Value) -> Result<(Vec<DecimalNumber>, usize), ToolError> {
    let mut stack = vec![values];
    let (mut found, mut ignored) = (Vec::new(), 0_usize);
    while let Some(value) = stack.pop() {
        if found.len() + ignored > MAX_VALUES {
            let limit = group_digits(MAX_VALUES);
            return Err(ToolError::failed(format!("there are more than {limit} values")));
        }
        match value {
            Value::Array(items) => stack.extend(items.iter().rev()),
            Value::Number(number) => found.push(DecimalNumber::new(number.to_string())),
            Value::String(text) => match parse_number(text) {
                Some(decimal_text) => found.push(DecimalNumber::new(decimal_text)),
                None => ignored += 1,
            },
            // A spreadsheet cell: its value beside its address.
            Value::Object(cell) if cell.contains_key("value") => stack.extend(cell.get("value")),
            Value::Null | Value::Bool(_) | Value::Object(_) => ignored += 1,
        }
    }
    Ok((found, ignored))
}

impl DecimalNumber {
    fn new(decimal_text: String) -> Self {
        let approximation = decimal_text.parse().unwrap_or(f64::NAN);
        Self { decimal_text, approximation }
    }
}

/// Parses a text that is a number, with or without thousands separators; returns it without them.
fn parse_number(text: &str) -> Option<String> {
    let text = text.trim();
    let plain = if text.contains(',') { remove_thousands_separators(text)? } else { text.to_owned() };
    let number: Number = serde_json::from_str(plain.strip_prefix('+').unwrap_or(&plain)).ok()?;
    Some(number.to_string())
}

/// `18,420.5` as `18420.5`; `None` if the commas do not separate thousands.
fn remove_thousands_separators(text: &str) -> Option<String> {
    let (whole, rest) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let mut groups = whole.split(',');
    let first = groups.next()?.trim_start_matches(['-', '+']);
    let is_grouped = (1..=3).contains(&first.len()) && groups.all(|group| group.len() == 3);
    let plain = whole.replace(',', "");
    is_grouped.then(|| rest.map_or(plain.clone(), |rest| format!("{plain}.{rest}")))
}

/// The result of an aggregate function, in parentheses for use inside an expression.
fn apply(function: Aggregate, numbers: &[DecimalNumber]) -> Result<String, ToolError> {
    if function == Aggregate::Count {
        return Ok(numbers.len().to_string());
    }
    if numbers.is_empty() {
        return Err(ToolError::failed("`values` contains no number")
            .with_hint("`values` may be a list of numbers, or a reference to one"));
    }
    let sorted = || {
        let mut sorted: Vec<&DecimalNumber> = numbers.iter().collect();
        sorted.sort_by(|one, other| {
            one.approximation.partial_cmp(&other.approximation).unwrap_or(Ordering::Equal)
        });
        sorted
    };
    let nth_smallest =
        |index: usize| sorted().get(index).map(|number| number.decimal_text.clone()).unwrap_or_default();
    let middle = numbers.len() / 2;
    Ok(match function {
        Aggregate::Sum => format!("({})", sum(numbers)?),
        Aggregate::Average => format!("(({}) / {})", sum(numbers)?, numbers.len()),
        Aggregate::Minimum => format!("({})", nth_smallest(0)),
        Aggregate::Maximum => format!("({})", nth_smallest(numbers.len() - 1)),
        Aggregate::Median if numbers.len() % 2 == 1 => format!("({})", nth_smallest(middle)),
        Aggregate::Median => format!("(({} + {}) / 2)", nth_smallest(middle - 1), nth_smallest(middle)),
        Aggregate::Count => numbers.len().to_string(),
    })
}

/// The exact sum in decimal notation.
fn sum(numbers: &[DecimalNumber]) -> Result<String, ToolError> {
    let mut total: i128 = 0;
    for number in numbers {
        let units = scaled_integer(&number.decimal_text).and_then(|units| total.checked_add(units));
        total = units.ok_or_else(|| {
            ToolError::failed("a number is too large or too precise for an exact sum")
                .with_hint("round the values first")
        })?;
    }
    let digits = format!("{:0>width$}", total.unsigned_abs(), width = DECIMAL_PLACES + 1);
    let (whole, fraction) = digits.split_at_checked(digits.len() - DECIMAL_PLACES).unwrap_or((&digits, ""));
    let sign = if total < 0 { "-" } else { "" };
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    Ok(format!("{sign}{whole}{point}{fraction}"))
}

/// A decimal number times ten to the power of [`DECIMAL_PLACES`]; `None` if that is not an integer or too large.
fn scaled_integer(decimal_text: &str) -> Option<i128> {
    let (mantissa, exponent) = match decimal_text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (decimal_text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}");
    if digits.len() > MAX_DIGITS {
        return None;
    }
    let shift = i32::try_from(DECIMAL_PLACES).ok()? - i32::try_from(fraction.len()).ok()? + exponent;
    let number: i128 = digits.parse().ok()?;
    if number == 0 {
        return Some(0);
    }
    number.checked_mul(10_i128.checked_pow(u32::try_from(shift).ok()?)?)
}

#[cfg(test)]
#[path = "aggregate_tests.rs"]
mod tests;
