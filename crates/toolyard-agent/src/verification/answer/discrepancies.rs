//! Results of changes that differ from what the call asked for, and whether an answer mentions it.

use serde_json::{Map, Value};

use super::{
    UnfinishedStep,
    denial::failed_state,
    fact::{StepFact, leaves},
    text::{name_words, words},
};

/// Words of a state in which what was asked for is not in effect yet. "Pending" or "queued" alone is how most changes begin.
const WAITING_WORDS: &str = "payment review reviewing approval moderation unconfirmed required action";
const CHINESE_WAITING: [&str; 6] = ["审核", "待支付", "待付款", "待审", "待确认", "仅自己可见"];
/// Words of an answer that tells that something is not in effect yet.
const TELLING_WORDS: &str = "pending awaiting await waiting wait waits review reviewed approval approve approved until once still \
    submitted pay payment required remaining left more partially";
const CHINESE_TELLING: [&str; 8] = ["待", "审核", "等", "尚", "还需", "还有", "剩", "支付"];
/// Flags of results that stopped early.
const TRUNCATION_KEYS: &str = "istruncated truncated hasmore";
/// Keys whose value in a result need not be that of the call.
const UNCOMPARED_KEYS: &str = "id ids limit page offset size count total timeout version rev revision index number position score order priority";

/// What the result of a change says beside or against what was asked for, and an answer must tell.
#[derive(Debug, PartialEq, Eq)]
struct Discrepancy {
    text: String,
    /// The value that an answer tells; any word of waiting or denial, too.
    actual: Option<String>,
}

/// Steps whose result differs from the call in a way that the answer does not mention.
pub(super) fn undisclosed_discrepancies(steps: &[StepFact], answer: &str) -> Vec<UnfinishedStep> {
    let answer_words = words(answer);
    let says = |list: &str| answer_words.iter().any(|word| is_listed(list, word));
    let tells_state = says(TELLING_WORDS)
        || answer_words.iter().any(|word| word.ends_with("n't") || is_listed("not unable failed", word))
        || ["未", "没", "无法", "不"].iter().any(|word| answer.contains(word))
        || CHINESE_TELLING.iter().any(|word| answer.contains(word));
    let lower = answer.to_lowercase();
    let is_told = |discrepancy: &Discrepancy| {
        tells_state || discrepancy.actual.as_deref().is_some_and(|actual| mentions_value(&lower, actual))
    };
    let effective = steps.iter().filter(|step| step.is_effective());
    let untold = effective.filter_map(|step| {
        let found = discrepancies(step).into_iter().find(|discrepancy| !is_told(discrepancy))?;
        let reason = format!("its result says: {}", found.text);
        Some(UnfinishedStep { step: step.id.clone(), tool: step.tool.clone(), reason })
    });
    untold.chain(failed_afterwards(steps).filter(|_| !tells_state)).collect()
}

/// Steps that read, after a change, that what was changed has failed: a deployment that was created and whose build ended in an
/// error. Both name the same id.
fn failed_afterwards(steps: &[StepFact]) -> impl Iterator<Item = UnfinishedStep> {
    let is_id = |text: &String| {
        text.len() >= 3 && text.contains(|letter: char| letter.is_ascii_digit()) && !text.contains(' ')
    };
    let reads = steps.iter().enumerate().filter(|(_, step)| step.is_done() && !step.changes);
    reads.filter_map(move |(at, read)| {
        let ids: Vec<String> = leaves(&read.result).into_iter().filter(is_id).collect();
        let mut changed = steps.iter().take(at).filter(|step| step.is_effective());
        let is_same = changed.any(|step| leaves(&step.result).iter().any(|leaf| ids.contains(leaf)));
        let reason = is_same.then(|| failed_state(&read.result)).flatten()?;
        Some(UnfinishedStep { step: read.id.clone(), tool: read.tool.clone(), reason })
    })
}

/// Whether a text has a value; "7" is not in "17:00".
fn mentions_value(text: &str, value: &str) -> bool {
    let is_joined = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_digit());
    text.match_indices(value).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + value.len()..).and_then(|after| after.chars().next());
        let is_number = value.chars().any(|letter| letter.is_ascii_digit());
        !(is_number && (is_joined(before) || is_joined(after)))
    })
}

fn discrepancies(step: &StepFact) -> Vec<Discrepancy> {
    let value = match &step.result {
        Value::String(text) => serde_json::from_str(text).unwrap_or(Value::Null),
        other => other.clone(),
    };
    let mut found = Vec::new();
    let mut entries = Vec::new();
    collect("", &value, &mut entries);
    for (key, value) in &entries {
        found.extend(of_entry(key, value));
    }
    found.extend(other_values(&step.arguments, &entries));
    found.extend(renamed(&step.arguments, &entries));
    found
}

/// The entries of a value with their keys, without arrays of scalars.
fn collect<'a>(key: &'a str, value: &'a Value, found: &mut Vec<(&'a str, &'a Value)>) {
    match value {
        Value::Object(entries) => entries.iter().for_each(|(key, value)| {
            if matches!(value, Value::Array(_)) {
                found.push((key, value));
            }
            collect(key, value, found);
        }),
        Value::Array(items) => {
            items.iter().filter(|item| item.is_object()).for_each(|item| collect(key, item, found));
        }
        scalar => found.push((key, scalar)),
    }
}

fn of_entry(key: &str, value: &Value) -> Option<Discrepancy> {
    let key_words = name_words(key);
    let is_key = |list: &str| key_words.iter().any(|word| is_listed(list, word));
    let discrepancy = |text: String| Some(Discrepancy { text, actual: None });
    match value {
        Value::String(text) => {
            let is_waiting = name_words(text).iter().any(|word| is_listed(WAITING_WORDS, word))
                || CHINESE_WAITING.iter().any(|word| text.contains(word));
            let is_state = is_key("status state stage visible visibility") && text.chars().count() <= 40;
            if is_state && is_waiting { discrepancy(format!("{key}: {text}")) } else { None }
        }
        Value::Bool(true) if is_listed(TRUNCATION_KEYS, &key_words.concat()) => {
            discrepancy(format!("{key}: true"))
        }
        Value::Array(items) if is_key("warnings warning") => {
            discrepancy(items.first()?.as_str()?.chars().take(120).collect())
        }
        _ => None,
    }
}

/// Values that the result gives for an argument, and that are other ones: 20:00 for 19:00, no assignee for one.
fn other_values(arguments: &Map<String, Value>, entries: &[(&str, &Value)]) -> Vec<Discrepancy> {
    let mut found = Vec::new();
    for (key, passed) in arguments {
        if name_words(key).iter().any(|word| is_listed(UNCOMPARED_KEYS, word)) {
            continue;
        }
        let mut same = entries.iter().filter(|(other, _)| other == key);
        // A list of records has the key several times, and a change of one of them is not told apart.
        let (Some((_, actual)), None) = (same.next(), same.next()) else { continue };
        if let Some(actual_text) = other_value(key, passed, actual) {
            let actual = Some(actual_text.to_lowercase()).filter(|text| text != "null");
            found.push(Discrepancy { text: format!("{key}: {actual_text}"), actual });
        }
    }
    found
}

fn other_value(key: &str, passed: &Value, actual: &Value) -> Option<String> {
    match (passed, actual) {
        (Value::Number(one), Value::Number(other)) => {
            (one.as_f64() != other.as_f64()).then(|| other.to_string())
        }
        (Value::String(one), Value::Null) => (!one.trim().is_empty()).then(|| "null".to_owned()),
        (Value::String(one), Value::String(other)) => {
            if let (Some(passed), Some(actual)) = (time_of_day(one), time_of_day(other)) {
                return (passed != actual).then_some(actual);
            }
            let is_state = name_words(key).iter().any(|word| is_listed("status state visibility", word));
            let (one, lower) = (one.to_lowercase(), other.to_lowercase());
            let stem = |text: &str| text.chars().take(4).collect::<String>();
            (is_state && stem(&one) != stem(&lower)).then(|| other.clone())
        }
        _ => None,
    }
}

/// `20:00` of `2025-05-09 20:00`; none for a time with a zone, which may be another spelling of the same.
fn time_of_day(text: &str) -> Option<String> {
    let has_zone = text.ends_with('Z') || text.contains('+') || text.matches('-').count() > 2;
    let (before, after) = text.split_once(':')?;
    let hour: String = before.chars().rev().take(2).collect::<Vec<_>>().into_iter().rev().collect();
    let minute: String = after.chars().take(2).collect();
    let is_number = |text: &str| text.len() == 2 && text.chars().all(|letter| letter.is_ascii_digit());
    (!has_zone && is_number(&hour) && is_number(&minute)).then(|| format!("{hour}:{minute}"))
}

/// A file that got another name than the call asked for: `report (1).docx` for `report.docx`.
fn renamed(arguments: &Map<String, Value>, entries: &[(&str, &Value)]) -> Vec<Discrepancy> {
    let passed = leaves(&Value::Object(arguments.clone()));
    let names = passed.iter().filter_map(|text| {
        let name = text.rsplit(['/', '\\']).next()?;
        name.rsplit_once('.')
            .filter(|(stem, extension)| !stem.is_empty() && (1..=5).contains(&extension.len()))
    });
    let mut found = Vec::new();
    for (stem, extension) in names {
        let is_variant = |text: &str| {
            let name = text.rsplit(['/', '\\']).next().unwrap_or_default();
            let middle = name
                .strip_prefix(stem)
                .and_then(|rest| rest.strip_suffix(extension))
                .and_then(|rest| rest.strip_suffix('.'));
            middle.is_some_and(|middle| {
                let inner = middle.trim_matches([' ', '(', ')', '_', '-']);
                !inner.is_empty() && inner.chars().all(|letter| letter.is_ascii_digit())
            })
        };
        let variant = entries.iter().filter_map(|(_, value)| value.as_str()).find(|text| is_variant(text));
        let variant = variant.filter(|text| !passed.iter().any(|passed| passed == text));
        found.extend(variant.map(|text| {
            let name = text.rsplit(['/', '\\']).next().unwrap_or_default();
            Discrepancy { text: text.to_owned(), actual: Some(name.to_lowercase()) }
        }));
    }
    found
}

fn is_listed(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn untold(arguments: &Value, result: Value, answer: &str) -> Vec<String> {
        let step = StepFact {
            tool: "book".to_owned(),
            changes: true,
            arguments: arguments.as_object().unwrap().clone(),
            result,
            ..StepFact::default()
        };
        undisclosed_discrepancies(&[step], answer).into_iter().map(|step| step.reason).collect()
    }

    #[test]
    fn what_a_result_says_against_the_request_must_be_told() {
        let booked = json!({"booked": true, "time": "2025-05-09 20:00"});
        let asked = json!({"time": "2025-05-09 19:00"});
        assert_eq!(
            untold(&asked, booked.clone(), "It is booked for 19:00."),
            ["its result says: time: 20:00"]
        );
        assert!(untold(&asked, booked, "It is booked for 20:00, an hour later.").is_empty());
        let waiting = json!({"reservation": "R1", "status": "payment_required"});
        assert_eq!(untold(&json!({}), waiting.clone(), "Your flat is confirmed.").len(), 1);
        assert!(untold(&json!({}), waiting, "Reserved; it needs payment by 6 pm.").is_empty());
        let renamed = json!({"name": "plan (1).docx"});
        assert_eq!(untold(&json!({"to": "/a/plan.docx"}), renamed, "It is called plan.docx.").len(), 1);
        let ignored = json!({"data": {"assignee": null}, "warnings": ["Unknown user ignored"]});
        assert_eq!(untold(&json!({"assignee": "bea"}), ignored, "Bea is the assignee.").len(), 1);
    }

    #[test]
    fn ordinary_results_have_no_discrepancy() {
        let arguments = json!({"status": "done", "amount": 32, "start": "17:00", "title": "A"});
        let result = json!({"id": 7, "status": "Done", "amount": 32.0, "start": "2025-06-12T17:00:00", "title": "A (x)"});
        assert_eq!(untold(&arguments, result, "Done."), [""; 0]);
        assert_eq!(
            untold(&json!({}), json!({"status": "pending", "id": 1}), "The order is placed."),
            [""; 0]
        );
    }
}
