//! [`Chat`]: a conversation with an agent. Every message is a run whose request carries the history.

use toolyard_core::RunId;
use toolyard_model::{ModelMessage, Role};

use crate::{
    Agent, AgentError, CancelToken, RunEnd, RunRequest, RunWatcher, TokenCounter, run_log::load_run,
};

/// A single message may use at most half of the token budget.
const MESSAGE_BUDGET_DIVISOR: usize = 2;
/// Tokens that a message costs besides its text.
const MESSAGE_OVERHEAD_TOKENS: usize = 4;

/// Older messages are dropped.
const MAX_HISTORY_MESSAGES: usize = 200;
/// Longer messages are truncated in the middle.
const MAX_MESSAGE_CHARS: usize = 20_000;
/// Tokens are rarely longer; very long texts are cut by this estimate before their tokens are counted.
const MAX_TOKEN_CHARS: usize = 12;
/// Texts are not truncated below this length.
const MIN_TRUNCATED_CHARS: usize = 8;

/// A conversation with an agent.
#[derive(Debug, Clone, Default)]
pub struct Chat {
    agent: String,
    history: Vec<ModelMessage>,
    /// Whether an answer may contain non-public data.
    has_private_answers: bool,
}

impl Chat {
    /// A new conversation with the agent of this name.
    pub fn new(agent: impl Into<String>) -> Self {
        Self { agent: agent.into(), ..Self::default() }
    }

    /// The messages so far, oldest first.
    pub fn history(&self) -> &[ModelMessage] {
        &self.history
    }

    /// Deletes the history.
    pub fn clear(&mut self) {
        self.history.clear();
        self.has_private_answers = false;
    }

    /// The request for the next message.
    pub fn request(&self, message: impl Into<String>) -> RunRequest {
        RunRequest {
            question: message.into(),
            history: self.history.clone(),
            public_history: !self.has_private_answers,
            agent: self.agent.clone(),
            ..RunRequest::default()
        }
    }

    /// Adds a message and its answer, if there is one, to the history.
    pub fn record(&mut self, message: &str, end: &RunEnd) {
        self.push(Role::User, message);
        if let RunEnd::Answered { answer, .. } = end {
            self.push(Role::Assistant, answer);
            self.has_private_answers = true;
        }
    }

    /// Runs a message, streams its progress and answer to `watcher`, and adds message and answer to the history;
    /// `stream_chat_message` in the specification.
    pub async fn stream_chat_message(
        &mut self,
        agent: &Agent,
        message: &str,
        watcher: &dyn RunWatcher,
        cancel: &CancelToken,
    ) -> Result<(RunId, RunEnd), AgentError> {
        let (run, end) = agent.ask(self.request(message), watcher, cancel).await?;
        let was_private = self.has_private_answers;
        self.record(message, &end);
        let (state, _) = load_run(&*agent.parts.log, &run).await?;
        self.has_private_answers = was_private || !state.data_sources().is_empty();
        Ok((run, end))
    }

    fn push(&mut self, role: Role, text: &str) {
        let text = if text.chars().nth(MAX_MESSAGE_CHARS).is_some() {
            truncate_middle(text, MAX_MESSAGE_CHARS)
        } else {
            text.to_owned()
        };
        self.history.push(ModelMessage::new(role, text));
        let excess = self.history.len().saturating_sub(MAX_HISTORY_MESSAGES);
        self.history.drain(..excess);
    }
}

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
    fn the_history_is_kept_and_bounded() {
        let mut chat = Chat::new("assistant");
        let answered = |answer: &str| RunEnd::Answered {
            answer: answer.to_owned(),
            sources: Vec::new(),
            truncated: false,
        };
        chat.record("Hello", &answered("Hello!"));
        chat.record("Stop", &RunEnd::Cancelled);
        let request = chat.request("Again");
        let texts: Vec<&str> = request.history.iter().map(|message| message.text.as_str()).collect();
        assert_eq!(
            (texts.as_slice(), request.question.as_str(), request.agent.as_str()),
            (&["Hello", "Hello!", "Stop"][..], "Again", "assistant")
        );
        for _ in 0..MAX_HISTORY_MESSAGES {
            chat.record(&"x".repeat(3 * MAX_MESSAGE_CHARS), &answered("y"));
        }
        assert_eq!(chat.history().len(), MAX_HISTORY_MESSAGES);
        assert!(chat.history().iter().all(|message| message.text.chars().count() <= MAX_MESSAGE_CHARS + 3));
        chat.clear();
        assert!(chat.history().is_empty());
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
