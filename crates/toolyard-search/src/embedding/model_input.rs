//! The texts of tools and requests that are embedded.

use crate::{document::ToolText, lexicon::WordTranslation};

/// How many glosses of a translated word are embedded; more of them blur the meaning.
const MAX_GLOSSES: usize = 2;

/// A first sentence is at least this long: shorter ones are abbreviations ("e.g.") or say little.
const MIN_SENTENCE_CHARS: usize = 20;
/// Length of the first sentence of a description that has no full stop.
const MAX_SENTENCE_CHARS: usize = 200;

/// The texts of a tool, from short to long: source and name; with the first sentence of its description; with the whole
/// description. A request is compared with each of them, because a long text blurs what a tool does and a short one may
/// not say it. Identifiers such as `getUserByID` are written as words, which models know. Parameters are left out: they
/// would make all tools similar ("the id of the …").
pub(crate) fn tool_embedding_texts(source: &str, tool: &ToolText) -> Vec<String> {
    let mut name = String::new();
    if !source.is_empty() {
        push_words(&mut name, source);
        name.push_str(": ");
    }
    push_words(&mut name, &tool.name);
    let description = tool.description.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = first_sentence(&description);
    let mut texts = Vec::with_capacity(3);
    if !description.is_empty() {
        texts.push(format!("{name}. {sentence}"));
    }
    if sentence.len() < description.len() {
        texts.push(format!("{name}. {description}"));
    }
    texts.insert(0, name);
    texts
}

/// The first sentence of a text without line breaks.
fn first_sentence(text: &str) -> &str {
    let mut letters = text.char_indices().skip(MIN_SENTENCE_CHARS).peekable();
    while let Some((at, letter)) = letters.next() {
        let is_end = match letter {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' => letters.peek().is_none_or(|(_, next)| next.is_whitespace()),
            _ => false,
        };
        if is_end {
            return text.get(..at + letter.len_utf8()).unwrap_or(text);
        }
    }
    let end = text.char_indices().nth(MAX_SENTENCE_CHARS).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or(text)
}

/// The text of a request, with translated words replaced by their glosses: most models know one language.
pub(crate) fn query_embedding_text(text: &str, translations: &[WordTranslation]) -> String {
    let mut translated = String::with_capacity(text.len());
    let mut consumed = 0;
    for translation in translations {
        if translation.range.start < consumed {
            continue;
        }
        let Some(between) = text.get(consumed..translation.range.start) else { continue };
        translated.push_str(between);
        for word in translation.glosses.iter().take(MAX_GLOSSES).flatten() {
            translated.push(' ');
            translated.push_str(word);
        }
        translated.push(' ');
        consumed = translation.range.end;
    }
    translated.push_str(text.get(consumed..).unwrap_or_default());
    translated
}

/// Appends an identifier as words: `getUserByID` and `get-user_by_id` as `get user by id`.
fn push_words(text: &mut String, name: &str) {
    let mut before = ' ';
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        if !letter.is_alphanumeric() {
            before = ' ';
            continue;
        }
        let next_is_lower = letters.peek().is_some_and(|next| next.is_lowercase());
        let starts_word = letter.is_uppercase() && (!before.is_uppercase() || next_is_lower);
        let starts_or_ends_digits = before.is_numeric() != letter.is_numeric();
        if (before == ' ' || starts_word || starts_or_ends_digits) && !text.is_empty() && !text.ends_with(' ')
        {
            text.push(' ');
        }
        text.extend(letter.to_lowercase());
        before = letter;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str, name: &str, description: &str) -> Vec<String> {
        let tool = ToolText { name: name.into(), description: description.into(), ..ToolText::default() };
        tool_embedding_texts(source, &tool)
    }

    #[test]
    fn identifiers_are_written_as_words() {
        let name = |source, name| texts(source, name, "").concat();
        assert_eq!(name("github-official", "getUserByID"), "github official: get user by id");
        assert_eq!(name("", "HTTPServer_v2"), "http server v 2");
        assert_eq!(name("", "读取excel"), "读取excel");
        assert_eq!(name("", "--"), "");
    }

    #[test]
    fn a_tool_has_up_to_three_texts() {
        assert_eq!(texts("mail", "send", ""), ["mail: send"]);
        assert_eq!(texts("mail", "send", " Sends\n it. "), ["mail: send", "mail: send. Sends it."]);
        let long = "Sends a mail, e.g. to a list of people. Fails offline.";
        let sentence = "mail: send. Sends a mail, e.g. to a list of people.";
        assert_eq!(texts("mail", "send", long), ["mail: send", sentence, &format!("mail: send. {long}")]);
    }

    #[test]
    fn sentences_end_at_a_full_stop_of_any_script() {
        assert_eq!(first_sentence(&"长".repeat(30)).chars().count(), 30);
        assert_eq!(first_sentence(&format!("{}。后面", "长".repeat(30))).chars().count(), 31);
        assert_eq!(first_sentence(&"x".repeat(300)).len(), MAX_SENTENCE_CHARS);
        assert_eq!(first_sentence("version 1.2.3.4.5.6.7.8 of it. More"), "version 1.2.3.4.5.6.7.8 of it.");
    }

    #[test]
    fn translated_words_are_replaced() {
        let translation = |range, glosses: &[&str]| WordTranslation {
            range,
            glosses: glosses.iter().map(|gloss| gloss.split(' ').map(str::to_owned).collect()).collect(),
        };
        let translations = [
            translation(0..6, &["send", "dispatch", "issue"]),
            translation(0..3, &["overlaps"]),
            translation(7..13, &["electronic mail"]),
            translation(90..96, &["outside"]),
        ];
        assert_eq!(
            query_embedding_text("发送 邮件 to Bob", &translations),
            " send dispatch   electronic mail  to Bob"
        );
        assert_eq!(query_embedding_text("no words", &[]), "no words");
    }
}
