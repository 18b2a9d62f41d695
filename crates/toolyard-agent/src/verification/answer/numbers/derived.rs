//! Numbers that follow from results by simple arithmetic: sums, differences, means, shares and products.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    super::text::words,
    moments::moments,
    scan::{Number, NumberForm, has_measure, is_in_moment, numbers},
};

/// Values of one group at most; of more, only sum and mean are formed.
const MAX_PAIRED_VALUES: usize = 24;
/// Up to so many values of results may be combined without being named in the answer: a reader sees which ones they are.
const MAX_UNNAMED_OPERANDS: usize = 3;
/// Of a request and results, how many values are combined with each other at most.
const MAX_COMBINED_VALUES: usize = 40;

/// Months, weeks, days and hours that a rate may be broken down to.
const PERIODS: [f64; 6] = [12.0, 52.0, 30.0, 365.0, 7.0, 24.0];
/// Which operations the words of a sentence speak of.
const SUM_WORDS: &str = "total totals totalling totaling together sum sums combined altogether overall all plus worth adds added \
    both cumulative aggregate whole";
const DIFFERENCE_WORDS: &str = "more less fewer below above under over difference faster slower cheaper dearer saves saving \
    savings saved save left remaining remain remains short ahead behind higher lower than from gap drop dropped increase \
    increased rise rose up down by wins beats rest other others another later earlier longer shorter after before beyond exceeds apart freed frees reduced smaller bigger larger shrank shrunk grew fell lost gained away";
const MEAN_WORDS: &str = "average averages averaged averaging mean avg per each every apiece typical";
const PRODUCT_WORDS: &str =
    "times each total cost costs worth for at per comes altogether price multiplied amount amounts";
const CHINESE_SUMS: [&str; 7] = ["合计", "共", "总", "加起来", "累计", "加上", "全部"];
const CHINESE_DIFFERENCES: &str = "其差多少省剩高低快慢比降涨增减余早晚长短超缺便宜";
const CHINESE_MEANS: [&str; 3] = ["平均", "均", "每"];

/// The numbers of a request and of results, by what they have in common.
#[derive(Debug, Default)]
pub(super) struct Quantities {
    requested: Vec<f64>,
    asks_for_sum: bool,
    steps: usize,
    /// Fields of the same name, columns, and numbers of one record or line.
    groups: BTreeMap<String, Vec<f64>>,
    rows: Vec<Vec<f64>>,
}

impl Quantities {
    pub(super) fn add_request(&mut self, text: &str) {
        let lower = text.to_lowercase();
        self.asks_for_sum = [
            "how much",
            "how many",
            "altogether",
            "total",
            "sum of",
            "add up",
            "sum the",
            "多少",
            "合计",
            "一共",
            "总",
        ]
        .iter()
        .any(|words| lower.contains(words));
        let numbers = numbers(text);
        let moments = moments(text);
        let counted =
            numbers.iter().filter(|number| has_measure(text, number) && !is_in_moment(number, &moments));
        self.requested.extend(counted.filter_map(|number| number.values.first().copied()));
    }

    pub(super) fn add_result(&mut self, value: &Value) {
        let mut of_step = Self::default();
        of_step.add("", value);
        self.steps += 1;
        for (key, values) in of_step.groups {
            self.groups.entry(key.clone()).or_default().extend(&values);
            self.groups.insert(format!("{key} of {}", self.steps), values);
        }
        self.rows.extend(of_step.rows);
    }

    fn add(&mut self, key: &str, value: &Value) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                self.groups.entry(key.to_owned()).or_default().extend(number.as_f64());
            }
            Value::String(text) => match serde_json::from_str::<Value>(text) {
                Ok(inner @ (Value::Array(_) | Value::Object(_))) => self.add(key, &inner),
                _ => self.add_text(key, text),
            },
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    // The cells of a table belong to their column.
                    match item {
                        Value::Array(cells) => {
                            self.rows.push(cells.iter().filter_map(scalar).collect());
                            for (column, cell) in cells.iter().enumerate() {
                                self.add(&format!("{key}/{column}"), cell);
                            }
                        }
                        Value::Object(_) | Value::String(_) | Value::Number(_) => self.add(key, item),
                        _ => self.add(&format!("{key}/{at}"), item),
                    }
                }
            }
            Value::Object(entries) => {
                self.rows.push(entries.values().filter_map(scalar).collect());
                entries.iter().for_each(|(key, item)| self.add(key, item));
            }
        }
    }

    /// The numbers of each line are a record; those at the same place of similar lines are a column.
    fn add_text(&mut self, key: &str, text: &str) {
        for line in text.lines() {
            let row = values_of(line);
            for (column, value) in row.iter().enumerate() {
                let name = format!("{key}/{}/{column}", row.len());
                self.groups.entry(name).or_default().push(*value);
            }
            self.rows.push(row);
        }
    }

    /// Whether an operation that the sentence speaks of yields the value. Of two values that are combined, one must be known to
    /// the reader (`is_named`) or be a number of the request: among many numbers, some pair yields almost any value.
    pub(super) fn can_derive(
        &self,
        value: f64,
        tolerance: f64,
        form: NumberForm,
        sentence: &str,
        is_named: &dyn Fn(f64) -> bool,
    ) -> bool {
        let is_named = |one: f64| is_named(one) || self.requested.contains(&one);
        // Each value is in two groups: of its step and of all steps.
        let are_few = self.groups.values().flatten().nth(2 * MAX_UNNAMED_OPERANDS).is_none();
        let may_combine = |one: f64, other: f64| are_few || is_named(one) || is_named(other);
        let words = words(sentence);
        let says = |list: &str| words.iter().any(|word| list.split_whitespace().any(|known| known == word));
        let has = |list: &[&str]| list.iter().any(|word| sentence.contains(word));
        let is_near = |known: f64| known.is_finite() && (known - value).abs() <= tolerance;
        if form == NumberForm::Percentage {
            return self.shares(may_combine).into_iter().any(|share| is_near(share.abs()));
        }
        if sentence.contains(" times ") || sentence.contains('倍') {
            let ratios = self.shares(may_combine);
            if ratios.into_iter().any(|share| (share / 100.0 - value).abs() <= tolerance.max(0.4)) {
                return true;
            }
        }
        let sums = says(SUM_WORDS) || has(&CHINESE_SUMS) || sentence.contains(['+', '=']);
        let differs =
            says(DIFFERENCE_WORDS) || sentence.contains(|letter| CHINESE_DIFFERENCES.contains(letter));
        let averages = says(MEAN_WORDS) || has(&CHINESE_MEANS);
        let multiplies = sums || averages || says(PRODUCT_WORDS) || sentence.contains(['×', '*', 'x']);
        let sums = sums || self.asks_for_sum;
        self.lists().any(|group| {
            let sum: f64 = group.iter().sum();
            (group.len() > 1 && ((sums && is_near(sum)) || (averages && is_near(sum / count(group)))))
                || (differs && self.known().any(|whole| is_near(whole - sum) && may_combine(whole, sum)))
                || pairs(group).any(|(one, other)| {
                    may_combine(one, other)
                        && ((sums && is_near(one + other)) || (differs && is_near((one - other).abs())))
                })
        }) || (averages
            && self
                .groups
                .values()
                .flatten()
                .any(|known| PERIODS.iter().any(|period| is_near(known / period))))
            || self.combined().any(|(asked, known)| {
                (sums && is_near(known + asked))
                    || (differs && is_near((known - asked).abs()))
                    || (differs
                        && [1.0 + asked / 100.0, 1.0 - asked / 100.0]
                            .iter()
                            .any(|rate| is_near(known * rate)))
                    || (multiplies && is_near(known * asked))
                    || (averages && (is_near(known / asked) || is_near(asked / known)))
            })
            || (multiplies
                && self.rows.iter().any(|row| {
                    pairs(row).any(|(one, other)| may_combine(one, other) && is_near(one * other))
                }))
    }

    /// Groups and rows of several values.
    fn lists(&self) -> impl Iterator<Item = &Vec<f64>> {
        self.groups.values().chain(&self.rows).chain([&self.requested])
    }

    /// The first numbers of the results; long results are not combined with everything.
    fn known(&self) -> impl Iterator<Item = f64> {
        self.groups.values().flatten().copied().take(MAX_COMBINED_VALUES)
    }

    /// Numbers of the request with those of the results.
    fn combined(&self) -> impl Iterator<Item = (f64, f64)> {
        self.known().flat_map(|known| self.requested.iter().map(move |asked| (*asked, known)))
    }

    /// What is a percentage of what: of each other, of their sum, and by how much they differ.
    fn shares(&self, may_combine: impl Fn(f64, f64) -> bool) -> Vec<f64> {
        let percent = |one: f64, other: f64| [100.0 * one / other, 100.0 * (one - other) / other];
        let mut found: Vec<f64> = self.combined().flat_map(|(asked, known)| percent(known, asked)).collect();
        for group in self.lists() {
            let sum: f64 = group.iter().sum();
            if group.len() > 1 {
                found.extend(group.iter().map(|value| 100.0 * value / sum));
            }
            let combined = pairs(group).filter(|(one, other)| may_combine(*one, *other));
            found.extend(
                combined.flat_map(|(one, other)| [percent(one, other), percent(other, one)]).flatten(),
            );
        }
        found
    }
}

/// A known value that an answer tells.
#[derive(Debug, Clone, Copy)]
pub(super) struct StatedValue {
    pub(super) value: f64,
    /// Whether it stands in the same sentence as what may follow from it.
    pub(super) is_near: bool,
}

/// Whether a number follows from two values that the answer tells, so that a reader can check it: exactly by a sum, difference or
/// product, and rounded by a share of what stands in the same sentence.
pub(super) fn follows_from(number: &Number, told: &[StatedValue]) -> bool {
    let rounding = number.precision / 2.0 + 1e-9;
    let exact = if number.decimals > 0 { rounding } else { 1e-6 };
    let follows = |value: f64| {
        told.iter().enumerate().any(|(at, one)| {
            told.iter().enumerate().filter(|(other_at, _)| *other_at != at).any(|(_, other)| {
                let (a, b) = (one.value, other.value);
                let is = |result: f64, tolerance: f64| (result - value).abs() <= tolerance;
                let is_exact = number.form != NumberForm::Percentage
                    && (is(a + b, exact) || is(a - b, exact) || is(a * b, exact) || is(a / b, 1e-6));
                let is_share = one.is_near
                    && other.is_near
                    && match number.form {
                        NumberForm::Percentage => {
                            is(100.0 * a / b, rounding) || is((100.0 * (a - b) / b).abs(), rounding)
                        }
                        _ => number.decimals > 0 && is(a / b, rounding),
                    };
                is_exact || is_share
            })
        })
    };
    number.values.iter().any(|value| *value > 1.0 && follows(*value))
}

fn count(values: &[f64]) -> f64 {
    values.len() as f64
}

/// All pairs of the values, if they are few.
fn pairs(values: &[f64]) -> impl Iterator<Item = (f64, f64)> {
    let few = if values.len() <= MAX_PAIRED_VALUES { values } else { &[] };
    few.iter().enumerate().flat_map(move |(at, one)| few.iter().skip(at + 1).map(move |other| (*one, *other)))
}

fn scalar(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// The numbers in digits; numerals in words may be part of a name.
fn values_of(text: &str) -> Vec<f64> {
    let numbers = numbers(text);
    let moments = moments(text);
    let in_digits =
        numbers.iter().filter(|number| number.form != NumberForm::Word && !is_in_moment(number, &moments));
    in_digits.filter_map(|number| number.values.first().copied()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn simple_arithmetic_explains_a_number() {
        let mut known = Quantities::default();
        known.add_request("compared with the plan of 9,000");
        known.add_result(
            &json!([{"name": "a", "amount": 32000, "n": 2}, {"name": "b", "amount": 45500, "n": 4}]),
        );
        known.add_result(&json!({"value": 8250}));
        let can_derive =
            |value, sentence| known.can_derive(value, 0.001, NumberForm::Digits, sentence, &|_| true);
        assert!(can_derive(77500.0, "together worth 77,500") && can_derive(13500.0, "13,500 more"));
        assert!(can_derive(750.0, "750 below the plan") && can_derive(38750.0, "38,750 on average"));
        assert!(can_derive(64000.0, "64,000 in total") && !can_derive(77500.0, "the third has 77,500"));
        let of_silent =
            |value, sentence| known.can_derive(value, 0.001, NumberForm::Digits, sentence, &|_| false);
        assert!(of_silent(77500.0, "together worth 77,500"), "the sum of a whole list");
        assert!(!of_silent(64000.0, "64,000 in total"), "a product of numbers that nobody told");
        assert!(known.can_derive(8.3, 0.05, NumberForm::Percentage, "8.3 % below", &|_| false));
        assert!(!known.can_derive(14.0, 0.5, NumberForm::Percentage, "14 % below", &|_| true));
    }
}
