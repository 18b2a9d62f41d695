//! Which tools change something, and whether a step did what a verb says.

use serde_json::{Map, Value};

use super::{
    fact::StepFact,
    families::{Family, Kind, families},
    text::{name_words, words},
};

/// Words in names of tools that only read.
const READ_WORDS: &str = "read get list search find query fetch describe show view inspect check count summarize lookup \
    analyze calculate compute parse extract validate compare diff status log logs blame tree stat info time ping echo \
    recall browse preview open select look explain verify sum metadata history weather head tail allowed navigate \
    snapshot screenshot forecast";
/// Words in names of tools that carry out the command in their arguments.
const COMMAND_WORDS: &str =
    "run execute exec call click press query sql command shell bash service type tap invoke rollout";
/// Verbs in names of tools whose object says what is done: `create_order`, `add_comment`.
const MAKING_WORDS: &str = "create add make new post insert init generate put save write set record submit";
/// Words in names of tools that may also name what is changed: `modify_email`.
const THING_WORDS: &str = "email mail message comment post order event meeting appointment reservation calendar payment label tag \
    backup fork release form attendee attendees guest guests participant participants member reminder permission issue ticket \
    expense leave";
/// Words in keys of arguments that pass on content: the message of a commit is not sent.
const CONTENT_KEYS: &str = "message mail email post order form event request transfer record";
/// Strict families whose steps also store something.
const STORING: [&str; 10] =
    ["commit", "stage", "upload", "deploy", "merge", "submit", "restore", "invite", "install", "sync"];

/// Families whose steps leave content as it is.
const KEEPING: [&str; 3] = ["copy", "play", "schedule"];

fn is_listed(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
}

/// Whether a tool may change something: its hints do not say that it only reads, and neither does the first telling word
/// of its name.
pub(crate) fn tool_changes(name: &str, is_read_only: bool) -> bool {
    let words = name_words(name);
    !is_read_only
        && words
            .iter()
            .enumerate()
            .find_map(|(at, word)| match () {
                // `valve_open` opens something.
                () if word == "open" && at > 0 => None,
                // `log_dose` records something, `git_log` reads.
                () if word == "log" && at == 0 && words.len() > 1 => Some(true),
                () if is_listed(READ_WORDS, word) => Some(false),
                () if is_tool_word(word) => Some(true),
                () => None,
            })
            .unwrap_or(true)
}

/// Like [`tool_changes`], for a call: one that only extracts or converts something changes something if it is told where to store
/// it.
pub(crate) fn call_changes(name: &str, is_read_only: bool, arguments: &Map<String, Value>) -> bool {
    const OUTPUT_KEYS: &str = "output outputpath outputfile outfile outputfilename dest destination saveto savepath saveas targetpath";
    let is_output = |key: &String| is_listed(OUTPUT_KEYS, &name_words(key).concat());
    tool_changes(name, is_read_only) || (!is_read_only && arguments.keys().any(is_output))
}

fn is_tool_word(word: &str) -> bool {
    families().iter().any(|family| family.tool_words.contains(&word))
}

/// The first word of a tool's name that says what it does. A draft is a draft, however it is made.
fn tool_verb(step: &StepFact) -> Option<String> {
    if is_draft(step) {
        return Some("draft".to_owned());
    }
    name_words(&step.tool).into_iter().find(|word| is_tool_word(word))
}

pub(super) fn is_draft(step: &StepFact) -> bool {
    name_words(&step.tool).iter().any(|word| word == "draft") || step.makes_draft()
}

/// Whether a step did what a verb of the family says.
pub(super) fn supports(step: &StepFact, family: &Family) -> bool {
    step.is_effective()
        && match family.kind {
            Kind::Any => true,
            Kind::Generic => stores(step, family) || says_so(step, family),
            Kind::Specific | Kind::Strict => says_so(step, family),
        }
}

/// Whether a step changes content in the way of a generic verb. A copy is saved or created, but not updated.
fn stores(step: &StepFact, family: &Family) -> bool {
    let Some(verb) = tool_verb(step) else { return true };
    let mut of_verb = families().iter().filter(|other| other.tool_words.contains(&verb.as_str()));
    let is_update = family.is_named("update");
    of_verb.any(|other| match other.kind {
        Kind::Any | Kind::Generic => true,
        Kind::Specific => !(is_update && KEEPING.contains(&other.name)),
        Kind::Strict => STORING.contains(&other.name),
    })
}

/// Whether a step, which made its change, says that it does what the family means: by the name of its tool, by a command or
/// a key in its arguments, or by its result.
pub(super) fn says_so(step: &StepFact, family: &Family) -> bool {
    let verb = tool_verb(step);
    let is_word = |word: &String| family.tool_words.contains(&word.as_str());
    let is_draft = verb.as_deref() == Some("draft");
    if verb.as_ref().is_some_and(is_word) {
        return true;
    }
    if is_draft {
        return false;
    }
    let is_strict = verb.as_deref().is_some_and(|verb| {
        families().iter().any(|other| other.kind == Kind::Strict && other.tool_words.contains(&verb))
    });
    let name_words = name_words(&step.tool);
    // `create-event` schedules, but `modify_email` does not send.
    let makes = verb.as_deref().is_none_or(|verb| is_listed(MAKING_WORDS, verb));
    let singular = |word: &String| word.strip_suffix('s').unwrap_or(word).to_owned();
    if !is_strict
        && name_words.iter().any(|word| {
            (makes || !is_listed(THING_WORDS, word)) && (is_word(word) || is_word(&singular(word)))
        })
    {
        return true;
    }
    let takes_command = verb.is_none() || name_words.iter().any(|word| is_listed(COMMAND_WORDS, word));
    let call = step.call_text();
    if takes_command && family.occurs_in(&words(&call.replace('_', " ")), call) {
        return true;
    }
    let is_key = |key: &String| {
        let key = words(&key.replace('_', " ")).join("");
        let is_named = |word: &str| key == word || (word.len() > 3 && key.starts_with(word));
        family.tool_words.iter().any(|word| is_named(word) && !is_listed(CONTENT_KEYS, word))
    };
    if step.argument_keys().iter().any(is_key) {
        return true;
    }
    let result = step.result_text();
    let result_words = words(result);
    (0..result_words.len()).any(|at| family.has_past(result_words.get(at..).unwrap_or_default()))
        || (family.is_named("delete") && step.shortens())
}

/// Strict families that mean changes of the same kind: something goes out, goes away, is deployed or is paid for.
const KINDS: [&[&str]; 4] = [
    &["send", "forward", "cc", "reply", "comment", "share", "invite", "push", "submit", "remind"],
    &["delete", "cancel", "uninstall", "unsubscribe", "reject"],
    &["commit", "stage", "push", "upload", "deploy", "sync", "merge", "restore", "install", "restart"],
    &["order", "pay", "submit", "register"],
];

/// Whether a step made a change of the kind that a strict family means.
pub(super) fn is_same_kind(step: &StepFact, family: &Family) -> bool {
    let kinds = KINDS.iter().filter(|kind| kind.contains(&family.name));
    let mut names = kinds.flat_map(|kind| kind.iter());
    // `schedule_post` posts later.
    let schedules = tool_verb(step).is_some_and(|verb| verb == "schedule");
    let has_word = |other: &Family| {
        schedules && name_words(&step.tool).iter().any(|word| other.tool_words.contains(&word.as_str()))
    };
    let does = |other: &Family| says_so(step, other) || has_word(other);
    !is_draft(step) && names.any(|name| families().iter().any(|other| other.is_named(name) && does(other)))
}

/// Whether a strict family also means that something is stored.
pub(super) fn is_storing(family: &Family) -> bool {
    STORING.contains(&family.name)
}

/// Whether a step made its change with a tool whose name tells nothing about it.
pub(super) fn is_unnamed(step: &StepFact) -> bool {
    step.is_effective() && tool_verb(step).is_none()
}

/// Whether a step that says nothing about what it does may have done what a request asks for.
pub(super) fn is_unspecific(step: &StepFact) -> bool {
    step.is_effective()
        && tool_verb(step).is_none_or(|verb| {
            families()
                .iter()
                .any(|family| family.kind != Kind::Strict && family.tool_words.contains(&verb.as_str()))
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(tool: &str, arguments: &Value, result: &str) -> StepFact {
        StepFact {
            tool: tool.to_owned(),
            changes: true,
            arguments: arguments.as_object().unwrap().clone(),
            result: json!(result),
            ..StepFact::default()
        }
    }

    fn is_supported(step: &StepFact, name: &str) -> bool {
        families().iter().any(|family| family.is_named(name) && supports(step, family))
    }

    #[test]
    fn the_first_telling_word_of_a_name_decides_whether_it_changes() {
        for reads in
            ["read_data_from_excel", "list_tables", "git_diff", "searchNodes", "open_nodes", "get_updates"]
        {
            assert!(!tool_changes(reads, false), "{reads}");
        }
        for changes in ["write_data_to_excel", "createEntities", "delete-event", "frobnicate", "draft_email"]
        {
            assert!(tool_changes(changes, false), "{changes}");
        }
        assert!(!tool_changes("frobnicate", true), "known to be read-only");
    }

    #[test]
    fn a_step_supports_what_it_says() {
        let mail = step("send_email", &json!({"to": "a@b.org"}), "ok");
        assert!(
            is_supported(&mail, "send") && !is_supported(&mail, "delete") && !is_supported(&mail, "share")
        );
        let draft = step("draft_email", &json!({"to": "a@b.org"}), "draft created");
        assert!(!is_supported(&draft, "send") && is_supported(&draft, "do"));
        let shell = step("run_command", &json!({"command": "git push origin"}), "ok");
        assert!(is_supported(&shell, "push") && !is_supported(&shell, "pay"));
        let event = step("create-event", &json!({"attendees": ["a@b.org"]}), "ok");
        assert!(
            is_supported(&event, "schedule")
                && is_supported(&event, "invite")
                && is_supported(&event, "create")
        );
        let page = step("API-post-page", &json!({"title": "x"}), "ok");
        assert!(is_supported(&page, "create") && !is_supported(&page, "share"));
    }
}
