//! Changes that were made to something else than what the request names.

use serde_json::Value;

use super::{
    fact::StepFact,
    text::{contains_word, is_chinese},
};

/// Names of calls, results and requests that are compared at most.
const MAX_NAMES: usize = 100;
/// Arguments that are longer have content of their own.
const MAX_NAME_BYTES: usize = 300;
/// Keys of arguments that say where something is changed.
const PLACE_KEYS: &str = "namespace env environment stage branch base target into head ref database db schema table cluster host \
    server region channel calendar folder list board project repo repository workspace bucket account room device group chat \
    to recipient destination sheet language lang currency team queue topic zone site store location";
/// Values that tools use without being asked.
const DEFAULTS: &str = "primary default inbox self public private true false null none all auto latest html text \
    markdown json squash merge rebase daily weekly monthly yearly user admin home work today tomorrow low medium high normal \
    private open closed active done todo";
/// Keys of arguments that differ from call to call.
const CONTENT_KEYS: &str = "path file filename filepath output input title query sql range content text body url command subject summary \
    description comment message start end time date source destination prompt limit page size offset format type";
/// Words before a place or a person in a request.
const PLACE_WORDS: [&str; 20] = [
    "let", "to", "into", "in", "on", "onto", "from", "at", "as", "for", "send", "tell", "email", "message",
    "ask", "invite", "remind", "call", "text", "notify",
];

/// What the request names, if a change was made to something else of the same kind.
pub(super) fn other_target(question: &str, answer: &str, steps: &[StepFact]) -> Option<String> {
    let run = RunTexts::of(question, answer, steps);
    let made = steps.iter().filter(|step| step.is_effective());
    made.flat_map(|step| keyed_leaves(&step.arguments)).take(MAX_NAMES).find_map(|(key, value)| {
        if !run.is_invented(&value) {
            return None;
        }
        // Small numbers are compared by their value, see `other_number`.
        let is_small = value.len() < 3 && run.calls.iter().any(|call| call.key == key && call.value == value);
        let value_shape = shape(&value).filter(|_| !is_small);
        let same_shape =
            || run.unused.iter().find(|name| value_shape.is_some() && shape(name) == value_shape);
        let name = key.rsplit('_').next().unwrap_or_default();
        let is_place = is_listed(PLACE_KEYS, name) && is_word(&value);
        let same_place = || run.places.iter().find(|_| is_place);
        // A command says where it changes something.
        let in_command =
            || run.chinese_places.iter().find(|_| is_listed("command sql statement script cmd", name));
        // A call that read has the name of the request in the same argument, or another change a name of the same kind.
        let same_key = || {
            let is_whole = run.calls.iter().any(|call| call.key == key && call.value == value);
            let others =
                run.calls.iter().filter(|call| is_whole && call.key == key && !is_listed(CONTENT_KEYS, name));
            let alike = others
                .filter(|call| !call.changes || (value_shape.is_some() && shape(&call.value) == value_shape));
            alike.map(|call| &call.value).find(|asked| {
                **asked != value
                    && !value.contains(asked.as_str())
                    && contains_word(&run.question, asked)
                    && !is_listed(DEFAULTS, asked)
            })
        };
        // The id of a record that was read was not used, but another one.
        let same_id = || {
            let is_id = name == "id" || name.ends_with("id") || name == "to";
            run.read_ids.iter().find(|id| is_id && value_shape.is_some() && shape(id) == value_shape)
        };
        same_shape().or_else(same_place).or_else(in_command).or_else(same_key).or_else(same_id).cloned()
    })
}

/// The names of a request, compared with what the steps passed and returned. All in lower case.
struct RunTexts {
    question: String,
    /// Results of steps that only read.
    read: String,
    /// Names of the request that no call has.
    unused: Vec<String>,
    /// Words of the request that name a place, that the answer names, too, and that no change has.
    places: Vec<String>,
    /// Those of them within Chinese text.
    chinese_places: Vec<String>,
    /// Ids and addresses of results that no change has.
    read_ids: Vec<String>,
    /// The arguments of all steps that ended.
    calls: Vec<PassedName>,
}

/// An argument of one name.
struct PassedName {
    key: String,
    value: String,
    changes: bool,
}

impl RunTexts {
    fn of(question: &str, answer: &str, steps: &[StepFact]) -> Self {
        let (question, answer) = (question.to_lowercase(), answer.to_lowercase());
        let mut run = Self {
            question,
            read: String::new(),
            unused: Vec::new(),
            places: Vec::new(),
            chinese_places: Vec::new(),
            read_ids: Vec::new(),
            calls: Vec::new(),
        };
        let (mut changes, mut calls) = (String::new(), String::new());
        for step in steps.iter().filter(|step| step.is_done()) {
            calls.extend([step.call_text(), "\n"]);
            run.calls.extend(whole_names(&step.arguments).into_iter().map(|(key, value)| PassedName {
                key,
                value,
                changes: step.changes,
            }));
            if step.is_effective() {
                changes.extend([step.call_text(), "\n", step.result_text(), "\n"]);
            } else {
                run.read.extend([step.result_text(), "\n"]);
            }
        }
        let mut tokens = tokens_of(&run.question);
        tokens.truncate(MAX_NAMES);
        let parts: Vec<&str> = tokens.iter().flat_map(|token| token.split('/')).collect();
        let is_unused = |name: &&&str| !contains_word(&calls, name) && !contains_word(&changes, name);
        run.unused = tokens.iter().filter(is_unused).map(|name| (*name).to_owned()).collect();
        let is_place = |name: &str| {
            is_word(name)
                && contains_word(&answer, name)
                && !changes.contains(name)
                && is_placed(&run.question, name)
        };
        let is_in_chinese = |name: &&&str| {
            is_place(name)
                && run.question.match_indices(**name).any(|(at, _)| {
                    run.question.get(..at).unwrap_or_default().trim_end().ends_with(is_chinese)
                })
        };
        let owned = |name: &&str| (*name).to_owned();
        run.chinese_places = parts.iter().filter(is_in_chinese).map(owned).collect();
        run.places = parts.iter().filter(|name| is_place(name)).map(owned).collect();
        let lines = run.read.lines().take(MAX_NAMES).filter(|line| line.contains("id") || line.contains('@'));
        let ids = lines
            .flat_map(tokens_of)
            .take(10 * MAX_NAMES)
            .filter(|id| shape(id).is_some() && !contains_word(&changes, id));
        run.read_ids = ids.map(str::to_owned).collect();
        run
    }

    /// Whether a value of a call comes from neither the request nor a result.
    fn is_invented(&self, value: &str) -> bool {
        !is_listed(DEFAULTS, value) && !self.question.contains(value) && !self.read.contains(value)
    }
}

/// Names of a text: runs of letters, digits and what joins them.
fn tokens_of(text: &str) -> Vec<&str> {
    let is_part = |letter: char| {
        (letter.is_alphanumeric() && !is_chinese(letter))
            || matches!(letter, '-' | '_' | '.' | '/' | '@' | '#')
    };
    let words = text.split(|letter: char| !is_part(letter));
    words.map(|word| word.trim_matches(['.', '/', '-'])).filter(|word| word.len() > 1).collect()
}

/// The kind of a name with digits, or of an address: `app-90` and `app-91` have the same, and so have 1024 and 1042.
fn shape(name: &str) -> Option<String> {
    let mut shape = String::new();
    for letter in name.chars() {
        let kind = if letter.is_ascii_digit() { '9' } else { letter };
        let is_repeated = kind == '9' && shape.ends_with('9');
        if !is_repeated {
            shape.push(kind);
        }
    }
    let is_address = name.split_once('@').is_some_and(|(user, host)| !user.is_empty() && host.contains('.'));
    let is_plain_number = shape == "9";
    match () {
        () if is_address => Some("@".to_owned()),
        () if name.starts_with('#') && !shape.contains('9') => Some("#".to_owned()),
        () if is_plain_number => Some(format!("9 {}", name.len())).filter(|_| name.len() > 1),
        () => shape.contains('9').then_some(shape),
    }
}

/// Whether a name is one plain word.
fn is_word(name: &str) -> bool {
    const STOP_WORDS: &str = "the this that these those his her its our your their all each both any some please pls now today         tomorrow me him them you";
    name.len() > 2
        && !is_listed(STOP_WORDS, name)
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-')
}

/// Whether a word of a request stands where a place is named: after a preposition, or within Chinese text.
fn is_placed(question: &str, name: &str) -> bool {
    question.match_indices(name).any(|(at, _)| {
        let before = question.get(..at).unwrap_or_default().trim_end();
        // `origin/develop`
        let is_joined = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '/' | '-' | '_');
        let before =
            if before.ends_with('/') { before.trim_end_matches(is_joined).trim_end() } else { before };
        let last = before.split_whitespace().next_back().unwrap_or_default();
        let before_article = before.strip_suffix(" the").unwrap_or(before).split_whitespace().next_back();
        PLACE_WORDS.contains(&before_article.unwrap_or_default()) || last.ends_with(is_chinese)
    })
}

fn is_listed(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
}

/// The short texts and numbers of arguments with their keys, in lower case.
fn keyed_leaves(arguments: &serde_json::Map<String, Value>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (key, value) in arguments {
        collect(&key.to_lowercase(), value, &mut found);
    }
    found
}

/// The arguments that are one name.
fn whole_names(arguments: &serde_json::Map<String, Value>) -> Vec<(String, String)> {
    let names = arguments.iter().filter_map(|(key, value)| {
        let value = match value {
            Value::String(text) => text.to_lowercase(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        (tokens_of(&value) == [value.as_str()]).then(|| (key.to_lowercase(), value.clone()))
    });
    names.collect()
}

fn collect(key: &str, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => found.push((key.to_owned(), number.to_string())),
        // Long texts are content.
        Value::String(text) if text.len() > MAX_NAME_BYTES => {}
        Value::String(text) => {
            // A command or statement names what it changes.
            let text = text.to_lowercase();
            // The parts of a time are no names.
            let is_time_part =
                |token: &&str| text.contains(':') && token.len() == 2 && token.parse::<u8>().is_ok();
            let tokens = tokens_of(&text).into_iter().filter(|token| !is_time_part(token));
            found.extend(tokens.map(|token| (key.to_owned(), token.to_owned())));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(key, item, found)),
        Value::Object(entries) => {
            entries.iter().for_each(|(key, item)| collect(&key.to_lowercase(), item, found));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn target(question: &str, answer: &str, arguments: &Value) -> Option<String> {
        let step = StepFact {
            tool: "merge".to_owned(),
            changes: true,
            arguments: arguments.as_object().unwrap().clone(),
            result: json!("ok"),
            ..StepFact::default()
        };
        other_target(question, answer, &[step])
    }

    #[test]
    fn changes_of_something_else_are_found() {
        let other = json!({"branch": "docs", "into": "develop"});
        assert_eq!(target("Merge docs into main", "docs is in main", &other).as_deref(), Some("main"));
        assert_eq!(target("把 docs 合并到 main", "已并入 main", &other).as_deref(), Some("main"));
        assert_eq!(target("Close APP-90", "Closed", &json!({"key": "APP-91"})).as_deref(), Some("app-90"));
        assert_eq!(target("Close APP-90", "Closed", &json!({"key": "APP-90"})), None);
        assert_eq!(
            target("Mail it to a@x.org", "Sent", &json!({"to": ["b@x.org"]})).as_deref(),
            Some("a@x.org")
        );
        assert_eq!(target("Post it in #releases", "Posted", &json!({"channel_id": "C0REL"})), None);
    }
}
