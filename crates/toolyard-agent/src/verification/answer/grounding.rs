//! Whether what an answer names occurs in what the steps did.

use std::collections::BTreeSet;

use super::{
    claims::{Claim, Voice},
    fact::{FactOutcome, StepFact},
    families::{Family, families, family_of_past},
    identifiers::{identifiers, names},
    records::{LinkedRecords, Record},
    text::{contains_word, has_chinese, is_chinese, words},
};

/// Words of a passage that is a sentence rather than a field.
const MIN_PROSE_WORDS: usize = 7;

/// Nouns and names of a clause that sums up several sentences.
const MIN_SUMMARY_TOPICS: usize = 5;

/// The texts of a run, in lower case.
#[derive(Debug)]
pub(super) struct Grounds {
    question: String,
    /// Arguments and results of the changes that were made, and the records that they refer to.
    changes: String,
    /// Arguments of reading steps.
    read_calls: String,
    /// Results of reading steps.
    read_results: String,
    /// Arguments and results of all steps that ended.
    all: String,
    /// Why steps failed.
    failures: String,
    /// The words of all of them.
    vocabulary: BTreeSet<String>,
    is_complete: bool,
}

impl Grounds {
    pub(super) fn of(question: &str, steps: &[StepFact], records: &LinkedRecords) -> Self {
        let mut grounds = Self {
            question: question.to_lowercase(),
            changes: String::new(),
            read_calls: String::new(),
            read_results: String::new(),
            all: String::new(),
            failures: String::new(),
            vocabulary: BTreeSet::new(),
            is_complete: true,
        };
        for step in steps {
            if let FactOutcome::Unfinished { reason } = &step.outcome {
                grounds.failures.extend([reason.to_lowercase().as_str(), "\n"]);
            }
        }
        for step in steps.iter().filter(|step| step.is_done()) {
            let (call, result) = (step.call_text(), step.result_text());
            grounds.is_complete &= step.is_complete;
            if step.is_effective() {
                grounds.changes.extend([call, "\n", result, "\n"]);
                let referred = steps.iter().filter(|other| step.references.contains(&other.id));
                referred.for_each(|other| grounds.changes.push_str(other.result_text()));
            } else if !step.changes {
                grounds.read_calls.extend([call, "\n"]);
                grounds.read_results.extend([result, "\n"]);
            }
            grounds.all.extend([call, "\n", result, "\n"]);
        }
        records.linked.iter().for_each(|record| grounds.changes.push_str(&record.text));
        for text in [&grounds.question, &grounds.all, &grounds.failures] {
            grounds.vocabulary.extend(words(&text.replace('_', " ")));
        }
        grounds
    }

    pub(super) fn contains(&self, text: &str) -> bool {
        self.all.contains(text) || self.question.contains(text) || self.failures.contains(text)
    }

    /// Whether the request or a change has a word with this stem.
    pub(super) fn names_stem(&self, stem: &str) -> bool {
        !stem.is_empty() && (has_stem(&self.question, stem) || has_stem(&self.changes, stem))
    }

    /// Whether the reason of a failure has a verb of the family.
    pub(super) fn failed_with(&self, family: &Family) -> bool {
        family.occurs_in(&words(&self.failures), &self.failures)
    }

    /// Arguments and results of the changes, in lower case.
    pub(super) fn changes(&self) -> &str {
        &self.changes
    }

    /// Whether a step names a word of the request.
    pub(super) fn names(&self, word: &str) -> bool {
        self.all.contains(word.strip_suffix('s').unwrap_or(word))
    }

    /// Whether a change names a word of the request.
    pub(super) fn changed_word(&self, word: &str) -> bool {
        self.changes.contains(word.strip_suffix('s').unwrap_or(word))
    }

    /// Whether a result has a verb of the family.
    pub(super) fn names_family(&self, family: &Family) -> bool {
        family.occurs_in(&words(&self.all), &self.all)
    }

    /// Whether the request or a result has a word with this stem.
    pub(super) fn reads_stem(&self, stem: &str) -> bool {
        stem.is_empty() || has_stem(&self.question, stem) || has_stem(&self.all, stem) || self.contains(stem)
    }

    /// Whether a claim names something that the request or a step names, or nothing at all. What is told as an addition must
    /// be known altogether.
    pub(super) fn is_about_run(&self, claim: &Claim) -> bool {
        if !self.is_complete {
            return true;
        }
        let topics = topics(&claim.part);
        let is_known = |topic: &String| match topic.is_ascii() {
            true => self.vocabulary.range(topic.clone()..).next().is_some_and(|word| word.starts_with(topic)),
            false => self.contains(topic),
        };
        let is_exact = claim.is_addition && !has_chinese(&claim.text);
        // A quoted passage is compared as a name, and "it" is what was spoken of before.
        let refers = claim.part.contains('“') || refers_back(&claim.part);
        topics.is_empty()
            || (refers && !claim.is_addition)
            || (!claim.is_addition && self.names_number(&claim.part))
            || if is_exact { topics.iter().all(is_known) } else { topics.iter().any(is_known) }
    }

    /// Whether the run names all that a claim is about.
    pub(super) fn knows_all(&self, claim: &Claim) -> bool {
        let is_known = |topic: &String| self.contains(topic);
        self.is_complete && topics(&claim.part).iter().all(is_known)
    }

    /// Whether one line of a result has all that a clause is about, so that the clause tells what was read.
    pub(super) fn paraphrases(&self, claim: &Claim) -> bool {
        let topics = topics(&claim.part);
        let mut passages = self.read_results.lines().flat_map(|line| line.split(". "));
        let is_prose = |passage: &str| passage.split(' ').count() >= MIN_PROSE_WORDS;
        let mut is_told = |passage: &str| {
            let least = if is_prose(passage) { 2 } else { 3 };
            topics.len() >= least && topics.iter().all(|topic| passage.contains(topic.as_str()))
        };
        // A long clause sums up several sentences.
        let known = topics.iter().filter(|topic| self.read_results.contains(topic.as_str())).count();
        let is_summary = topics.len() >= MIN_SUMMARY_TOPICS && known * 3 >= topics.len() * 2;
        !has_chinese(&claim.text)
            && claim.voice != Voice::Own
            && (passages.any(&mut is_told) || (is_summary && self.read_results.lines().any(is_prose)))
    }

    /// Whether a change names something that a claim in Chinese is about.
    pub(super) fn is_about_changes(&self, claim: &Claim) -> bool {
        topics(&claim.part).iter().any(|topic| self.changes.contains(topic.as_str()))
    }

    /// Whether a clause has a name or number with digits that the run has: `G1305`, 47.85.
    fn names_number(&self, clause: &str) -> bool {
        let is_part =
            |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_' | '/');
        let names = clause.split(|letter| !is_part(letter)).map(|name| name.trim_matches(['.', '-', '/']));
        names
            .filter(|name| name.len() >= 3 && name.chars().any(|letter| letter.is_ascii_digit()))
            .any(|name| contains_word(&self.all, &name.to_lowercase()))
    }

    /// Whether a result or the request has the words of a clause.
    pub(super) fn quotes(&self, clause: &str) -> bool {
        let clause = words(clause).join(" ");
        clause.contains(' ')
            && [&self.all, &self.question].iter().any(|text| words(text).join(" ").contains(&clause))
    }

    /// Whether a change, or what was read for it, names an identifier of the request.
    pub(super) fn was_used(&self, identifier: &str) -> bool {
        !self.is_complete || names(&self.changes, identifier) || names(&self.read_calls, identifier)
    }

    /// Whether a step names an identifier.
    pub(super) fn names_exactly(&self, identifier: &str) -> bool {
        names(&self.all, identifier)
    }

    fn was_changed(&self, identifier: &str) -> bool {
        self.was_used(identifier) || names(&self.question, identifier)
    }

    /// The identifiers of an answer that neither the request nor any step names.
    pub(super) fn unknown_identifiers(&self, answer: &str) -> Vec<String> {
        if !self.is_complete {
            return Vec::new();
        }
        let is_unknown = |name: &String| {
            let is_quote = !name.contains(['@', '/', '#', '.']);
            !is_quote && !names(&self.all, name) && !names(&self.question, name)
        };
        identifiers(answer).into_iter().filter(is_unknown).collect()
    }

    /// Whether a claim names something that no change was made to.
    pub(super) fn overreaches(&self, claim: &Claim, records: &LinkedRecords) -> bool {
        if !self.is_complete {
            return false;
        }
        let sentence = claim.sentence.to_lowercase();
        let is_other = |name: &str| {
            contains_word(&sentence, name) && !self.question.contains(name) && !self.changes.contains(name)
        };
        let mut names_of_others = records.others.iter().flat_map(|record| &record.names);
        let names_other_record =
            names_of_others.any(|name| is_other(name) || first_name(name).is_some_and(&is_other));
        names_other_record
            || identifiers(&claim.sentence).iter().any(|name| {
                let may_be_read = records.linked.is_empty() && names(&self.all, name);
                !(self.was_changed(name) || self.is_old_text(name) || may_be_read)
            })
            || self.unknown_number(&sentence)
            || self.unchanged_number(&claim.text)
            || self.unknown_person(&claim.sentence).is_some()
            || self.unknown_item(&claim.sentence).is_some()
            || self.unknown_conjunct(&claim.text).is_some()
            || self.has_unknown_latin_conjunct(&claim.text)
    }

    /// Whether a quoted passage is in a result: "it is Y now instead of X".
    fn is_old_text(&self, name: &str) -> bool {
        !name.contains(['@', '/', '#', '.']) && self.all.contains(name)
    }

    /// A number such as `#7` that occurs nowhere.
    fn unknown_number(&self, sentence: &str) -> bool {
        sentence.split('#').skip(1).any(|rest| {
            let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
            !number.is_empty()
                && !contains_word(&self.all, &number)
                && !contains_word(&self.question, &number)
        })
    }

    /// A number such as `#7` that no change has, although a change has another one of the clause.
    fn unchanged_number(&self, clause: &str) -> bool {
        let numbers = clause
            .split('#')
            .skip(1)
            .map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
        let (changed, other): (Vec<String>, Vec<String>) =
            numbers.filter(|number| !number.is_empty()).partition(|number| {
                contains_word(&self.changes, number) || contains_word(&self.question, number)
            });
        !changed.is_empty() && !other.is_empty()
    }

    /// A capitalized word after a preposition or conjunction that occurs nowhere.
    fn unknown_person(&self, sentence: &str) -> Option<String> {
        const LINKS: [&str; 8] = ["to", "with", "and", "for", "from", "by", "both", "invited"];
        let parts: Vec<&str> = sentence.split_whitespace().collect();
        parts.windows(2).find_map(|pair| {
            let [link, word] = pair else { return None };
            let link = link.trim_end_matches(',').to_lowercase();
            let name = word.trim_matches(|letter: char| !letter.is_alphanumeric());
            let is_capitalized = name.chars().next().is_some_and(|first| first.is_ascii_uppercase())
                && name.chars().skip(1).all(|letter| letter.is_ascii_lowercase())
                && name.len() > 2;
            let lower = name.to_lowercase();
            let is_unknown = LINKS.contains(&link.as_str())
                && is_capitalized
                && !CAPITALIZED.contains(&lower.as_str())
                && !self.contains(&lower);
            is_unknown.then(|| name.to_owned())
        })
    }

    /// A word after "and" that occurs nowhere, although the word before it does: "milk and bread".
    fn unknown_item(&self, sentence: &str) -> Option<String> {
        let words = words(sentence);
        let is_article =
            |word: &str| matches!(word, "the" | "a" | "an" | "your" | "my" | "its" | "their" | "also");
        words.iter().enumerate().find_map(|(at, word)| {
            if word != "and" {
                return None;
            }
            let left = words.get(..at)?.last()?;
            let right = words.get(at + 1..)?.iter().find(|word| !is_article(word))?;
            let is_noun = |word: &str| {
                word.len() > 2
                    && word.chars().all(|letter| letter.is_ascii_alphabetic())
                    && !is_listed(NO_ITEMS, word)
            };
            let is_verb = right.ends_with("ed")
                || right.ends_with("ing")
                || right.ends_with("ly")
                || left.ends_with("ed");
            let is_unknown = is_noun(left)
                && is_noun(right)
                && !is_verb
                && self.names_word(left)
                && !self.names_word(right);
            is_unknown.then(|| right.clone())
        })
    }

    fn names_word(&self, word: &str) -> bool {
        let stem = word.strip_suffix('s').unwrap_or(word);
        self.contains(stem)
    }

    /// Chinese text after 和 or 、 that occurs nowhere, although what stands before it does.
    fn unknown_conjunct(&self, clause: &str) -> Option<String> {
        const IGNORED: [&str; 14] = [
            "其他", "相关", "所有", "全部", "对应", "内容", "以及", "并且", "大家", "您的", "你的", "它的",
            "另外", "我的",
        ];
        let letters: Vec<char> = clause.chars().collect();
        letters.iter().enumerate().find_map(|(at, letter)| {
            if !matches!(letter, '和' | '与' | '及' | '、' | '跟') {
                return None;
            }
            let left: String = letters.get(at.checked_sub(2)?..at)?.iter().collect();
            let right: String =
                letters.get(at + 1..)?.iter().filter(|letter| **letter != ' ').take(2).collect();
            let is_text = |text: &str| text.chars().count() == 2 && text.chars().all(is_chinese);
            let is_unknown = is_text(&left)
                && is_text(&right)
                && self.contains(&left)
                && !self.contains(&right)
                && !IGNORED.contains(&right.as_str());
            is_unknown.then_some(right)
        })
    }

    /// Whether a Latin name after 和 or 、 occurs nowhere: 发给 Tom 和 Jerry.
    fn has_unknown_latin_conjunct(&self, clause: &str) -> bool {
        clause.split(['和', '与', '、', '跟']).skip(1).any(|rest| {
            let rest = rest.trim_start();
            let name: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
            let is_name = name.len() > 2 && name.starts_with(|first: char| first.is_ascii_uppercase());
            is_name && !self.contains(&name.to_lowercase())
        })
    }

    /// Of a request about all records, one like those that were changed.
    fn missed_record(&self, records: &LinkedRecords) -> Option<String> {
        let request = words(&self.question);
        let is_universal = request.iter().any(|word| is_listed(UNIVERSAL_WORDS, word))
            || CHINESE_UNIVERSALS.iter().any(|word| self.question.contains(word));
        if !is_universal {
            return None;
        }
        // The request may be about some kind of records only: those that have its words.
        let stem = |word: &String| word.strip_suffix('s').unwrap_or(word).to_owned();
        let telling: Vec<String> = request
            .iter()
            .filter(|word| word.len() > 2 && !is_listed(UNIVERSAL_WORDS, word))
            .map(stem)
            .filter(|word| records.linked.iter().all(|record| has_stem(&record.text, word)))
            .collect();
        let is_missed = |record: &&Record| {
            telling.iter().all(|word| has_stem(&record.text, word))
                && records.linked.iter().any(|linked| linked.is_like(record))
        };
        let missed = records.missable.iter().find(is_missed)?;
        Some(missed.names.first().cloned().unwrap_or_else(|| missed.text.chars().take(60).collect()))
    }

    /// A record that the request is about and that was not changed, while another one was.
    pub(super) fn unchanged_record(&self, records: &LinkedRecords) -> Option<String> {
        if records.linked.is_empty() {
            return None;
        }
        if let Some(missed) = self.missed_record(records) {
            return Some(missed);
        }
        let is_unchanged = |name: &str| contains_word(&self.question, name) && !self.changes.contains(name);
        let is_asked = |name: &&String| is_unchanged(name) || first_name(name).is_some_and(is_unchanged);
        records.others.iter().flat_map(|record| &record.names).find(is_asked).cloned()
    }
}

/// The first name of a person: `dana ruiz`.
fn first_name(name: &str) -> Option<&str> {
    let (first, last) = name.split_once(' ')?;
    let is_name = |part: &str| part.len() > 1 && part.chars().all(|letter| letter.is_ascii_lowercase());
    (is_name(first) && is_name(last) && first.len() > 2 && !is_listed(GENERAL_WORDS, first)).then_some(first)
}

/// Whether the subject of a clause is a pronoun.
fn refers_back(clause: &str) -> bool {
    let first = words(clause).into_iter().next().unwrap_or_default();
    matches!(first.split('\'').next().unwrap_or_default(), "it" | "they" | "this" | "that" | "these")
}

/// What a clause is about: the stems of its nouns and names, and pairs of Chinese characters. Verbs and words that fit every
/// run tell nothing.
fn topics(clause: &str) -> Vec<String> {
    let mut found: Vec<String> = words(clause)
        .iter()
        .filter(|word| {
            word.len() > 2 && word.chars().all(|letter| letter.is_ascii_alphabetic() || letter == '\'')
        })
        .map(|word| word.split('\'').next().unwrap_or(word))
        .filter(|word| {
            word.len() > 2
                && !is_listed(GENERAL_WORDS, word)
                && !word.ends_with("ed")
                && !word.ends_with("ly")
        })
        .filter(|word| family_of_past(&[(*word).to_owned()]).is_none())
        .map(|word| word.strip_suffix('s').unwrap_or(word).chars().take(6).collect())
        .collect();
    let chinese = families().iter().flat_map(|family| &family.chinese);
    let general = CHINESE_GENERAL_NOUNS.iter().chain(chinese.map(|(verb, _)| verb));
    let rest = general.fold(clause.to_owned(), |rest, word| rest.replace(word, " "));
    let mut previous = None;
    for letter in rest.chars() {
        let is_telling = is_chinese(letter) && !CHINESE_GENERAL.contains(letter);
        if let (true, Some(before)) = (is_telling, previous) {
            found.push(format!("{before}{letter}"));
        }
        previous = is_telling.then_some(letter);
    }
    found
}

/// Words that fit every run.
const GENERAL_WORDS: &str = "the and you your yours for with from into onto that this these those them they its her his him she our has \
    have had was were are been will can not all both each every everything anything now already just also too well then than \
    there here done ready set good great okay yes sure of course fine new old two three four five six seven eight nine ten one \
    first second third last next change changes request requested asked ask want wanted job task thing things item items way \
    time today tomorrow out off over down away along together aside back again about after before when where which who what how why only still any some more \
    most other others another same right way place step steps let know please happy need needed enjoy luck night morning afternoon evening noon user \
    successfully until since during through because though around between against upon within toward without while under per via non instead soon once file files result results look looks went gone \
    calendar list inbox document page note email message event meeting reminder order branch folder sheet table record \
    row rows column columns cell cells line lines entry entries version copy \
    hour hours minute minutes day days week weeks month months year half quarter original memory";
const CHINESE_GENERAL: &str = "已经了也都把被将给你您我他她它们的在到为和与及并还顺便好请现就这那些个是吧啦呢哦一二三四五六七八九十两样";
/// Chinese nouns that fit every run.
const CHINESE_GENERAL_NOUNS: [&str; 23] = [
    "东西", "完毕", "一共", "共计", "两步", "全部", "成功", "日历", "文件", "邮件", "消息", "任务", "内容",
    "结果", "操作", "步骤", "记录", "清单", "列表", "页面", "日程", "里面", "可以",
];

/// Whether a word of a text starts with a stem.
fn has_stem(text: &str, stem: &str) -> bool {
    words(&text.replace('_', " ")).iter().any(|word| word.starts_with(stem))
}

/// Words of requests that are about all records.
const UNIVERSAL_WORDS: &str = "all every each everything everyone everybody";
const CHINESE_UNIVERSALS: [&str; 6] = ["每", "所有", "全部", "都", "各", "全都"];

fn is_listed(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
}

/// Words after "and" that name nothing.
const NO_ITEMS: &str = "ready available accessible visible complete correct fine working active live online running safe done \
    set closed open valid the it its they them this that these those all both everything there here now then will can \
    you your was were are has have had is does should no not nothing none so also only just still made put wrote sent \
    kept left took gave got went came did be been in on at to for from with of as by new other others more most each \
    every any some one two three four five works looks contains reads shows says takes up";

/// Capitalized words that are no names of people.
const CAPITALIZED: [&str; 40] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "german",
    "english",
    "chinese",
    "french",
    "spanish",
    "italian",
    "japanese",
    "korean",
    "portuguese",
    "russian",
    "excel",
    "github",
    "slack",
    "gmail",
    "google",
    "git",
    "markdown",
    "python",
    "today",
    "tomorrow",
    "the",
];
