//! The person at the terminal, who may be asked whether a call may be made.

use std::io::IsTerminal as _;

use serde_json::Value;
use toolyard_agent::{ApprovalDecision, ApprovalQuestion, CancelToken};

use super::screen;
use crate::output::harmless;

/// Who says whether a call may be made that must be asked about.
#[derive(Debug)]
pub(crate) enum Decider {
    /// Everything may.
    Everything,
    /// The person at the terminal does.
    Person(Person),
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
        } else if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
            Self::Person(Person { stop: stop.clone(), ..Person::default() })
        } else {
            Self::Nobody
        }
    }
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
        if !is_shown {
            lines += 1;
            screen::write(&format!("{}\n", asked(question)));
        }
        let prompt = format!("   allow {}? [y]es [n]o [a]lways in this run [d]etails ", question.step);
        loop {
            screen::write(&harmless(&prompt));
            let Some(line) = read_line(&self.stop).await else {
                screen::write("\n");
                return (None, lines + 1);
            };
            lines += 1;
            match said(&line) {
                Said::Decided(decision) => return (Some(decision), lines),
                Said::Details => {
                    let text = details(question);
                    lines += text.lines().count();
                    screen::write(&format!("{text}\n"));
                }
                Said::Unclear => {}
            }
        }
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
fn details(question: &ApprovalQuestion) -> String {
    let ApprovalQuestion { step, tool, source, arguments, effects, notes, .. } = question;
    let pretty =
        serde_json::from_str::<Value>(arguments).and_then(|value| serde_json::to_string_pretty(&value));
    let arguments = pretty.unwrap_or_else(|_| arguments.clone());
    let notes = notes.iter().map(|note| format!("   note: {note}"));
    let arguments: Vec<String> = arguments.lines().map(|line| format!("     {line}")).chain(notes).collect();
    harmless(&format!("   step {step} calls {tool} of {source}; it {effects}\n{}", arguments.join("\n")))
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
