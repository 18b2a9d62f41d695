//! What of a tool is placed by its meaning: where it lives, what it is called, what it does.

use crate::search::ToolText;
use crate::search::lexicon::Meaning;

/// How many of a word's meanings a model is shown: more of them say less.
const GLOSSES: usize = 2;

/// The text of a tool for a model: names are written as words, since no model has read `getUserByID`.
///
/// Parameters are left out: they say how a tool is called, and draw every vector towards "the id of the …".
pub fn meaning_text(server: &str, tool: &ToolText) -> String {
    let mut text = String::new();
    if !server.is_empty() {
        push_words(&mut text, server);
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

/// A request for a model that knows one language: the words that a lexicon knows are replaced by what they mean.
pub fn request_text(text: &str, meanings: &[Meaning]) -> String {
    let mut spoken = String::with_capacity(text.len());
    let mut done = 0;
    for meaning in meanings {
        if meaning.word.start < done {
            continue;
        }
        let Some(between) = text.get(done..meaning.word.start) else { continue };
        spoken.push_str(between);
        for word in meaning.glosses.iter().take(GLOSSES).flatten() {
            spoken.push(' ');
            spoken.push_str(word);
        }
        spoken.push(' ');
        done = meaning.word.end;
    }
    spoken.push_str(text.get(done..).unwrap_or_default());
    spoken
}

/// `getUserByID` and `get-user_by_id` as `get user by id`.
fn push_words(text: &mut String, name: &str) {
    let mut before = ' ';
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        if !letter.is_alphanumeric() {
            before = ' ';
            continue;
        }
        let next_is_lower = letters.peek().is_some_and(|next| next.is_lowercase());
        let humps = letter.is_uppercase() && (!before.is_uppercase() || next_is_lower);
        let digits = before.is_numeric() != letter.is_numeric();
        if (before == ' ' || humps || digits) && !text.is_empty() && !text.ends_with(' ') {
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
    fn writes_names_as_words() {
        let tool =
            |name: &str| ToolText { name: name.into(), description: "Does it".into(), ..ToolText::default() };
        let text = |server, name| meaning_text(server, &tool(name));
        assert_eq!(text("github-official", "getUserByID"), "github official: get user by id. Does it");
        assert_eq!(text("", "HTTPServer_v2"), "http server v 2. Does it");
        assert_eq!(text("", "读取excel"), "读取excel. Does it");
        assert_eq!(text("", "--"), ". Does it");
    }

    #[test]
    fn says_a_request_in_the_words_of_the_model() {
        let meaning = |word, glosses: &[&str]| Meaning {
            word,
            glosses: glosses.iter().map(|gloss| gloss.split(' ').map(str::to_owned).collect()).collect(),
        };
        let meanings = [
            meaning(0..6, &["send", "dispatch", "issue"]),
            meaning(0..3, &["overlaps"]),
            meaning(7..13, &["electronic mail"]),
            meaning(90..96, &["outside"]),
        ];
        assert_eq!(request_text("发送 邮件 to Bob", &meanings), " send dispatch   electronic mail  to Bob");
        assert_eq!(request_text("no words", &[]), "no words");
    }
}
