//! What of a tool is placed by its meaning: where it lives, what it is called, what it does.

use crate::search::ToolText;

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
}
