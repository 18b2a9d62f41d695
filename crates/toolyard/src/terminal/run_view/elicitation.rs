//! Elicitation at the terminal: the user fills in the form that a tool's server requests during a call.

use std::sync::Arc;

use serde_json::{Map, json};
use toolyard_core::{BoxFuture, CallInputError, CallInputKind, CallInputRequest, Caller, RawJson};
use toolyard_mcp_client::{ElicitationForm, FormError, FormField, declined_elicitation};
use unicode_width::UnicodeWidthStr as _;

use super::{
    approval_prompt::TerminalUser,
    form_input::{FieldInput, field_prompt, parse_input},
    screen,
    view_state::SharedViewState,
};
use crate::terminal::{live_region, sanitize, truncate_to_width};

/// Attempts per field before the form is cancelled.
const MAX_FIELD_ATTEMPTS: usize = 3;

/// Columns of a prompt's line that are left for input.
const INPUT_COLUMNS: usize = 16;

fn cancelled() -> RawJson {
    json!({"action": "cancel"}).into()
}

/// The caller of a step's tool call: prompts the user for elicited input.
#[derive(Debug)]
pub(super) struct StepElicitation {
    pub(super) step: String,
    pub(super) user: Arc<TerminalUser>,
    pub(super) view_state: Arc<SharedViewState>,
}

impl Caller for StepElicitation {
    fn capabilities(&self) -> RawJson {
        json!({"elicitation": {"form": {}}}).into()
    }

    fn session_id(&self) -> u64 {
        u64::from(std::process::id())
    }

    fn request_input<'a>(
        &'a self,
        requests: &'a [CallInputRequest],
    ) -> BoxFuture<'a, Result<Vec<RawJson>, CallInputError>> {
        Box::pin(async move {
            let _turn = self.user.turn().await;
            let _paused = self.view_state.pause();
            let mut answers = Vec::with_capacity(requests.len());
            for request in requests {
                answers.push(self.answer(request).await?);
            }
            Ok(answers)
        })
    }
}

impl StepElicitation {
    async fn answer(&self, request: &CallInputRequest) -> Result<RawJson, CallInputError> {
        if request.kind != CallInputKind::Elicitation {
            return Err(CallInputError::unsupported());
        }
        let invalid_form = |error: FormError| CallInputError::InvalidRequest(error.to_string());
        let form = ElicitationForm::read(request.params.as_ref()).map_err(invalid_form)?;
        self.show(&format!(" ? {}   {} asks: {}", self.step, request.source, form.message));
        match self
            .prompt_line("   answer? [y]es [n]o ")
            .await
            .as_deref()
            .map(|line| line.trim().to_lowercase())
        {
            None => return Ok(cancelled()),
            Some(word) if !matches!(word.as_str(), "y" | "yes") => return Ok(declined_elicitation()),
            Some(_) => {}
        }
        let mut values = Map::new();
        for field in &form.fields {
            match self.prompt_field(field).await {
                Some(FieldInput::Value(value)) => drop(values.insert(field.name.clone(), value)),
                Some(FieldInput::Empty) => {}
                Some(FieldInput::Invalid(_)) | None => return Ok(cancelled()),
            }
        }
        form.accept(values).map_err(invalid_form)
    }

    /// Prompts for one field until the input is valid, a few times.
    async fn prompt_field(&self, field: &FormField) -> Option<FieldInput> {
        for _ in 0..MAX_FIELD_ATTEMPTS {
            let line = self.prompt_line(&format!("     {}", field_prompt(field))).await?;
            match parse_input(field, &line) {
                FieldInput::Invalid(expected) => self.show(&format!("     {expected}")),
                input => return Some(input),
            }
        }
        None
    }

    fn show(&self, text: &str) {
        // A server's text must neither steer the terminal nor start a line that looks like ours.
        let text = sanitize(text);
        let lines: Vec<&str> = text.lines().collect();
        live_region::write(&format!("{}\n", lines.join("\n     ")));
        self.view_state.add_written(lines.len());
    }

    async fn prompt_line(&self, prompt: &str) -> Option<String> {
        let line = self.user.prompt_line(&fit_prompt(prompt, screen::stderr_columns())).await;
        self.view_state.add_written(1);
        line
    }
}

/// A prompt shortened to one line with room for input, so that redrawing leaves no remains. Its end, which lists choices
/// and the default, is preserved.
fn fit_prompt(prompt: &str, columns: usize) -> String {
    let prompt = sanitize(prompt).split('\n').collect::<Vec<_>>().join(" ");
    let room = columns.saturating_sub(INPUT_COLUMNS);
    if prompt.width() <= room {
        return prompt;
    }
    let end = suffix(&prompt, room / 2);
    format!("{}{end}", truncate_to_width(&prompt, room - end.width()))
}

/// The longest suffix of a text that fits into this many columns.
fn suffix(text: &str, columns: usize) -> &str {
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
    fn a_prompt_fits_into_one_line() {
        assert_eq!(fit_prompt("   name: ", 100), "   name: ");
        assert_eq!(fit_prompt("two\nlines: ", 100), "two lines: ");
        for columns in [21, 40, 100] {
            for long in ["word ".repeat(100), "字".repeat(100), "x\u{1b}[2J".repeat(100)] {
                let fitted = fit_prompt(&format!("{long}, default 7: "), columns);
                assert!(
                    fitted.width() < columns && fitted.contains('…') && fitted.ends_with(": "),
                    "{fitted}"
                );
                assert!(columns < 100 || fitted.ends_with(", default 7: "), "{fitted}");
            }
        }
    }
}
