//! The messages of a conversation that fit into a prompt.

use toolyard_model::{ModelMessage, Role};

use crate::TokenCounter;

/// A single message may use at most half of the token budget.
const MESSAGE_BUDGET_DIVISOR: usize = 2;
/// Tokens that a message costs besides its text.
const MESSAGE_OVERHEAD_TOKENS: usize = 4;
/// Tokens are rarely longer; very long texts are cut by this estimate before their tokens are counted.
const MAX_TOKEN_CHARS: usize = 12;
/// Texts are not truncated below this length.
const MIN_TRUNCATED_CHARS: usize = 8;

/// The latest messages that fit a token budget, in order. They start with a user's message; long ones are truncated in
/// the middle; tool messages are left out.
pub fn recent_history(
    history: &[ModelMessage],
    max_tokens: usize,
    counter: &dyn TokenCounter,
) -> Vec<ModelMessage> {
    let mut remaining = max_tokens;
    let mut recent: Vec<ModelMessage> = Vec::new();
    let is_included = |message: &&ModelMessage| {
        matches!(message.role, Role::User | Role::Assistant) && !message.text.trim().is_empty()
    };
    for message in history.iter().rev().filter(is_included) {
        let text = truncate_tokens(&message.text, max_tokens / MESSAGE_BUDGET_DIVISOR, counter);
        let Some(rest) = remaining.checked_sub(counter.count(&text) + MESSAGE_OVERHEAD_TOKENS) else { break };
        remaining = rest;
        recent.push(ModelMessage::new(message.role, text));
    }
    recent.reverse();
    let first = recent.iter().position(|message| message.role == Role::User).unwrap_or(recent.len());
    recent.split_off(first)
}

/// Truncates a text in the middle to about this many tokens.
fn truncate_tokens(text: &str, max_tokens: usize, counter: &dyn TokenCounter) -> String {
    // A token has at least one byte.
    if text.len() <= max_tokens {
        return text.to_owned();
    }
    let mut characters = text.chars().count();
    let mut short = text.to_owned();
    let estimate = max_tokens.saturating_mul(MAX_TOKEN_CHARS);
    if characters > estimate {
        characters = estimate;
        short = truncate_middle(text, characters);
    }
    while characters > MIN_TRUNCATED_CHARS && counter.count(&short) > max_tokens {
        characters = characters * 3 / 4;
        short = truncate_middle(text, characters);
    }
    short
}

/// Keeps `kept_chars` characters: two thirds from the start of the text, one third from its end.
fn truncate_middle(text: &str, kept_chars: usize) -> String {
    let (head, tail) = (kept_chars * 2 / 3, kept_chars / 3);
    let total = text.chars().count();
    let begin: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(total.saturating_sub(tail)).collect();
    format!("{begin} … {end}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::O200k;

    fn message(role: Role, text: &str) -> ModelMessage {
        ModelMessage::new(role, text)
    }

    #[test]
    fn the_latest_turns_fit_the_budget_without_tool_messages() {
        let history = [
            message(Role::User, "old question"),
            message(Role::Assistant, "old answer"),
            message(Role::User, "What is in test.xlsx?"),
            message(Role::Tool, "forty cells"),
            message(Role::Assistant, "Sales by month."),
        ];
        let texts = |tokens| -> Vec<String> {
            recent_history(&history, tokens, &O200k).into_iter().map(|message| message.text).collect()
        };
        assert_eq!(texts(1_000), ["old question", "old answer", "What is in test.xlsx?", "Sales by month."]);
        assert_eq!(texts(26), ["What is in test.xlsx?", "Sales by month."]);
        assert_eq!(texts(10), [""; 0], "an answer is dropped with its question");
    }

    #[test]
    fn long_messages_are_truncated_in_the_middle() {
        let long = format!("begin {} end", "word ".repeat(100_000));
        let shown = recent_history(&[message(Role::User, &long)], 200, &O200k);
        let text = &shown[0].text;
        assert!(text.starts_with("begin") && text.ends_with("end") && text.contains(" … "), "{text}");
        assert!(O200k.count(text) <= 100);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_token_budget_holds(texts in prop::collection::vec(".{0,400}", 0..8), tokens in 0..600_usize) {
            let role = |at: usize| if at.is_multiple_of(2) { Role::User } else { Role::Assistant };
            let history: Vec<ModelMessage> = texts.iter().enumerate().map(|(at, text)| message(role(at), text)).collect();
            let shown = recent_history(&history, tokens, &O200k);
            let used: usize = shown.iter().map(|message| O200k.count(&message.text)).sum();
            prop_assert!(used <= tokens);
            prop_assert!(shown.first().is_none_or(|message| message.role == Role::User));
        }
    }
}
