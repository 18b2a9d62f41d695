//! Tools that ask the person at the terminal what they must know before they go on.

use std::sync::Arc;

use serde_json::{Map, json};
use toolyard_core::{BoxFuture, CallQuestion, Caller, RawJson, Unanswered};
use toolyard_mcp::{
    client::{Form, FormError, FormField, InputHandler, InputRequest, NobodyToAsk, declined},
    wire::RpcError,
};
use unicode_width::UnicodeWidthStr as _;

use super::{
    person::Person,
    screen,
    tool_question::{Meant, meant, prompt},
    view::Stage,
};
use crate::output::{cut, harmless};

/// So often a person may say something that is no answer.
const TRIES: usize = 3;

/// So many columns of a line are left for what a person says.
const ROOM_FOR_ANSWERS: usize = 16;

/// JSON-RPC's code for parameters that cannot be.
const INVALID_PARAMS: i64 = -32602;

/// What servers are told of whom they can ask: the person at the terminal, during a call of an agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AskThePerson;

fn cancelled() -> RawJson {
    json!({"action": "cancel"}).into()
}

fn capabilities() -> RawJson {
    json!({"elicitation": {"form": {}}}).into()
}

impl InputHandler for AskThePerson {
    fn capabilities(&self) -> RawJson {
        capabilities()
    }

    fn answer<'a>(&'a self, request: InputRequest<'a>) -> BoxFuture<'a, Result<RawJson, RpcError>> {
        // Outside of calls nobody waits for a question.
        NobodyToAsk.answer(request)
    }
}

/// The person at the terminal, as a tool of a step can ask them.
#[derive(Debug)]
pub(super) struct StepPerson {
    pub(super) step: String,
    pub(super) person: Arc<Person>,
    pub(super) stage: Arc<Stage>,
}

impl Caller for StepPerson {
    fn capabilities(&self) -> RawJson {
        capabilities()
    }

    fn conversation(&self) -> u64 {
        u64::from(std::process::id())
    }

    fn ask<'a>(&'a self, questions: &'a [CallQuestion]) -> BoxFuture<'a, Result<Vec<RawJson>, Unanswered>> {
        Box::pin(async move {
            let _turn = self.person.turn().await;
            let _paused = self.stage.pause();
            let mut answers = Vec::with_capacity(questions.len());
            for question in questions {
                answers.push(self.answer(question).await?);
            }
            Ok(answers)
        })
    }
}

impl StepPerson {
    async fn answer(&self, question: &CallQuestion) -> Result<RawJson, Unanswered> {
        if question.method != "elicitation/create" {
            return Err(Unanswered::nobody());
        }
        let unreadable = |error: FormError| Unanswered { code: INVALID_PARAMS, message: error.to_string() };
        let form = Form::read(question.params.as_ref()).map_err(unreadable)?;
        self.say(&format!(" ? {}   {} asks: {}", self.step, question.source, form.message));
        match self.line("   answer it? [y]es [n]o ").await.as_deref().map(|line| line.trim().to_lowercase()) {
            None => return Ok(cancelled()),
            Some(word) if !matches!(word.as_str(), "y" | "yes") => return Ok(declined()),
            Some(_) => {}
        }
        let mut given = Map::new();
        for field in &form.fields {
            match self.said(field).await {
                Some(Meant::Value(value)) => drop(given.insert(field.name.clone(), value)),
                Some(Meant::Nothing) => {}
                Some(Meant::Unclear(_)) | None => return Ok(cancelled()),
            }
        }
        form.accepted(given).map_err(unreadable)
    }

    /// What the person says to one field, after a few tries.
    async fn said(&self, field: &FormField) -> Option<Meant> {
        for _ in 0..TRIES {
            let line = self.line(&format!("     {}", prompt(field))).await?;
            match meant(field, &line) {
                Meant::Unclear(why) => self.say(&format!("     {why}")),
                clear => return Some(clear),
            }
        }
        None
    }

    fn say(&self, text: &str) {
        // A tool's words neither steer the terminal nor pass for ours in lines of their own.
        let text = harmless(text);
        let lines: Vec<&str> = text.lines().collect();
        screen::write(&format!("{}\n", lines.join("\n     ")));
        self.stage.wrote(lines.len());
    }

    async fn line(&self, prompt: &str) -> Option<String> {
        let line = self.person.line(&fitting(prompt, screen::size().0)).await;
        self.stage.wrote(1);
        line
    }
}

/// A prompt on one line of a terminal, with room for an answer behind it: what is longer would leave remains. Its end stays: it
/// says what may be chosen, and what counts if nothing is said.
fn fitting(prompt: &str, columns: usize) -> String {
    let prompt = harmless(prompt).split('\n').collect::<Vec<_>>().join(" ");
    let room = columns.saturating_sub(ROOM_FOR_ANSWERS);
    if prompt.width() <= room {
        return prompt;
    }
    let end = end_of(&prompt, room / 2);
    format!("{}{end}", cut(&prompt, room - end.width()))
}

/// As much of the end of a text as fits into so many columns.
fn end_of(text: &str, columns: usize) -> &str {
    let mut start = text.len();
    while let Some((at, _)) = text.get(..start).and_then(|rest| rest.char_indices().next_back()) {
        if text.get(at..).unwrap_or_default().width() > columns {
            break;
        }
        start = at;
    }
    text.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_fits_into_its_line() {
        assert_eq!(fitting("   name: ", 100), "   name: ");
        assert_eq!(fitting("two\nlines: ", 100), "two lines: ");
        for columns in [21, 40, 100] {
            for long in ["word ".repeat(100), "字".repeat(100), "x\u{1b}[2J".repeat(100)] {
                let fitted = fitting(&format!("{long}, 7 if nothing is said: "), columns);
                assert!(
                    fitted.width() < columns && fitted.contains('…') && fitted.ends_with(": "),
                    "{fitted}"
                );
                assert!(columns < 100 || fitted.ends_with(", 7 if nothing is said: "), "{fitted}");
            }
        }
    }
}
