//! `toolyard top`: what a running gateway does, live in the terminal.
//!
//! ```text
//! overview_client.rs  asks the gateway for its overview
//! overview.rs         the overview as it is shown: names sanitized, numbers as text
//! live_view.rs        the screen of the live view
//! ```

mod live_view;
mod overview;
mod overview_client;

use std::{
    io::IsTerminal as _,
    time::{Duration, Instant},
};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;

use self::{
    live_view::{Screen, draw},
    overview::Overview,
    overview_client::OverviewClient,
};
use crate::{cli::TopArgs, config::CliContext, error::CliError, terminal::Output};

/// How long a key press may take to be noticed.
const KEY_POLL_INTERVAL: Duration = Duration::from_millis(100);
const MIN_UPDATE_INTERVAL: Duration = Duration::from_millis(100);

pub(super) async fn run(arguments: TopArgs, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let client = OverviewClient::find(arguments.url.as_deref(), context)?;
    if output.is_json() {
        output.json(&client.overview_json().await?);
        return Ok(());
    }
    let overview = client.overview().await?;
    if arguments.once || !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        print_once(&overview, client.address(), output);
        return Ok(());
    }
    watch(&client, overview, arguments.interval.0.max(MIN_UPDATE_INTERVAL)).await
}

fn print_once(overview: &Overview, address: &str, output: &Output) {
    output.line(address);
    for line in overview.summary() {
        output.line(&line);
    }
    output.line("");
    output.table(overview::SOURCE_HEADINGS, overview.source_rows());
    if !overview.top_tools.is_empty() {
        output.line("");
        output.table(overview::TOOL_HEADINGS, overview.tool_rows());
    }
}

/// Shows the overview until the user quits. A gateway that does not answer is asked again.
async fn watch(client: &OverviewClient, overview: Overview, interval: Duration) -> Result<(), CliError> {
    let unusable = |error: std::io::Error| CliError::failed(format!("failed to use the terminal: {error}"));
    let mut terminal = ratatui::try_init().map_err(unusable)?;
    // Restores the terminal, whatever ends this function.
    let _restore = RestoreTerminal;
    let mut keys = read_keys();
    let mut screen = Screen { address: client.address().to_owned(), overview, problem: None };
    let mut updates = tokio::time::interval(interval);
    updates.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        terminal.draw(|frame| draw(frame, &screen)).map_err(unusable)?;
        tokio::select! {
            key = keys.recv() => match key {
                Some(Key::Quit) | None => return Ok(()),
                Some(Key::Redraw) => {}
            },
            _ = updates.tick() => match client.overview().await {
                Ok(overview) => (screen.overview, screen.problem) = (overview, None),
                Err(error) => screen.problem = Some(error.message().to_owned()),
            },
        }
    }
}

struct RestoreTerminal;

impl Drop for RestoreTerminal {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

#[derive(Debug)]
enum Key {
    Quit,
    /// Another key, or the size of the terminal changed.
    Redraw,
}

/// Reads keys in a thread of its own, which ends with the receiver.
fn read_keys() -> mpsc::Receiver<Key> {
    let (sender, receiver) = mpsc::channel(16);
    std::thread::spawn(move || {
        while !sender.is_closed() {
            let started = Instant::now();
            match event::poll(KEY_POLL_INTERVAL).and_then(|is_ready| is_ready.then(event::read).transpose()) {
                Ok(Some(event)) => {
                    let key = if is_quit(&event) { Key::Quit } else { Key::Redraw };
                    // A full queue has keys enough.
                    let _ = sender.try_send(key);
                }
                Ok(None) => {}
                // A closed terminal must not make this loop spin.
                Err(_) => std::thread::sleep(KEY_POLL_INTERVAL.saturating_sub(started.elapsed())),
            }
        }
    });
    receiver
}

fn is_quit(event: &Event) -> bool {
    let Event::Key(key) = event else { return false };
    let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind == KeyEventKind::Press && (matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) || is_interrupt)
}
