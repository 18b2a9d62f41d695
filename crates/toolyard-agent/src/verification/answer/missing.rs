//! Changes that a request asks for, and that no step made.

use serde_json::Value;

use super::{
    action::{is_same_kind, is_storing, is_unnamed, is_unspecific, says_so, supports},
    claims::{Claim, ClaimedVerb, Voice, denies},
    conditions::{is_met, without_conditions},
    fact::StepFact,
    families::Kind,
    grounding::Grounds,
    identifiers::identifiers,
    items::{missing_item, missing_number},
    numbers::{counts_more, missing_amounts, other_moment, other_number},
    replaced::unfinished_steps,
    requests::{Certainty, Wish},
    text::{has_chinese, name_words, sentences},
};

/// The clauses, names and amounts of the request whose change was not made.
pub(super) fn missing_changes(
    question: &str,
    answer: &str,
    wishes: &[Wish],
    claims: &[Claim],
    steps: &[StepFact],
    grounds: &Grounds,
) -> Vec<String> {
    let is_untouched = !steps.iter().any(|step| step.changes);
    // "It is already closed" claims nothing.
    let is_wished = |claim: &Claim| match &claim.verb {
        ClaimedVerb::Known(family, _) => wishes.iter().any(|wish| wish.family == Some(family)),
        ClaimedVerb::Unknown(_) => false,
    };
    let is_state =
        |claim: &Claim| claim.voice != Voice::Own && (claim.text.contains("already") || !is_wished(claim));
    let only_denies = claims.iter().all(is_state) && denies(answer) && is_untouched;
    let condition = is_met(question, &read_numbers(steps));
    let is_unmet = condition == Some(false) && claims.iter().all(is_state);
    let is_excused = |wish: &Wish| match wish.certainty {
        // There may be nothing to change.
        Certainty::Certain => only_denies && steps.iter().any(found_nothing),
        // An answer that only says why the condition is not met is a full answer.
        Certainty::Conditional => {
            is_untouched && condition != Some(true) && (only_denies || is_unmet || claims.is_empty())
        }
        Certainty::Possible => !(is_untouched && condition == Some(true) && wish.family.is_none()),
    };
    let asked: Vec<&Wish> = wishes.iter().filter(|wish| !is_excused(wish)).collect();
    // Once all steps ended and one made a change, only a change of another kind, which nothing in the run touches, is missing.
    let is_clean = steps.iter().any(StepFact::is_effective) && unfinished_steps(steps).is_empty();
    // "And save it" belongs to the wish before it.
    let is_own = |wish: &Wish| {
        !(wish.object.is_empty()
            && !wish.text.contains(['把', '将'])
            && wish.family.is_some_and(|family| family.kind == Kind::Generic))
    };
    let is_touched = |wish: &&Wish| {
        let has_others = asked.iter().any(|other| !std::ptr::eq(*other, *wish) && is_own(other))
            && asked.len() > steps.iter().filter(|step| step.is_effective()).count();
        is_clean && is_touched(wish, has_others, steps, grounds)
    };
    let open = undone(&asked, steps, grounds).into_iter().filter(|wish| !is_touched(wish));
    let mut missing: Vec<String> = open.map(|wish| wish.text.clone()).collect();
    // One step may fulfil several wishes only if it names what they are about.
    if asked.len() > steps.iter().filter(|step| step.is_effective()).count() {
        // In Chinese, two wishes of the same kind are compared.
        let is_compared = |wish: &&&Wish| {
            !has_chinese(&wish.text) || asked.iter().filter(|other| other.family == wish.family).count() > 1
        };
        let unnamed = asked.iter().filter(is_compared).filter(|wish| {
            let is_named = |word: &String| grounds.changed_word(word) || (is_clean && grounds.names(word));
            !wish.object.is_empty() && !wish.object.iter().any(is_named)
        });
        missing.extend(unnamed.map(|wish| wish.text.clone()));
    }
    let is_certain = asked.iter().any(|wish| wish.certainty == Certainty::Certain);
    // Whatever was asked for, a change with other numbers or times is another one.
    if missing.is_empty() && !is_certain && is_clean {
        let asked_text = without_conditions(question);
        missing.extend(other_number(&asked_text, steps));
        missing.extend(other_moment(&asked_text, steps));
    }
    if is_certain && missing.is_empty() {
        let wished = |sentence: &&str| asked.iter().any(|wish| sentence.contains(first_words(&wish.text)));
        let named = sentences(question).into_iter().filter(wished).flat_map(identifiers);
        missing.extend(named.filter(|name| {
            let is_known = grounds.was_used(name) || (is_clean && grounds.names_exactly(name));
            !is_known && !has_opaque_id(name, steps) && !contains_passed(name, steps)
        }));
        let asked_text = without_conditions(question);
        missing.extend(missing_amounts(&asked_text, steps));
        let wished_text = sentences(question).into_iter().filter(wished).collect::<Vec<_>>().join("\n");
        missing.extend(missing_item(&wished_text, grounds.changes(), steps));
        missing.extend(missing_number(&asked_text, grounds.changes()));
        missing.extend(other_number(&asked_text, steps));
        missing.extend(other_moment(&asked_text, steps));
        missing
            .extend(asked.iter().filter(|wish| counts_more(&wish.text, steps)).map(|wish| wish.text.clone()));
    }
    missing.dedup();
    missing
}

/// The numbers that steps read.
fn read_numbers(steps: &[StepFact]) -> Vec<f64> {
    fn collect(value: &Value, found: &mut Vec<f64>) {
        match value {
            Value::Number(number) => found.extend(number.as_f64()),
            Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            Value::Object(entries) => entries.values().for_each(|item| collect(item, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    steps.iter().filter(|step| step.is_done()).for_each(|step| collect(&step.result, &mut found));
    found
}

/// Whether a step may have fulfilled a wish in other words: it made a change of the same kind, or one about its object.
fn is_touched(wish: &Wish, has_others: bool, steps: &[StepFact], grounds: &Grounds) -> bool {
    let names_object = || wish.object.iter().any(|word| grounds.changed_word(word));
    match wish.family {
        Some(family) if family.kind == Kind::Strict => {
            steps.iter().any(|step| step.is_effective() && is_same_kind(step, family))
                && (!has_others || wish.object.is_empty() || names_object())
        }
        _ => !has_others || names_object(),
    }
}

/// The wishes that no step fulfils. A step that says what it does fulfils such wishes; a step that does not say may fulfil
/// one other wish.
fn undone<'a>(wishes: &[&'a Wish], steps: &[StepFact], grounds: &Grounds) -> Vec<&'a Wish> {
    // A tool that is named after a verb does what the verb says, even if it only reads: "sign it" with `sign_paper`.
    let names_verb = |step: &StepFact, verb: &str| {
        step.is_done() && name_words(&step.tool).iter().any(|word| word == verb)
    };
    let is_done = |wish: &&&Wish| match (wish.family, &wish.unknown_verb) {
        (Some(family), _) => steps.iter().any(|step| supports(step, family)),
        (None, Some(verb)) => steps.iter().any(|step| names_verb(step, verb)),
        // 把议程附上: what the wish is about is in a change.
        (None, None) => wishes.len() > 1 && wish.object.iter().any(|word| grounds.changed_word(word)),
    };
    let open: Vec<&Wish> = wishes.iter().filter(|wish| !is_done(wish)).copied().collect();
    let is_unnamed = steps.iter().any(is_unnamed);
    let is_specific = |wish: &&Wish| {
        wish.family.is_none_or(|family| {
            family.kind == Kind::Specific || is_storing(family) || (family.kind == Kind::Strict && is_unnamed)
        })
    };
    let is_taken =
        |step: &&StepFact| wishes.iter().filter_map(|wish| wish.family).any(|family| says_so(step, family));
    let is_unknown = wishes.iter().all(|wish| wish.family.is_none());
    let may_fulfil =
        |step: &&StepFact| (is_unspecific(step) && !is_taken(step)) || (is_unknown && step.is_effective());
    let mut free = steps.iter().filter(may_fulfil).count();
    open.into_iter()
        .filter(|wish| {
            let is_fulfilled = is_specific(wish) && free > 0;
            free -= usize::from(is_fulfilled);
            !is_fulfilled
        })
        .collect()
}

/// Whether a quoted wish contains what a change was called with: “周五前续车险” and the title 续车险.
fn contains_passed(name: &str, steps: &[StepFact]) -> bool {
    let effective = steps.iter().filter(|step| step.is_effective());
    let mut passed = effective.flat_map(|step| step.arguments.values()).filter_map(Value::as_str);
    passed.any(|text| has_chinese(text) && text.chars().count() >= 3 && name.contains(&text.to_lowercase()))
}

/// Whether a change may name a channel or user by an id that does not tell its name: `C0REL` for #releases.
fn has_opaque_id(name: &str, steps: &[StepFact]) -> bool {
    let is_opaque = |text: &str| {
        text.len() >= 3
            && text
                .chars()
                .all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '-')
    };
    let mut arguments =
        steps.iter().filter(|step| step.is_effective()).flat_map(|step| step.arguments.values());
    name.starts_with(['#', '@']) && arguments.any(|value| value.as_str().is_some_and(is_opaque))
}

/// Whether a reading step found nothing.
fn found_nothing(step: &StepFact) -> bool {
    const NOTHING: [&str; 10] = [
        "no match",
        "no result",
        "not found",
        "nothing found",
        "no file",
        "empty",
        "0 ",
        "没有",
        "未找到",
        "none",
    ];
    let text = step.result_text();
    let is_empty = match &step.result {
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        _ => text.trim().is_empty() || matches!(text.trim(), "[]" | "{}"),
    };
    step.is_done() && (is_empty || NOTHING.iter().any(|words| text.starts_with(words)))
}

/// Enough of a clause to find its sentence; quotes were replaced in it.
fn first_words(clause: &str) -> &str {
    clause.split('“').next().unwrap_or(clause).trim_end()
}
