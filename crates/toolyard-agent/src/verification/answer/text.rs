//! Splits texts into sentences, clauses and words, and compares texts of two languages.

/// Characters that end a clause.
const CLAUSE_ENDS: [char; 19] =
    ['!', '?', ';', '\n', ',', ':', '。', '！', '？', '；', '，', '：', '—', '|', '…', '(', ')', '（', '）'];

/// The clauses of a text, trimmed, without empty ones. A period, colon or comma within a word belongs to it:
/// `sales.xlsx`, `C:\data`, `A1:D1`, `1,350`.
pub(super) fn clauses(text: &str) -> Vec<&str> {
    split_at(text, |character, before_space| match character {
        '.' | ':' | ',' => before_space,
        _ => CLAUSE_ENDS.contains(&character),
    })
}

/// The sentences of a text.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    split_after(text, |character, before_space| match character {
        '.' | '!' | '?' => before_space,
        _ => matches!(character, '\n' | '。' | '！' | '？'),
    })
}

fn split_at(text: &str, is_end: impl Fn(char, bool) -> bool) -> Vec<&str> {
    split(text, is_end, false)
}

/// Like [`split_at`], but the parts keep the characters that end them.
fn split_after(text: &str, is_end: impl Fn(char, bool) -> bool) -> Vec<&str> {
    split(text, is_end, true)
}

fn split(text: &str, is_end: impl Fn(char, bool) -> bool, keeps_ends: bool) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut characters = text.char_indices().peekable();
    let mut previous = ' ';
    while let Some((at, character)) = characters.next() {
        // In Chinese text, no space follows a mark: 还有71箱,够用.
        let is_in_chinese = |next: char| is_chinese(previous) || is_chinese(next) || closes_quote(previous);
        let before_space = characters.peek().is_none_or(|(_, next)| {
            next.is_whitespace() || (matches!(character, ',' | ':' | '?' | '!') && is_in_chinese(*next))
        });
        previous = character;
        if is_end(character, before_space) {
            let next = at + character.len_utf8();
            found.push(text.get(start..if keeps_ends { next } else { at }).unwrap_or_default());
            start = next;
        }
    }
    found.push(text.get(start..).unwrap_or_default());
    found.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// The words of a text in lower case. Apostrophes belong to a word, other punctuation does not.
pub(super) fn words(text: &str) -> Vec<String> {
    let is_separator = |letter: char| !(letter.is_alphanumeric() || matches!(letter, '\'' | '’'));
    let words = text.split(is_separator).filter(|word| !word.is_empty());
    words.map(|word| word.to_lowercase().replace('’', "'")).collect()
}

/// The words of a tool's name: `readFile` and `read-file` are `read`, `file`.
pub(super) fn name_words(name: &str) -> Vec<String> {
    let mut text = String::with_capacity(name.len() + 4);
    let mut after_lowercase = false;
    for letter in name.chars() {
        if letter.is_uppercase() && after_lowercase {
            text.push(' ');
        }
        after_lowercase = letter.is_lowercase();
        text.push(if matches!(letter, '_' | '-' | '.' | '/') { ' ' } else { letter });
    }
    words(&text)
}

pub(super) fn is_chinese(letter: char) -> bool {
    matches!(letter, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

pub(super) fn has_chinese(text: &str) -> bool {
    text.chars().any(is_chinese)
}

/// Whether a text is in a language whose claims can be found: Chinese, English, or hardly any language at all.
pub(super) fn is_judged_language(text: &str) -> bool {
    const ENGLISH: &str =
        "the is are has have been and to of your you it i with done for this from now that i've we my";
    let words = words(text);
    let is_latin = |word: &&String| word.len() > 1 && word.chars().all(char::is_alphabetic);
    text.chars().any(is_chinese)
        || words.iter().filter(is_latin).count() < 4
        || words.iter().any(|word| ENGLISH.split(' ').any(|known| known == word))
}

/// Whether `text` contains `part` as whole words. Chinese has no word boundaries.
pub(super) fn contains_word(text: &str, part: &str) -> bool {
    let is_boundary = |letter: Option<char>, edge: Option<char>| {
        let joins = |letter: char| letter.is_alphanumeric() && !is_chinese(letter);
        !(letter.is_some_and(joins) && edge.is_some_and(joins))
    };
    !part.is_empty()
        && text.match_indices(part).any(|(at, _)| {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            let after = text.get(at + part.len()..).and_then(|after| after.chars().next());
            is_boundary(before, part.chars().next()) && is_boundary(after, part.chars().next_back())
        })
}

/// The text without quoted passages and without lines that quote (`> …`).
pub(super) fn without_quotes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in text.lines().filter(|line| !line.trim_start().starts_with('>')) {
        let mut closing = None;
        for letter in line.chars() {
            match (closing, letter) {
                (Some(end), letter) if letter == end => closing = None,
                (Some(_), _) => {}
                (None, _) => match closing_quote(letter) {
                    // A quote that is not closed on its line is an apostrophe or an inch.
                    Some(end) if has_closing(line, letter, end) => {
                        closing = Some(end);
                        plain.push('“');
                    }
                    _ => plain.push(letter),
                },
            }
        }
        plain.push('\n');
    }
    plain
}

fn closes_quote(letter: char) -> bool {
    matches!(letter, '”' | '」' | '』' | '》')
}

fn has_closing(line: &str, start: char, end: char) -> bool {
    if start == end { line.matches(start).count().is_multiple_of(2) } else { line.contains(end) }
}

fn closing_quote(letter: char) -> Option<char> {
    match letter {
        '"' => Some('"'),
        '“' => Some('”'),
        '「' => Some('」'),
        '『' => Some('』'),
        '《' => Some('》'),
        '`' => Some('`'),
        _ => None,
    }
}

/// The quoted passages of a text.
pub(super) fn quotes(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut open: Option<(char, String)> = None;
        for letter in line.chars() {
            open = match open {
                Some((end, passage)) if letter == end => {
                    found.push(passage);
                    None
                }
                Some((end, mut passage)) => {
                    passage.push(letter);
                    Some((end, passage))
                }
                None => closing_quote(letter).map(|end| (end, String::new())),
            };
        }
    }
    found.retain(|passage| !passage.trim().is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_end_at_punctuation_and_not_within_names() {
        assert_eq!(
            clauses("No problem, sales.xlsx was saved. Done!"),
            ["No problem", "sales.xlsx was saved", "Done"]
        );
        assert_eq!(
            clauses("把 a.txt 改名为 b.txt，然后删除 c.txt。"),
            ["把 a.txt 改名为 b.txt", "然后删除 c.txt"]
        );
        assert_eq!(clauses("A1:D1 is 1,350"), ["A1:D1 is 1,350"]);
    }

    #[test]
    fn quoted_passages_are_told_apart() {
        assert_eq!(without_quotes("commit it with \"Delete all\" now").trim(), "commit it with “ now");
        assert_eq!(without_quotes("> was deleted\nyes").trim(), "yes");
        assert_eq!(quotes("“旧项目”和“旧客户”"), ["旧项目", "旧客户"]);
    }

    #[test]
    fn only_english_and_chinese_are_judged() {
        assert!(
            is_judged_language("The file is saved.")
                && is_judged_language("已保存。")
                && is_judged_language("OK")
        );
        assert!(!is_judged_language("Die Kopfzeile lautet jetzt Artikel, Menge, Einheit."));
        assert!(!is_judged_language("Le fichier a été enregistré dans le dossier partagé."));
    }

    #[test]
    fn words_are_found_whole() {
        assert!(contains_word("id: ev81, x", "ev81"));
        assert!(!contains_word("id: ev812", "ev81"));
        assert!(contains_word("给张伟发", "张伟"));
    }
}
