//! Things that a request lists, and of which only some were changed: "add eggs, milk and flour".

use serde_json::Value;

use super::{
    fact::StepFact,
    families::families,
    text::{contains_word, is_chinese, sentences, without_quotes, words},
};

/// Words of an item at most; what is longer is a clause.
const MAX_ITEM_WORDS: usize = 3;
const ARTICLES: [&str; 9] = ["the", "a", "an", "my", "our", "your", "some", "both", "also"];
/// Words that end an item.
const ITEM_ENDS: &str = "to in on into onto from for with at by of as that which please tomorrow today then so saying about via under";

/// The first listed thing that no change names, although a change names another of the list. A call with as many things as the
/// list has may name them by their ids.
pub(super) fn missing_item(question: &str, changes: &str, steps: &[StepFact]) -> Option<String> {
    let effective = || steps.iter().filter(|step| step.is_effective());
    let longest =
        effective().flat_map(|step| step.arguments.values()).filter_map(Value::as_array).map(Vec::len).max();
    let most = longest.unwrap_or_default().max(effective().count());
    let plain = without_quotes(question);
    let lists =
        sentences(&plain).into_iter().flat_map(|sentence| [english_items(sentence), chinese_items(sentence)]);
    lists.filter(|items| items.len() > most.max(1)).find_map(|items| {
        let (named, missing): (Vec<&String>, Vec<&String>) =
            items.iter().partition(|item| words_of(item).iter().any(|word| changes.contains(word.as_str())));
        missing.first().filter(|_| !named.is_empty()).map(|item| (*item).clone())
    })
}

/// Of things that a request numbers, one that no change names although a change names another: "Period 3 and Period 5".
pub(super) fn missing_number(question: &str, changes: &str) -> Option<String> {
    let words = words(question);
    let is_number = |word: &str| word.chars().all(|letter| letter.is_ascii_digit());
    let numbered: Vec<String> = words
        .windows(2)
        .filter_map(|pair| match pair {
            [noun, number]
                if is_number(number) && noun.len() > 2 && noun.chars().all(char::is_alphabetic) =>
            {
                Some(format!("{noun} {number}"))
            }
            _ => None,
        })
        .collect();
    let noun = |name: &str| name.split(' ').next().map(str::to_owned);
    let missing = numbered.iter().find(|name| {
        let mut others = numbered.iter().filter(|other| other != name && noun(other) == noun(name));
        !contains_word(changes, name) && others.any(|other| contains_word(changes, other))
    });
    missing.cloned()
}

/// The words of an item without the plural, or a Chinese item.
fn words_of(item: &str) -> Vec<String> {
    if item.chars().any(is_chinese) {
        return vec![item.to_owned()];
    }
    words(item).iter().map(|word| word.strip_suffix('s').unwrap_or(word).to_owned()).collect()
}

/// The nouns between commas and "and"; none if a part is a clause of its own.
fn english_items(sentence: &str) -> Vec<String> {
    let has_and = sentence.to_lowercase().contains(" and ");
    let sentence = sentence.to_lowercase().replace(", and ", ", ").replace(" and ", ", ");
    let parts: Vec<Vec<String>> = sentence.split(", ").map(words).collect();
    // "After 11pm, electricity is cheaper then" lists nothing.
    if parts.len() < if has_and { 2 } else { 3 } || sentence.chars().any(is_chinese) {
        return Vec::new();
    }
    let mut items = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let is_first = at == 0;
        let noun: Vec<&String> = if is_first {
            part.iter().rev().skip_while(|word| matches!(word.as_str(), "please" | "pls")).take(1).collect()
        } else {
            let after_article = part.iter().skip_while(|word| ARTICLES.contains(&word.as_str()));
            after_article.take_while(|word| !ITEM_ENDS.split(' ').any(|end| end == word.as_str())).collect()
        };
        let is_clause = noun.len() > MAX_ITEM_WORDS || noun.is_empty();
        let next = noun.get(1).map(|word| word.as_str()).unwrap_or_default();
        let is_verb = !is_first
            && noun.first().is_some_and(|word| {
                families().iter().any(|family| family.imperative(word, next).is_some())
                    || word.ends_with("ing")
                    || matches!(
                        word.as_str(),
                        "tell"
                            | "let"
                            | "show"
                            | "then"
                            | "give"
                            | "i"
                            | "it"
                            | "if"
                            | "but"
                            | "not"
                            | "don't"
                    )
            });
        let is_short = noun.iter().all(|word| word.len() < 3);
        if is_clause || is_verb || is_short {
            return Vec::new();
        }
        items.push(noun.into_iter().cloned().collect::<Vec<_>>().join(" "));
    }
    items
}

/// The parts of 番茄、鸡蛋和面粉 around its marks, two characters each.
fn chinese_items(sentence: &str) -> Vec<String> {
    let parts: Vec<&str> = sentence.split(['、', '和', '与']).collect();
    // 三点和产品组开会 lists nothing.
    let is_text = |part: &str| {
        part.chars().count() >= 2
            && part
                .chars()
                .all(|letter| is_chinese(letter) && !"点日号时分周月年天我你他她们".contains(letter))
    };
    let mut items = Vec::new();
    for pair in parts.windows(2) {
        let [left, right] = pair else { continue };
        let last: String = left.chars().skip(left.chars().count().saturating_sub(2)).collect();
        let first: String = right.chars().take(2).collect();
        if !(is_text(&last) && is_text(&first)) {
            return Vec::new();
        }
        if items.is_empty() {
            items.push(last);
        }
        items.push(first);
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_told_from_clauses() {
        assert_eq!(english_items("Add eggs, milk and flour to my list."), ["eggs", "milk", "flour"]);
        assert_eq!(english_items("Invite Anna and Bob"), ["anna", "bob"]);
        assert_eq!(english_items("Rename a.txt and tell me its size"), [""; 0]);
        assert_eq!(chinese_items("把鸡蛋、牛奶和面粉加到清单"), ["鸡蛋", "牛奶", "面粉"]);
    }
}
