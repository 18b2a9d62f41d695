//! The texts of tools and requests that are embedded.

use crate::{document::ToolText, lexicon::WordTranslation};

/// How many glosses of a translated word are embedded; more of them blur the meaning.
const MAX_GLOSSES: usize = 2;

/// The text of a tool: source, name and description. Identifiers such as `getUserByID` are written as words, which models
/// know. Parameters are left out: they would make all tools similar ("the id of the …").
pub(crate) fn tool_embedding_text(source: &str, tool: &ToolText) -> String {
    let mut text = String::new();
    if !source.is_empty() {
        push_words(&mut text, source);
        text.push_str(": ");
    }
    push_words(&mut text, &tool.name);
    text.push_str(". ");
    if !tool.title.is_empty() {
        text.push_str(&tool.title);
        text.push_str(". ");
    }
    text.push_str(&tool.description);
    text
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

    #[test]
    fn identifiers_are_written_as_words() {
        let tool =
            |name: &str| ToolText { name: name.into(), description: "Does it".into(), ..ToolText::default() };
        let text = |source, name| tool_embedding_text(source, &tool(name));
        assert_eq!(text("github-official", "getUserByID"), "github official: get user by id. Does it");
        assert_eq!(text("", "HTTPServer_v2"), "http server v 2. Does it");
        assert_eq!(text("", "读取excel"), "读取excel. Does it");
        assert_eq!(text("", "--"), ". Does it");
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
