//! A conversation with an agent: every message is a run that knows what was said before, within a budget.

use toolyard_core::RunId;
use toolyard_model::{ModelMessage, Role};

use crate::{Agent, AgentError, Ask, CancelToken, RunEnd, RunWatcher, TokenCount};

/// A single message is cut to this part of the budget.
const SHARE: usize = 2;
/// Tokens that a message costs besides its text.
const OVERHEAD: usize = 4;

/// So much of a conversation is remembered; the oldest is forgotten first.
const MOST_MESSAGES: usize = 200;
/// So much of one message, in characters.
const MOST_CHARACTERS: usize = 20_000;

/// A conversation with an agent.
#[derive(Debug, Clone, Default)]
pub struct Chat {
    agent: String,
    history: Vec<ModelMessage>,
}

impl Chat {
    /// A conversation with the agent of this name that begins now.
    pub fn new(agent: impl Into<String>) -> Self {
        Self { agent: agent.into(), history: Vec::new() }
    }

    /// A conversation that goes on.
    #[must_use]
    pub fn with_history(mut self, history: impl IntoIterator<Item = ModelMessage>) -> Self {
        for message in history {
            self.remember(message.role, &message.text);
        }
        self
    }

    /// What was said so far, the oldest first.
    pub fn history(&self) -> &[ModelMessage] {
        &self.history
    }

    /// Forgets what was said.
    pub fn clear(&mut self) {
        self.history.clear();
    }

    /// The next message as a question that knows what was said before.
    pub fn question(&self, message: impl Into<String>) -> Ask {
        Ask {
            question: message.into(),
            history: self.history.clone(),
            agent: self.agent.clone(),
            ..Ask::default()
        }
    }

    /// Remembers a message and what came of it. A run without an answer leaves only what the person said.
    pub fn take(&mut self, message: &str, end: &RunEnd) {
        self.remember(Role::User, message);
        if let RunEnd::Answered { answer, .. } = end {
            self.remember(Role::Assistant, answer);
        }
    }

    /// The seeds' `stream_chat_message`: carries out a message, tells `watcher` everything on the way, the answer word by
    /// word, and remembers both.
    pub async fn stream_chat_message(
        &mut self,
        agent: &Agent,
        message: &str,
        watcher: &dyn RunWatcher,
        stop: &CancelToken,
    ) -> Result<(RunId, RunEnd), AgentError> {
        let (run, end) = agent.ask(self.question(message), watcher, stop).await?;
        self.take(message, &end);
        Ok((run, end))
    }

    fn remember(&mut self, role: Role, text: &str) {
        let text = if text.chars().nth(MOST_CHARACTERS).is_some() {
            middle_out(text, MOST_CHARACTERS)
        } else {
            text.to_owned()
        };
        self.history.push(ModelMessage::new(role, text));
        let beyond = self.history.len().saturating_sub(MOST_MESSAGES);
        self.history.drain(..beyond);
    }
}

/// The latest messages of a conversation that fit a budget of tokens, in their order. They begin with a person's word;
/// long ones are cut in their middle; what tools said is not shown again.
pub fn recent(history: &[ModelMessage], tokens: usize, counter: &dyn TokenCount) -> Vec<ModelMessage> {
    let mut left = tokens;
    let mut kept: Vec<ModelMessage> = Vec::new();
    let spoken = |message: &&ModelMessage| {
        matches!(message.role, Role::User | Role::Assistant) && !message.text.trim().is_empty()
    };
    for message in history.iter().rev().filter(spoken) {
        let text = shortened(&message.text, tokens / SHARE, counter);
        let Some(rest) = left.checked_sub(counter.count(&text) + OVERHEAD) else { break };
        left = rest;
        kept.push(ModelMessage::new(message.role, text));
    }
    kept.reverse();
    let first = kept.iter().position(|message| message.role == Role::User).unwrap_or(kept.len());
    kept.split_off(first)
}

/// A text of at most so many tokens, about: its beginning and its end.
fn shortened(text: &str, tokens: usize, counter: &dyn TokenCount) -> String {
    if text.len() <= tokens {
        return text.to_owned();
    }
    let mut characters = text.chars().count();
    let mut short = text.to_owned();
    // Long texts are not counted whole before they are cut: a token is rarely longer than a word.
    if characters > tokens.saturating_mul(12) {
        characters = tokens.saturating_mul(12);
        short = middle_out(text, characters);
    }
    while characters > 8 && counter.count(&short) > tokens {
        characters = characters * 3 / 4;
        short = middle_out(text, characters);
    }
    short
}

/// The first two thirds and the last third of so many characters.
fn middle_out(text: &str, characters: usize) -> String {
    let (head, tail) = (characters * 2 / 3, characters / 3);
    let all = text.chars().count();
    let begin: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(all.saturating_sub(tail)).collect();
    format!("{begin} … {end}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::O200k;

    fn said(role: Role, text: &str) -> ModelMessage {
        ModelMessage::new(role, text)
    }

    #[test]
    fn the_latest_turns_are_shown_and_tools_are_not() {
        let history = [
            said(Role::User, "old question"),
            said(Role::Assistant, "old answer"),
            said(Role::User, "What is in test.xlsx?"),
            said(Role::Tool, "forty cells"),
            said(Role::Assistant, "Sales by month."),
        ];
        let texts = |tokens| -> Vec<String> {
            recent(&history, tokens, &O200k).into_iter().map(|message| message.text).collect()
        };
        assert_eq!(texts(1_000), ["old question", "old answer", "What is in test.xlsx?", "Sales by month."]);
        assert_eq!(texts(26), ["What is in test.xlsx?", "Sales by month."]);
        assert_eq!(texts(10), [""; 0], "an answer without its question says nothing");
    }

    #[test]
    fn a_conversation_is_remembered_and_bounded() {
        let mut chat = Chat::new("assistant");
        let answered = |answer: &str| RunEnd::Answered {
            answer: answer.to_owned(),
            sources: Vec::new(),
            cut_off: false,
        };
        chat.take("Hello", &answered("Hello!"));
        chat.take("Stop", &RunEnd::Cancelled);
        let ask = chat.question("Again");
        let said: Vec<&str> = ask.history.iter().map(|message| message.text.as_str()).collect();
        assert_eq!(
            (said.as_slice(), ask.question.as_str(), ask.agent.as_str()),
            (&["Hello", "Hello!", "Stop"][..], "Again", "assistant")
        );
        for _ in 0..MOST_MESSAGES {
            chat.take(&"x".repeat(3 * MOST_CHARACTERS), &answered("y"));
        }
        assert_eq!(chat.history().len(), MOST_MESSAGES);
        assert!(chat.history().iter().all(|message| message.text.chars().count() <= MOST_CHARACTERS + 3));
        chat.clear();
        assert!(chat.history().is_empty());
    }

    #[test]
    fn a_long_message_loses_its_middle() {
        let long = format!("begin {} end", "word ".repeat(100_000));
        let shown = recent(&[said(Role::User, &long)], 200, &O200k);
        let text = &shown[0].text;
        assert!(text.starts_with("begin") && text.ends_with("end") && text.contains(" … "), "{text}");
        assert!(O200k.count(text) <= 100);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_budget_is_kept(texts in prop::collection::vec(".{0,400}", 0..8), tokens in 0..600_usize) {
            let role = |at: usize| if at.is_multiple_of(2) { Role::User } else { Role::Assistant };
            let history: Vec<ModelMessage> = texts.iter().enumerate().map(|(at, text)| said(role(at), text)).collect();
            let shown = recent(&history, tokens, &O200k);
            let used: usize = shown.iter().map(|message| O200k.count(&message.text)).sum();
            prop_assert!(used <= tokens);
            prop_assert!(shown.first().is_none_or(|message| message.role == Role::User));
        }
    }
}
