//! Asks the user at the terminal whether a tool call may be made.

use std::{io::IsTerminal as _, sync::Arc};

use toolyard_agent::{ApprovalDecision, ApprovalRequest, CancelToken};

use super::{arguments, screen};
use crate::terminal::{live_region, sanitize};

/// Lines of arguments that are shown without `[d]etails`.
const MAX_ARGUMENT_LINES: usize = 20;
const INDENT: &str = "     ";

#[derive(Debug)]
pub(crate) enum ApprovalMode {
    ApproveAll,
    Prompt(Arc<TerminalUser>),
    /// There is no terminal to prompt at: the run is suspended.
    Suspend,
}

/// The user at the terminal, who is asked one question at a time.
#[derive(Debug, Default)]
pub(crate) struct TerminalUser {
    turn: tokio::sync::Mutex<()>,
    pub(super) stop: CancelToken,
}

impl ApprovalMode {
    /// Prompts if there is an interactive terminal, unless all calls are approved.
    pub(crate) fn new(approve_all: bool, stop: &CancelToken) -> Self {
        if approve_all {
            Self::ApproveAll
        } else if is_interactive() {
            Self::Prompt(Arc::new(TerminalUser { stop: stop.clone(), ..TerminalUser::default() }))
        } else {
            Self::Suspend
        }
    }
}

/// Whether stdin and stderr are terminals, so that the user can be prompted.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// A line entered at the approval prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PromptInput {
    Decision(ApprovalDecision),
    Details,
    Invalid,
}

impl TerminalUser {
    /// Waits for the turn to ask.
    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Prompts until the input is valid. `is_step_shown` says that the step is already on the screen. Returns the decision,
    /// `None` at end of input, and the number of lines written.
    pub(super) async fn decide(
        &self,
        request: &ApprovalRequest,
        is_step_shown: bool,
    ) -> (Option<ApprovalDecision>, usize) {
        let mut lines = 0;
        let mut show = |text: &[String]| {
            lines += text.len();
            if !text.is_empty() {
                live_region::write(&format!("{}\n", text.join("\n")));
            }
        };
        if !is_step_shown {
            show(&[summary_line(request)]);
        }
        let width = screen::stderr_columns().saturating_sub(INDENT.len() + 1);
        let (preview, mut is_complete) =
            arguments::preview_lines(&request.arguments, width, MAX_ARGUMENT_LINES);
        show(&indented(preview));
        show(&notes(request));
        let prompt = format!("   approve {}? [y]es [n]o [a]lways in this run [d]etails ", request.step);
        loop {
            let line = self.prompt_line(&prompt).await;
            lines += 1;
            match line.as_deref().map(parse_input) {
                None => return (None, lines),
                // Nothing is approved that was not shown.
                Some(PromptInput::Decision(ApprovalDecision::Allow | ApprovalDecision::AllowAlways))
                    if !is_complete =>
                {
                    lines += 1;
                    live_region::write(&format!(
                        "{INDENT}the arguments are not shown completely: see [d]etails first\n"
                    ));
                }
                Some(PromptInput::Decision(decision)) => return (Some(decision), lines),
                Some(PromptInput::Details) => {
                    is_complete = true;
                    let text = details(request, width);
                    lines += text.len();
                    live_region::write(&format!("{}\n", text.join("\n")));
                }
                Some(PromptInput::Invalid) => {}
            }
        }
    }

    /// Reads a line; `None` at end of input or when cancelled. Keystrokes typed before the prompt are discarded.
    pub(super) async fn prompt_line(&self, prompt: &str) -> Option<String> {
        discard_typed_input();
        live_region::write(&sanitize(prompt));
        let line = read_line(&self.stop).await;
        if line.is_none() {
            live_region::write("\n");
        }
        line
    }
}

fn summary_line(request: &ApprovalRequest) -> String {
    let ApprovalRequest { step, tool, source, arguments, effects, .. } = request;
    let arguments = arguments.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = sanitize(&format!(" ? {step}   {tool}   {source}   {effects}: {arguments}"));
    crate::terminal::truncate_to_width(&line, screen::stderr_columns().saturating_sub(1))
}

/// The call with all arguments.
fn details(request: &ApprovalRequest, width: usize) -> Vec<String> {
    let ApprovalRequest { step, tool, source, arguments, effects, .. } = request;
    let mut lines = vec![sanitize(&format!("   step {step} calls {tool} of {source}: {effects}"))];
    lines.extend(indented(arguments::all_lines(arguments, width)));
    lines.extend(notes(request));
    lines
}

/// Notes on arguments that were guessed.
fn notes(request: &ApprovalRequest) -> Vec<String> {
    request.notes.iter().map(|note| sanitize(&format!("{INDENT}note: {note}"))).collect()
}

fn indented(lines: Vec<String>) -> Vec<String> {
    lines.into_iter().map(|line| format!("{INDENT}{line}")).collect()
}

fn parse_input(line: &str) -> PromptInput {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => PromptInput::Decision(ApprovalDecision::Allow),
        "n" | "no" => PromptInput::Decision(ApprovalDecision::Deny),
        "a" | "always" => PromptInput::Decision(ApprovalDecision::AllowAlways),
        "d" | "details" => PromptInput::Details,
        _ => PromptInput::Invalid,
    }
}

/// A line of standard input; `None` at its end, or when the run is interrupted.
async fn read_line(stop: &CancelToken) -> Option<String> {
    let stop = stop.clone();
    let reading = tokio::task::spawn_blocking(move || {
        while !poll_input() {
            if stop.is_stopping() {
                return None;
            }
        }
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line).ok()?;
        (read > 0).then_some(line)
    });
    reading.await.ok().flatten()
}

fn discard_typed_input() {
    #[cfg(unix)]
    {
        use rustix::termios::{QueueSelector, tcflush};
        // Fails only if standard input is no terminal.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
    }
}

/// Waits up to 100 ms for input, so that a pending read can be cancelled.
#[cfg(unix)]
fn poll_input() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let input = std::io::stdin();
    let mut descriptors = [PollFd::new(&input, PollFlags::IN)];
    let timeout = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    match poll(&mut descriptors, Some(&timeout)) {
        Ok(ready) => ready > 0,
        // Input that cannot be polled is read at once.
        Err(error) => error != rustix::io::Errno::INTR,
    }
}

#[cfg(not(unix))]
fn poll_input() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_answers_decide() {
        assert_eq!(parse_input(" Y\n"), PromptInput::Decision(ApprovalDecision::Allow));
        assert_eq!(parse_input("no"), PromptInput::Decision(ApprovalDecision::Deny));
        assert_eq!(parse_input("a"), PromptInput::Decision(ApprovalDecision::AllowAlways));
        assert_eq!(parse_input("d"), PromptInput::Details);
        for invalid in ["", "yeah, why not", "ye", "\u{1b}[A"] {
            assert_eq!(parse_input(invalid), PromptInput::Invalid, "{invalid:?}");
        }
    }
}
