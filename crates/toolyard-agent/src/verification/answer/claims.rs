//! The changes that an answer claims.

use super::{
    families::{Family, Kind, families, family_of_past},
    text::{clauses, has_chinese, is_chinese, sentences, without_quotes, words},
};

/// A clause of an answer that claims a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    /// The clause.
    pub(super) text: String,
    /// The sentence it is part of, with the list that follows it, and without what it says was left as it is.
    pub(super) sentence: String,
    /// The words of the clause that belong to the verb: "I saved it" of "I saved it and sent the rest".
    pub(super) part: String,
    pub(super) verb: ClaimedVerb,
    pub(super) voice: Voice,
    /// Whether its verb may also tell what happened: "docs moved".
    pub(super) is_weak: bool,
    /// Whether it is told as something that was done besides: "also", 顺便.
    pub(super) is_addition: bool,
}

impl Claim {
    /// Whether it tells when or by whom something was done.
    pub(super) fn tells_past(&self) -> bool {
        let words = words(&self.text);
        let has = |list: &str| words.iter().any(|word| is_listed(list, word));
        (has("was were had")
            && (has("by on in at ago last since yesterday")
                || self.text.contains(|letter: char| letter.is_ascii_digit())))
            || (has_chinese(&self.text) && !self.text.contains('已'))
    }

    /// Whether it describes what the sentence has named: "the domain is Anna's, registered in May".
    pub(super) fn is_apposition(&self) -> bool {
        let starts_with_verb = match &self.verb {
            ClaimedVerb::Known(_, stem) | ClaimedVerb::Unknown(stem) => {
                words(&self.text).first().is_some_and(|word| word.starts_with(stem.as_str()))
            }
        };
        !has_chinese(&self.text)
            && starts_with_verb
            && !self.sentence.trim_start().starts_with(self.text.as_str())
    }

    /// Whether it says that something that takes time has ended.
    pub(super) fn ends_process(&self) -> bool {
        match &self.verb {
            ClaimedVerb::Known(_, stem) | ClaimedVerb::Unknown(stem) => {
                is_listed("finish complet pass succeed approv", stem)
            }
        }
    }

    /// Whether it tells how something developed.
    pub(super) fn tells_from_to(&self) -> bool {
        let words = words(&self.text);
        words.iter().skip_while(|word| *word != "from").any(|word| word == "to")
    }

    /// Whether it does not say what was done.
    pub(super) fn says_only_done(&self) -> bool {
        matches!(&self.verb, ClaimedVerb::Known(family, _) if family.kind == Kind::Any)
    }
}

/// What a claim says was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ClaimedVerb {
    /// With the stem of the verb.
    Known(&'static Family, String),
    /// The stem of a verb that no family has; empty if there is none.
    Unknown(String),
}

/// Who made the change, as far as a clause tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    /// "I deleted it", "it was deleted for you".
    Own,
    /// "It has been deleted", 已删除: a change of now.
    Perfect,
    /// "It was deleted": may also describe what was read.
    Other,
}

/// Words of a clause that are read at most.
const MAX_CLAUSE_WORDS: usize = 200;
/// Characters of a negated attribute up to its 的.
const MAX_ATTRIBUTE_CHARS: usize = 5;
/// Words between a subject or auxiliary and its verb.
const ADVERBS: [&str; 14] = [
    "successfully",
    "now",
    "already",
    "also",
    "then",
    "just",
    "all",
    "both",
    "been",
    "being",
    "correctly",
    "have",
    "even",
    "automatically",
];
const AUXILIARIES: [&str; 8] = ["was", "were", "is", "are", "has", "be", "get", "got"];
const ADDITIONS: [&str; 5] = ["also", "too", "additionally", "besides", "plus"];
const CHINESE_ADDITIONS: [&str; 6] = ["也", "还", "顺便", "顺手", "另外", "同时"];
/// Words of clauses about what was left as it is.
const LEFT_WORDS: &str =
    "still stays stay stayed remains remain remained left kept keep keeps untouched unchanged except but";
const CHINESE_LEFT: [&str; 8] = ["没", "未", "不", "仍", "还在", "保留", "原样", "除"];
const FIRST_PERSONS: [&str; 6] = ["i", "we", "i've", "we've", "i'd", "toolyard"];
/// Words before a verb that deny it, or that speak of what may be.
const NEGATIONS: [&str; 31] = [
    "nobody", "not", "no", "never", "nothing", "none", "neither", "cannot", "can't", "couldn't", "wasn't",
    "weren't", "isn't", "aren't", "hasn't", "haven't", "didn't", "failed", "unable", "will", "would",
    "could", "should", "can", "may", "might", "if", "without", "once", "when", "before",
];
const CHINESE_NEGATIONS: [&str; 17] = [
    "未", "没有", "没能", "无法", "不能", "失败", "不会", "如果", "可以", "需要", "请", "不", "将会", "没",
    "应", "建议", "会把",
];
const CHINESE_OWN: [&str; 10] =
    ["我", "帮你", "帮您", "为你", "为您", "替你", "替您", "给你", "给您", "成功"];
/// Chinese verbs that change nothing.
const CHINESE_READING: [&str; 26] = [
    "试", "等", "选", "挑", "查", "看", "找", "读", "算", "统计", "比较", "搜索", "确认", "检查", "了解",
    "总结", "列", "分析", "获取", "得到", "发现", "汇总", "对比", "核对", "尝试", "知道",
];

/// The clauses of an answer that claim a change.
pub(super) fn claims(answer: &str) -> Vec<Claim> {
    let mut found = Vec::new();
    for sentence in sentences_with_lists(answer) {
        // "Shall I put someone on it?" claims nothing.
        if is_offer(&sentence) {
            continue;
        }
        let mut follows_claim = false;
        let mut previous = "";
        let plain = without_quotes(&sentence);
        for clause in clauses(&plain) {
            let mut of_clause = english_claims(clause);
            of_clause.extend(chinese_claims(clause, follows_claim));
            follows_claim |= !of_clause.is_empty();
            let scope = if of_clause.is_empty() { String::new() } else { scope(&sentence, clause) };
            // In "q1.pdf (27 pages) was sent", the subject is in another clause.
            let lacks_subject =
                words(clause).first().is_some_and(|word| AUXILIARIES.contains(&word.as_str()));
            found.extend(of_clause.into_iter().map(|claim| {
                let is_addition = is_addition(&claim.part);
                let part = if lacks_subject { format!("{} {previous}", claim.part) } else { claim.part };
                Claim { sentence: scope.clone(), part, is_addition, ..claim }
            }));
            if !lacks_subject && clause.split(' ').count() > previous.split(' ').count() {
                previous = clause;
            }
        }
    }
    found
}

/// Whether a sentence asks the user what to do next.
fn is_offer(sentence: &str) -> bool {
    const OFFERS: [&str; 9] = [
        "shall i",
        "should i",
        "do you want",
        "would you like",
        "want me to",
        "may i",
        "can i",
        "需要我",
        "要不要",
    ];
    let lower = sentence.to_lowercase();
    lower.trim_end().ends_with(['?', '？']) && OFFERS.iter().any(|offer| lower.contains(offer))
}

fn is_addition(clause: &str) -> bool {
    let words = words(clause);
    let says_as_well =
        words.windows(2).any(|pair| matches!(pair, [as_, well] if as_ == "as" && well == "well"));
    says_as_well
        || words.iter().any(|word| ADDITIONS.contains(&word.as_str()))
        || CHINESE_ADDITIONS.iter().any(|word| clause.contains(word))
        || clause.trim_start().starts_with('并')
}

/// The sentence without its other clauses about what was left as it is.
fn scope(sentence: &str, of_claim: &str) -> String {
    let is_left = |clause: &&str| {
        words(clause).iter().any(|word| is_listed(LEFT_WORDS, word) || NEGATIONS.contains(&word.as_str()))
            || CHINESE_LEFT.iter().any(|word| clause.contains(word))
    };
    let left: Vec<&str> =
        clauses(sentence).into_iter().filter(|clause| *clause != of_claim && is_left(clause)).collect();
    left.into_iter().fold(sentence.to_owned(), |rest, clause| rest.replace(clause, " "))
}

/// Whether an answer says that something was not or cannot be done.
pub(super) fn denies(answer: &str) -> bool {
    let word_denies = |word: &String| {
        let word = word.as_str();
        word.ends_with("n't")
            || matches!(
                word,
                "not" | "no" | "nothing" | "never" | "cannot" | "failed" | "unable" | "none" | "already"
            )
    };
    words(answer).iter().any(word_denies)
        || ["未", "没", "无", "不", "失败"].iter().any(|word| answer.contains(word))
}

/// Whether a sentence says that something was not done or was left as it is.
pub(super) fn denies_or_leaves(sentence: &str) -> bool {
    denies(sentence)
        || words(sentence).iter().any(|word| is_listed(LEFT_WORDS, word))
        || CHINESE_LEFT.iter().any(|word| sentence.contains(word))
}

/// The sentences of a text; a list belongs to the sentence before it that ends with a colon.
fn sentences_with_lists(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let parts = sentences(text).into_iter().flat_map(|sentence| sentence.split([';', '；']));
    for sentence in parts.map(str::trim) {
        let is_item = sentence.starts_with(['-', '*', '•'])
            || sentence.starts_with(|first: char| first.is_ascii_digit());
        match found.last_mut() {
            Some(last)
                if is_item
                    && last.lines().next().is_some_and(|line| line.trim_end().ends_with([':', '：'])) =>
            {
                last.push('\n');
                last.push_str(sentence);
            }
            _ => found.push(sentence.to_owned()),
        }
    }
    found
}

fn claim(text: &str, verb: ClaimedVerb, voice: Voice) -> Claim {
    let (text, part) = (text.to_owned(), text.to_owned());
    Claim { text, sentence: String::new(), part, verb, voice, is_weak: false, is_addition: false }
}

fn english_claims(clause: &str) -> Vec<Claim> {
    let mut words = words(clause);
    words.truncate(MAX_CLAUSE_WORDS);
    let mut found = past_claims(clause, &words);
    if let Some(send) = lets_know(&words) {
        found.push(claim(clause, ClaimedVerb::Known(send, "let".to_owned()), Voice::Own));
    }
    if let (true, Some(state)) = (found.is_empty(), state_of_now(&words)) {
        found.push(claim(clause, ClaimedVerb::Unknown(state.to_owned()), Voice::Perfect));
    }
    found
}

/// The claims of verbs in the past form.
fn past_claims(clause: &str, words: &[String]) -> Vec<Claim> {
    let word_at = |at: usize| words.get(at).map(String::as_str).unwrap_or_default();
    let is_for_user =
        words.windows(2).any(|pair| matches!(pair, [first, second] if first == "for" && second == "you"))
            || word_at(0) == "your";
    let is_now = words.iter().any(|word| matches!(word.as_str(), "now" | "again" | "already"));
    let mut found = Vec::new();
    let mut subject_is_own = false;
    for (at, word) in words.iter().enumerate() {
        let next = word_at(at + 1);
        let family = family_of_past(words.get(at..).unwrap_or_default());
        let before = words.get(..at).unwrap_or_default();
        let is_past = family.is_some() || looks_past(word);
        let is_nothing = matches!(next, "nothing" | "no" | "none" | "neither");
        if !is_past || is_negated(before) || is_nothing {
            continue;
        }
        let skipped = before.iter().rev().take_while(|word| is_adverb(word)).count();
        let (rest, adverbs) = before.split_at(before.len().saturating_sub(skipped));
        let subject = rest.last().map(String::as_str);
        let is_first_person = subject.is_some_and(|word| FIRST_PERSONS.contains(&word))
            || (subject_is_own && matches!(subject, Some("and" | "then")));
        subject_is_own |= is_first_person;
        let is_own = is_first_person || is_for_user || adverbs.iter().any(|word| word == "successfully");
        let is_perfect = is_now || adverbs.iter().any(|word| word == "been");
        let is_passive = adverbs.iter().any(|word| matches!(word.as_str(), "been" | "now"))
            || subject.is_some_and(|word| {
                AUXILIARIES.contains(&word) || word.ends_with("'s") || word.ends_with("'re")
            });
        // "Saved to total.txt", but not "Created by Anna" and not "Updated 3 days ago".
        let is_label = matches!(next, "by" | "on" | "at" | "ago") || words.iter().any(|word| word == "ago");
        let is_leading = subject.is_none() && !is_label;
        // "Door locked", "summary posted in #releases".
        let part = part_at(words, at);
        let is_reduced = !is_finite(&part)
            && !is_label
            && subject.is_some_and(|word| {
                !is_listed("and or the a an to of only all any these those no each every both new old", word)
            });
        let has_auxiliary = || before.iter().any(|word| AUXILIARIES.contains(&word.as_str()));
        let is_joined = matches!(subject, Some("and")) && (!found.is_empty() || has_auxiliary());
        let voice = match () {
            () if is_own => Voice::Own,
            () if is_perfect => Voice::Perfect,
            () => Voice::Other,
        };
        let stem = word.trim_end_matches("ed").to_owned();
        // "He confirmed": what others did must have been read.
        if is_listed(REACTIONS, word) && subject.is_some_and(is_other_person) {
            found.push(Claim { part, ..claim(clause, ClaimedVerb::Unknown(stem), Voice::Perfect) });
            continue;
        }
        let is_change = (word == "asked" && next == "for")
            || (word == "took" && is_listed("snapshot backup copy screenshot", word_at(at + 2)));
        let changes_nothing = is_listed(OTHER_PAST_VERBS, word) && !is_change;
        let is_told = is_own || is_passive || is_leading || is_joined;
        let (verb, voice) = match family {
            Some(family) if is_told => (ClaimedVerb::Known(family, stem), voice),
            // The first person with a verb that is not known: "I reticulated it".
            None if (is_first_person || (is_joined && !found.is_empty())) && !changes_nothing => {
                (ClaimedVerb::Unknown(stem), Voice::Own)
            }
            None if (is_passive || is_addition(&part)) && !changes_nothing => {
                (ClaimedVerb::Unknown(stem), voice)
            }
            Some(family) if is_reduced => (ClaimedVerb::Known(family, stem), voice),
            None if is_reduced && !changes_nothing => (ClaimedVerb::Unknown(stem), voice),
            _ => continue,
        };
        let is_weak = !(is_told || is_addition(&part));
        found.push(Claim { part, is_weak, ..claim(clause, verb, voice) });
    }
    found
}

/// Whether a part of a clause has a verb of its own.
fn is_finite(part: &str) -> bool {
    part.split(' ').any(|word| is_listed(FINITE_WORDS, word) || word.contains('\''))
}

fn is_other_person(subject: &str) -> bool {
    !FIRST_PERSONS.contains(&subject)
        && !AUXILIARIES.contains(&subject)
        && !is_listed("you and or to not the a an been being", subject)
        && !subject.contains('\'')
}

fn looks_past(word: &str) -> bool {
    // "Uncompressed" and "unread" tell what something is like.
    (word.ends_with("ed") && word.len() > 4 && !word.starts_with("un")) || is_listed(IRREGULAR_PAST, word)
}

/// The words around a verb up to conjunctions that lead to another verb.
fn part_at(words: &[String], verb: usize) -> String {
    let is_verb = |at: usize| {
        let rest = words.get(at..).unwrap_or_default();
        family_of_past(rest).is_some() || rest.first().is_some_and(|word| looks_past(word))
    };
    let is_joint = |at: usize| {
        matches!(words.get(at).map(String::as_str), Some("and" | "then" | "but" | "while" | "which"))
    };
    let (mut start, mut end) = (0, words.len());
    for at in (0..words.len()).filter(|at| is_joint(*at)) {
        let next = (at + 1..words.len()).find(|at| is_joint(*at)).unwrap_or(words.len());
        if !(at + 1..next).any(is_verb) {
            continue;
        }
        if at < verb {
            start = at + 1;
        } else {
            end = end.min(at);
        }
    }
    words.get(start..end).unwrap_or_default().join(" ")
}

/// "I let Tom know" sends something; "let me know" does not.
fn lets_know(words: &[String]) -> Option<&'static Family> {
    let at = words.iter().position(|word| word == "let")?;
    let rest = words.get(at + 1..)?;
    let is_told =
        rest.iter().take(4).any(|word| word == "know") && !matches!(rest.first()?.as_str(), "me" | "us");
    let is_negated = is_negated(words.get(..at)?);
    families().iter().find(|family| family.is_named("send") && is_told && !is_negated)
}

/// The word that says what is true now and was not before: "payments is healthy again".
fn state_of_now(words: &[String]) -> Option<&str> {
    let at = words.iter().rposition(|word| matches!(word.as_str(), "is" | "are") || word.ends_with("'s"))?;
    let rest = words.get(at + 1..)?;
    let is_again = rest.last().is_some_and(|word| matches!(word.as_str(), "again" | "now"));
    let state = rest.iter().find(|word| !is_adverb(word) && word.as_str() != "again")?;
    (is_again && !is_negated(words) && state.len() > 3).then_some(state.as_str())
}

fn is_adverb(word: &str) -> bool {
    ADVERBS.contains(&word) || (word.len() > 4 && word.ends_with("ly"))
}

fn is_listed(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
}

fn is_negated(before: &[String]) -> bool {
    let is_infinitive = matches!(before, [.., to] if to == "to")
        || matches!(before, [.., to, be] if to == "to" && be == "be");
    is_infinitive
        || before.iter().enumerate().any(|(at, word)| {
            let next = before.get(at + 1).map(String::as_str).unwrap_or_default();
            (NEGATIONS.contains(&word.as_str()) || word.ends_with("'ll") || word.ends_with("n't"))
                && !matches!((word.as_str(), next), ("not", "only") | ("no", "problem"))
        })
}

fn chinese_claims(clause: &str, follows_claim: bool) -> Vec<Claim> {
    let has_chinese = clause.chars().any(is_chinese);
    let is_negation = |word: &str| {
        clause.match_indices(word).any(|(at, _)| !is_attribute(clause.get(at..).unwrap_or_default()))
            && !is_fixed(clause, word)
    };
    // 已整理如下 presents what follows, and 表名写错了 tells of a failure.
    let is_other = clause.contains("如下") || clause.contains('错');
    if !has_chinese || is_other || CHINESE_NEGATIONS.iter().any(|word| is_negation(word)) {
        return Vec::new();
    }
    let is_own = CHINESE_OWN.iter().any(|word| clause.contains(word));
    // 已发送，并提醒他回复: what is joined to a claim is one, too.
    let goes_on = follows_claim && clause.trim_start().starts_with(['并', '还', '也', '又', '再']);
    let mut found: Vec<(&str, Claim)> = Vec::new();
    for family in families() {
        let verbs = family.chinese.iter().filter_map(|(verb, _)| Some((*verb, clause.find(verb)?)));
        for (verb, at) in verbs {
            let (before, after) =
                (clause.get(..at).unwrap_or_default(), clause.get(at + verb.len()..).unwrap_or_default());
            let says_done = verb.ends_with(['了', '好'])
                || ["完毕", "完成", "成功", "完"].iter().any(|word| after.starts_with(word))
                // In 评论删了, 了 belongs to the second verb.
                || (after.chars().take(3).any(|letter| letter == '了') && !starts_with_verb(after));
            // 加上了标签、指派给小林: the second verb is done, too.
            let is_joined = before.contains('了') && before.contains(['、', '并', '和', '再', '还', '又']);
            let said_before = is_joined
                || goes_on
                || ["已", "成功", "我把", "我将", "均", "都"].iter().any(|word| before.contains(word));
            if says_done || said_before {
                let starts = before.trim_start().starts_with('已');
                let voice = match () {
                    () if is_own => Voice::Own,
                    () if starts => Voice::Perfect,
                    () => Voice::Other,
                };
                found.push((verb, claim(clause, ClaimedVerb::Known(family, verb.to_owned()), voice)));
            }
        }
    }
    // 存档 is not 存, and 取消订阅 is not 取消.
    let longer: Vec<&str> = found.iter().map(|(verb, _)| *verb).collect();
    found.retain(|(verb, _)| !longer.iter().any(|other| other.len() > verb.len() && other.contains(verb)));
    let mut claims: Vec<Claim> = found.into_iter().map(|(_, claim)| claim).collect();
    // 比原来小了 84% compares.
    let says_done = (clause.contains('已') || clause.contains('了')) && !clause.contains('比');
    let reads = CHINESE_READING.iter().any(|verb| clause.contains(verb));
    if claims.is_empty() && (says_done || goes_on) && !reads {
        // 成功了 alone may tell what was read.
        let is_own = CHINESE_OWN.iter().any(|word| *word != "成功" && clause.contains(word));
        let voice = if is_own { Voice::Own } else { Voice::Other };
        claims.push(claim(clause, ClaimedVerb::Unknown(String::new()), voice));
    }
    claims
}

fn starts_with_verb(text: &str) -> bool {
    families().iter().flat_map(|family| &family.chinese).any(|(verb, _)| text.starts_with(verb))
}

/// Whether a negation describes a noun, not what was done: 未到的嘉宾.
fn is_attribute(from_negation: &str) -> bool {
    from_negation.chars().take(MAX_ATTRIBUTE_CHARS).any(|letter| letter == '的')
        && !from_negation.starts_with("不会")
}

/// Whether a word that looks like a negation is part of another: 不仅, 未读, 不错.
fn is_fixed(clause: &str, word: &str) -> bool {
    const FIXED: [&str; 8] = ["不仅", "不但", "未读", "不错", "不同", "没问题", "应用", "申请"];
    FIXED.iter().any(|fixed| fixed.contains(word) && clause.contains(fixed))
}

/// Words of clauses that have a verb of their own.
const FINITE_WORDS: &str = "is are was were has have had be been will would can could should may might must do does did i we you it he she they \
    there that which who shows contains includes needs comes takes says";

/// What others may have done in response.
const REACTIONS: &str =
    "confirmed accepted agreed replied answered approved declined responded acknowledged signed reacted";

/// Past forms of verbs that no family has.
const IRREGULAR_PAST: &str = "sold gave given took taken froze frozen spread shut hung lent withdrew withdrawn redid redone rebuilt resent threw thrown \
    chose chosen held cut reset laid lit swept dealt brought drove driven wound woke woken bound bent broke broken";

/// Verbs of the first person that change nothing: "I found", "I checked".
const OTHER_PAST_VERBS: &str = "read found checked looked searched calculated counted compared used noticed saw seen \
    summarized summarised listed reviewed retrieved fetched queried verified confirmed got received understood assumed \
    tried attempted failed computed determined identified gathered collected examined analyzed analysed inspected \
    considered thought wanted needed asked learned discovered located obtained viewed opened loaded extracted totalled \
    totaled figured concluded estimated decided picked selected guessed skipped encountered mentioned described \
    explained included excluded based double-checked looked named called needed expected stopped hoped limited converted \
    translated doubled started helped kept left stayed remained spared \
    ignored retained preserved omitted spent waited took unchanged untouched unaffected unmodified";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_found_and_denials_are_not() {
        for claim in [
            "The header row was translated.",
            "I've saved the total as total.txt.",
            "Successfully deleted old.txt!",
            "No problem, the file was renamed.",
            "The rows have been removed.",
            "Saved to total.txt",
            "Done.",
            "I have reticulated the splines",
            "Your seat is reserved",
            "文件已保存。",
            "我把它删除了",
            "没问题，已成功重命名。",
            "我已经帮您下单",
        ] {
            assert_eq!(claims(claim).len(), 1, "{claim}: {:?}", claims(claim));
        }
        for other in [
            "The file was not saved.",
            "I could not delete it",
            "Nothing was changed.",
            "I changed nothing.",
            "It will be saved when you approve.",
            "No file was created",
            "The highest month is July.",
            "Created by Anna",
            "I checked the folder",
            "I can delete it for you",
            "文件未保存",
            "无法删除",
            "需要的话我可以把它们标为已读",
        ] {
            assert_eq!(claims(other), [], "{other}");
        }
    }

    #[test]
    fn every_verb_of_a_clause_is_a_claim() {
        let names = |answer: &str| {
            let name = |claim: &Claim| match &claim.verb {
                ClaimedVerb::Known(family, _) => family.name.to_owned(),
                ClaimedVerb::Unknown(stem) => stem.clone(),
            };
            claims(answer).iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(names("I committed the two files and pushed them to origin."), ["commit", "push"]);
        assert_eq!(names("I restarted web and reticulated it"), ["restart", "reticulat"]);
        assert_eq!(names("Not only did I stage both files, I also committed them"), ["commit"]);
        assert_eq!(names("已发给王经理，并抄送了财务部"), ["send", "cc"]);
    }

    #[test]
    fn only_the_first_person_claims_an_own_change() {
        assert_eq!(claims("I deleted it")[0].voice, Voice::Own);
        assert_eq!(claims("The issue was closed")[0].voice, Voice::Other);
        assert_eq!(claims("The issue has been closed")[0].voice, Voice::Perfect);
    }
}
