//! Results of changing calls that say that the change was not made.

use serde_json::{Map, Value};

use super::{
    fact::leaves,
    text::{name_words, words},
};

/// Arguments that make a call a rehearsal, without `_` and `-`.
const REHEARSAL_KEYS: [&str; 8] =
    ["dryrun", "preview", "previewonly", "simulate", "validateonly", "checkonly", "noop", "whatif"];
/// Words of results that deny a change, unless a zero or a negation precedes them.
const FAILURE_WORDS: [&str; 18] = [
    "error",
    "errors",
    "failed",
    "failure",
    "failures",
    "denied",
    "rejected",
    "refused",
    "unauthorized",
    "forbidden",
    "expired",
    "timeout",
    "unable",
    "couldn't",
    "cannot",
    "can't",
    "exception",
    "aborted",
];
/// Passages of results that deny a change.
const FAILURE_PASSAGES: [&str; 25] = [
    "can not",
    "fully booked",
    "sold out",
    "read-only",
    " lacks ",
    "until approved",
    "already exists",
    "does not exist",
    "doesn't exist",
    "no such",
    "statement rolled back",
    "transaction rolled back",
    "no change",
    "not enough",
    "could not",
    "timed out",
    "nothing was",
    "nothing to",
    "no rows",
    "no matching",
    "dry run",
    "dry-run",
    "would be",
    "please sign in",
    "please log in",
];
/// Participles before which "not" denies a change.
const CHANGE_PARTICIPLES: [&str; 24] = [
    "saved",
    "sent",
    "created",
    "updated",
    "deleted",
    "found",
    "written",
    "applied",
    "changed",
    "modified",
    "submitted",
    "merged",
    "moved",
    "allowed",
    "permitted",
    "added",
    "removed",
    "stored",
    "published",
    "posted",
    "renamed",
    "completed",
    "delivered",
    "executed",
];
const CHINESE_FAILURES: [&str; 29] = [
    "已满",
    "只读",
    "未开通",
    "不支持",
    "无权",
    "已存在",
    "不足",
    "未通过",
    "被驳回",
    "失败",
    "错误",
    "出错",
    "未能",
    "未成功",
    "没有成功",
    "无法",
    "被拒绝",
    "已过期",
    "超时",
    "试运行",
    "未保存",
    "未发送",
    "未找到",
    "没有找到",
    "未更改",
    "没有更改",
    "不存在",
    "未写入",
    "未执行",
];
/// Words of a status or state that say that a change was not made.
const FAILED_STATES: &str = "jam jammed stuck bounced undelivered undeliverable blocked held hold skipped ignored unchanged unmodified \
    invalid conflict conflicted partial partially offline unreachable unavailable busy unpaid unsent unconfirmed incomplete \
    waitlisted waitlist disabled suspended insufficient quarantined throttled overdue obstructed disconnected stopped \
    interrupted missing noop none";
/// Keys of flags that say whether the call did its work. Others, such as `archived` or `completed`, are a record's own.
const ACCEPTANCE_KEYS: &str = "accepted applied booked confirmed delivered executed processed saved submitted registered enabled activated";
/// Words of keys that count what goes on or is left over, not what was left out: `remaining_s`.
const MEASURE_WORDS: &str =
    "s sec secs seconds ms min mins minutes hours days time balance quota credits requests tokens";
/// Keys that list or count what was left out.
const LEFT_OUT_KEYS: &str =
    "skipped missing unmatched ignored invalid remaining unchanged undelivered bounced conflicts conflict";
/// Words of keys and texts that count what a call changed.
const EFFECT_COUNTS: [&str; 19] = [
    "row", "affected", "updated", "deleted", "inserted", "modified", "changed", "sent", "removed", "moved",
    "created", "written", "added", "renamed", "copied", "rows", "messages", "files", "records",
];

/// What arguments and result say against the change that a call was to make.
pub(super) fn denied_change(arguments: &Map<String, Value>, result: &Value) -> Option<String> {
    if arguments.iter().any(|(key, value)| is_rehearsal(key, value)) {
        return Some("it was only a dry run".to_owned());
    }
    let reason = match result {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => denied_by_value(&value, arguments),
            _ => denied_by_text(&without_echo(text, arguments)),
        },
        other => denied_by_value(other, arguments),
    };
    reason.map(|reason| format!("its result says: {reason}"))
}

fn is_rehearsal(key: &str, value: &Value) -> bool {
    let key = key.to_lowercase().replace(['_', '-'], "");
    let is_set =
        *value == Value::Bool(true) || value.as_str().is_some_and(|text| text.eq_ignore_ascii_case("true"));
    is_set && REHEARSAL_KEYS.contains(&key.as_str())
}

fn denied_by_value(value: &Value, arguments: &Map<String, Value>) -> Option<String> {
    let mut counts = Vec::new();
    let denial = denied_by_part("", value, arguments, &mut counts).or_else(|| incomplete(&counts, arguments));
    // Zero of one kind says nothing if there are some of another: `{"inserted": 0, "updated": 3}`.
    let is_zero = !counts.is_empty() && counts.iter().all(|(_, count)| *count == 0.0);
    denial.or_else(|| is_zero.then(|| counts.first().map(|(key, _)| format!("{key}: 0"))).flatten())
}

fn denied_by_part(
    key: &str,
    value: &Value,
    arguments: &Map<String, Value>,
    counts: &mut Vec<(String, f64)>,
) -> Option<String> {
    let key_words = name_words(key);
    let is_key = |list: &str| key_words.iter().any(|word| is_listed(list, word));
    let names_effect = key_words.iter().any(|word| EFFECT_COUNTS.contains(&word.as_str()));
    let names_failure = key_words.iter().any(|word| FAILURE_WORDS.contains(&word.as_str()));
    match value {
        // `{"ignored_fields": {"close_date": "…"}}`
        Value::Object(entries) if is_key(LEFT_OUT_KEYS) && !entries.is_empty() => {
            let names: Vec<&str> = entries.keys().map(String::as_str).collect();
            Some(format!("{key}: {}", names.join(", ")))
        }
        Value::Object(entries) => denied_by_code(entries).or_else(|| {
            entries.iter().find_map(|(key, value)| denied_by_part(key, value, arguments, counts))
        }),
        Value::Array(items)
            if (names_failure || is_key(LEFT_OUT_KEYS) || key_words.concat() == "notfound")
                && !items.is_empty() =>
        {
            Some(format!("{key}: {}", items.len()))
        }
        Value::Array(items) => items.iter().find_map(|item| denied_by_part(key, item, arguments, counts)),
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            let is_code = is_listed("exitcode returncode errcode errno exitstatus", &key_words.concat());
            let is_http = is_listed("statuscode httpstatus", &key_words.concat())
                || (matches!(key, "code" | "status") && (400.0..600.0).contains(&number));
            let is_left_out = is_key(LEFT_OUT_KEYS) && !is_key(MEASURE_WORDS);
            let is_failure = (names_failure || is_left_out) && number > 0.0;
            if is_failure || (is_code && number != 0.0) || (is_http && number >= 400.0) {
                return Some(format!("{key}: {number}"));
            }
            if names_effect {
                counts.push((key.to_owned(), number));
            }
            None
        }
        Value::Bool(flag) => {
            let is_success = matches!(key, "ok" | "success" | "succeeded" | "isSuccess") || names_effect;
            // A flag that the call itself passed is what was asked for.
            let is_acceptance =
                is_listed(ACCEPTANCE_KEYS, &key.to_lowercase()) && !arguments.contains_key(key);
            let is_success = is_success || is_acceptance;
            let is_error = names_failure || key == "isError" || is_rehearsal(key, value);
            let denies = (is_success && !flag) || (is_error && *flag) || (key == "merged" && !flag);
            denies.then(|| format!("{key}: {flag}"))
        }
        Value::String(text) if names_failure => (!text.trim().is_empty()).then(|| first_line(text)),
        Value::String(text) if is_key("status state") && is_failed_state(text, arguments) => {
            Some(format!("{key}: {}", first_line(text)))
        }
        Value::String(text) => denied_by_text(&without_echo(text, arguments)),
        Value::Null => None,
    }
}

/// An error code beside a message that does not speak of success: `{"code": 230002, "msg": "Bot can NOT be out of the chat."}`.
fn denied_by_code(entries: &Map<String, Value>) -> Option<String> {
    let code = entries.get("code").or_else(|| entries.get("errcode")).and_then(Value::as_i64)?;
    let message = ["msg", "message", "errmsg"].iter().find_map(|key| entries.get(*key)?.as_str())?;
    let lower = message.to_lowercase();
    let is_good = lower.is_empty()
        || ["ok", "success", "成功", "done", "created", "accepted"].iter().any(|word| lower.contains(word));
    (!matches!(code, 0 | 200..=299) && !is_good).then(|| format!("code {code}: {}", first_line(message)))
}

/// The state of a record that was read, if it is one of failure: `{"readyState": "ERROR"}`.
pub(super) fn failed_state(result: &Value) -> Option<String> {
    let Value::Object(entries) = result else { return None };
    entries.iter().find_map(|(key, value)| {
        let is_state = name_words(key).iter().any(|word| is_listed("status state", word));
        let state = value.as_str().filter(|text| is_state && is_failed_state(text, &Map::new()))?;
        Some(format!("its result says: {key}: {}", first_line(state)))
    })
}

/// Whether a status denies the change; one that the call asked for does not.
fn is_failed_state(status: &str, arguments: &Map<String, Value>) -> bool {
    let state = name_words(status);
    let call = leaves(&Value::Object(arguments.clone())).join(" ").to_lowercase();
    let is_failed = state.iter().any(|word| is_listed(FAILED_STATES, word) && !call.contains(word.as_str()));
    let is_denied = state.first().is_some_and(|word| matches!(word.as_str(), "not" | "no" | "never" | "un"));
    is_failed || is_denied || denying_word(&state)
}

/// Whether a result says that what was started goes on: `{"status": "queued"}`.
pub(super) fn has_open_state(result: &Value) -> bool {
    const OPEN_STATES: &str = "queued pending running scheduled processing waiting awaiting progress";
    let Value::Object(entries) = result else { return false };
    entries.iter().any(|(key, value)| {
        let is_state = name_words(key).iter().any(|word| is_listed("status state", word));
        let words = value.as_str().map(name_words).unwrap_or_default();
        is_state && words.iter().any(|word| is_listed(OPEN_STATES, word))
    })
}

/// Fewer things were changed than the call lists.
fn incomplete(counts: &[(String, f64)], arguments: &Map<String, Value>) -> Option<String> {
    let listed = arguments.values().filter_map(Value::as_array).map(Vec::len).max()?;
    let (key, most) = counts.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let is_short = listed > 1 && counts.len() == 1 && *most > 0.0 && *most < listed as f64;
    is_short.then(|| format!("{key}: {most} of {listed}"))
}

fn is_listed(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
}

/// The text without what the call itself passed, and without the lines of a diff: content is no report.
fn without_echo(text: &str, arguments: &Map<String, Value>) -> String {
    let is_diff = text.contains("@@") && text.contains("+++");
    let lines = text.lines().filter(|line| !is_diff || !line.starts_with(['+', '-', ' ']));
    let mut rest = lines.collect::<Vec<_>>().join("\n");
    for leaf in leaves(&Value::Object(arguments.clone())) {
        if leaf.chars().count() >= 4 {
            rest = rest.replace(&leaf, " ");
        }
    }
    rest
}

fn denied_by_text(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let denies = |line: &&str| {
        FAILURE_PASSAGES.iter().chain(&CHINESE_FAILURES).any(|passage| line.contains(passage))
            || denying_word(&words(line))
            || counts_a_part(&words(line))
    };
    let counts = effect_counts(&lower);
    let is_zero = !counts.is_empty() && counts.iter().all(|count| *count == 0);
    let line = lower.lines().find(denies).or_else(|| lower.lines().next().filter(|_| is_zero));
    line.map(first_line)
}

fn denying_word(words: &[String]) -> bool {
    let word = |at: usize| words.get(at).map(String::as_str).unwrap_or_default();
    let is_zero = |text: &str| matches!(text, "0" | "no" | "without" | "none" | "zero");
    (0..words.len()).any(|at| {
        let before = at.checked_sub(1).map(word).unwrap_or_default();
        if FAILURE_WORDS.contains(&word(at)) {
            return !is_zero(before) && !matches!(word(at + 1), "0" | "none");
        }
        let is_negation = matches!(word(at), "not" | "wasn't" | "weren't" | "isn't" | "never");
        is_negation && (at + 1..at + 4).any(|next| CHANGE_PARTICIPLES.contains(&word(next)))
    })
}

/// "Sent 2 of 3", "2 out of 3".
fn counts_a_part(words: &[String]) -> bool {
    let number = |word: &String| word.parse::<u64>().ok();
    words.iter().enumerate().any(|(at, word)| {
        let rest = words.get(at + 1..).unwrap_or_default();
        let whole = match rest {
            [of, whole, ..] if of == "of" => number(whole),
            [out, of, whole, ..] if out == "out" && of == "of" => number(whole),
            _ => None,
        };
        number(word).zip(whole).is_some_and(|(part, whole)| part < whole)
    })
}

/// The numbers beside words that count what a call changed: "updated 0 rows", "deleted: 3".
fn effect_counts(text: &str) -> Vec<u64> {
    let words = words(&text.replace(['_', '"', '\''], " "));
    let mut counts = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if !EFFECT_COUNTS.contains(&word.as_str()) {
            continue;
        }
        let near = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
        counts.extend(near.filter_map(|near| words.get(near)?.parse::<u64>().ok()));
    }
    counts
}

fn first_line(text: &str) -> String {
    text.trim().lines().next().unwrap_or_default().chars().take(160).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn denial(arguments: &Value, result: &Value) -> Option<String> {
        denied_change(arguments.as_object().unwrap(), result)
    }

    #[test]
    fn results_that_deny_the_change_are_found() {
        for result in [
            json!([{"affected_rows": 0}]),
            json!("Database error: no such column: archived"),
            json!("Successfully deleted: 1 messages\nFailed to delete: 2 messages"),
            json!("Your entries were not saved. Please sign in."),
            json!({"ok": false, "message": "x"}),
            json!({"updated": 0}),
            json!("Updated 0 rows"),
            json!("保存失败"),
            json!("{\"success\": false}"),
            json!({"accepted": false, "reason": "DEVICE_OFFLINE"}),
            json!({"status": 400, "message": "not a friend"}),
            json!({"code": 230002, "msg": "Bot can NOT be out of the chat."}),
            json!({"added": ["a"], "not_found": ["b"]}),
            json!({"success": true, "ignored_fields": {"close_date": "read only"}}),
        ] {
            assert!(denial(&json!({}), &result).is_some(), "{result}");
        }
        assert!(denial(&json!({"dryRun": true}), &json!("ok")).is_some());
    }

    #[test]
    fn ordinary_results_deny_nothing() {
        for result in [
            json!("Data written to Sheet1"),
            json!({"inserted": 0, "updated": 3}),
            json!("Sent 1 message, 0 errors"),
            json!({"errors": [], "error": null, "deleted": 2}),
            json!({"merged": true, "message": "Pull Request successfully merged"}),
            json!("```diff\n--- a\n+++ b\n@@ -1 +1 @@\n-old error\n+not saved\n```"),
            json!("Commit created: Fix the error in not found pages"),
            json!({"state": "running", "remaining_s": 300}),
            json!({"id": 4, "completed": false, "archived": false}),
            json!({"code": 0, "msg": "ok"}),
        ] {
            let arguments = json!({"message": "Fix the error in not found pages"});
            assert_eq!(denial(&arguments, &result), None, "{result}");
        }
    }
}
