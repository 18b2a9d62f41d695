//! The person at the terminal, who may be asked whether a call may be made.

use std::{io::IsTerminal as _, sync::Arc};

use toolyard_agent::{ApprovalDecision, ApprovalQuestion, CancelToken};

use super::{arguments, screen};
use crate::output::harmless;

/// So many lines of arguments are shown before somebody asks for all of them.
const SHOWN_LINES: usize = 20;
/// What stands before lines of arguments.
const INDENT: &str = "     ";

/// Who says whether a call may be made that must be asked about.
#[derive(Debug)]
pub(crate) enum Decider {
    /// Everything may.
    Everything,
    /// The person at the terminal does.
    Person(Arc<Person>),
    /// Nobody is there.
    Nobody,
}

/// The person at the terminal. One question at a time.
#[derive(Debug, Default)]
pub(crate) struct Person {
    one_at_a_time: tokio::sync::Mutex<()>,
    pub(super) stop: CancelToken,
}

impl Decider {
    /// Whoever is there: nobody where there is no terminal to ask at.
    pub(crate) fn new(allows_everything: bool, stop: &CancelToken) -> Self {
        if allows_everything {
            Self::Everything
        } else if is_somebody_there() {
            Self::Person(Arc::new(Person { stop: stop.clone(), ..Person::default() }))
        } else {
            Self::Nobody
        }
    }
}

/// Whether there is a terminal at which somebody can be asked.
pub(crate) fn is_somebody_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// What a person answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Decided(ApprovalDecision),
    Details,
    Unclear,
}

impl Person {
    /// Waits until no other question is being asked.
    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.one_at_a_time.lock().await
    }

    /// Asks until the answer is clear; the decision, and how many lines were written meanwhile. None if nobody answers.
    pub(super) async fn decide(
        &self,
        question: &ApprovalQuestion,
        is_shown: bool,
    ) -> (Option<ApprovalDecision>, usize) {
        let mut lines = 0;
        let mut show = |text: &[String]| {
            lines += text.len();
            if !text.is_empty() {
                screen::write(&format!("{}\n", text.join("\n")));
            }
        };
        if !is_shown {
            show(&[asked(question)]);
        }
        let width = screen::size().0.saturating_sub(INDENT.len() + 1);
        show(&indented(arguments::shown_lines(&question.arguments, width, SHOWN_LINES)));
        show(&notes(question));
        let prompt = format!("   allow {}? [y]es [n]o [a]lways in this run [d]etails ", question.step);
        loop {
            let line = self.line(&prompt).await;
            lines += 1;
            match line.as_deref().map(said) {
                None => return (None, lines),
                Some(Said::Decided(decision)) => return (Some(decision), lines),
                Some(Said::Details) => {
                    let text = details(question, width);
                    lines += text.len();
                    screen::write(&format!("{}\n", text.join("\n")));
                }
                Some(Said::Unclear) => {}
            }
        }
    }

    /// Asks for a line; none if nobody answers. Whatever was typed before the question was there is no answer to it.
    pub(super) async fn line(&self, prompt: &str) -> Option<String> {
        forget_typed();
        screen::write(&harmless(prompt));
        let line = read_line(&self.stop).await;
        if line.is_none() {
            screen::write("\n");
        }
        line
    }
}

/// The question in a line.
fn asked(question: &ApprovalQuestion) -> String {
    let ApprovalQuestion { step, tool, source, arguments, effects, .. } = question;
    let (columns, _) = screen::size();
    let arguments = arguments.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = harmless(&format!(" ? {step}   {tool}   {source}   {effects}: {arguments}"));
    crate::output::cut(&line, columns.saturating_sub(1))
}

/// Everything there is to know.
fn details(question: &ApprovalQuestion, width: usize) -> Vec<String> {
    let ApprovalQuestion { step, tool, source, arguments, effects, .. } = question;
    let mut lines = vec![harmless(&format!("   step {step} calls {tool} of {source}; it {effects}"))];
    lines.extend(indented(arguments::all_lines(arguments, width)));
    lines.extend(notes(question));
    lines
}

/// What was guessed for the call.
fn notes(question: &ApprovalQuestion) -> Vec<String> {
    question.notes.iter().map(|note| harmless(&format!("{INDENT}note: {note}"))).collect()
}

fn indented(lines: Vec<String>) -> Vec<String> {
    lines.into_iter().map(|line| format!("{INDENT}{line}")).collect()
}

fn said(line: &str) -> Said {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Said::Decided(ApprovalDecision::Allow),
        "n" | "no" => Said::Decided(ApprovalDecision::Deny),
        "a" | "always" => Said::Decided(ApprovalDecision::AllowAlways),
        "d" | "details" => Said::Details,
        _ => Said::Unclear,
    }
}

/// A line of standard input; none at its end, or when it is not wanted any more.
async fn read_line(stop: &CancelToken) -> Option<String> {
    let stop = stop.clone();
    let reading = tokio::task::spawn_blocking(move || {
        while !is_readable() {
            if stop.is_cancelled() {
                return None;
            }
        }
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line).ok()?;
        (read > 0).then_some(line)
    });
    reading.await.ok().flatten()
}

/// Throws away what was typed and not read yet.
fn forget_typed() {
    #[cfg(unix)]
    {
        use rustix::termios::{QueueSelector, tcflush};
        // Where that cannot be done, standard input is no terminal, and nobody types.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
    }
}

/// Waits a moment for something to read, so that whoever waits for a line can be told to stop.
#[cfg(unix)]
fn is_readable() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let input = std::io::stdin();
    let mut wanted = [PollFd::new(&input, PollFlags::IN)];
    let moment = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    match poll(&mut wanted, Some(&moment)) {
        Ok(ready) => ready > 0,
        // What cannot be waited for is read at once.
        Err(error) => error != rustix::io::Errno::INTR,
    }
}

#[cfg(not(unix))]
fn is_readable() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clear_words_decide() {
        assert_eq!(said(" Y\n"), Said::Decided(ApprovalDecision::Allow));
        assert_eq!(said("no"), Said::Decided(ApprovalDecision::Deny));
        assert_eq!(said("a"), Said::Decided(ApprovalDecision::AllowAlways));
        assert_eq!(said("d"), Said::Details);
        for unclear in ["", "yeah, why not", "ye", "\u{1b}[A"] {
            assert_eq!(said(unclear), Said::Unclear, "{unclear:?}");
        }
    }
}
