//! Whoever watches a run at the command line: a live tree on a terminal, plain lines elsewhere, JSON where it is wanted.

use std::{
    io::IsTerminal as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use toolyard_agent::{ApprovalDecision, ApprovalQuestion, RunNews, RunWatcher, replay};
use toolyard_core::{BoxFuture, Caller, LoggedEvent};

use super::{
    asking::StepPerson,
    lines::{Moment, plain_lines, tree_lines},
    person::Decider,
    screen::{self, Screen},
    tree::RunTree,
};
use crate::output::{Output, line_width};

/// Watches one run.
#[derive(Debug)]
pub(crate) struct View<'a> {
    output: &'a Output,
    kind: Kind,
    model: String,
    decider: Decider,
    started: Instant,
    /// Whether the answer is shown as it comes.
    streams: bool,
    stage: Arc<Stage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A tree that is drawn over again.
    Live,
    /// A line whenever something is over.
    Plain,
    /// Everything as lines of JSON.
    Json,
}

/// What is drawn on, by whoever has the terminal at the moment.
#[derive(Debug, Default)]
pub(super) struct Stage(Mutex<State>);

/// Nothing is drawn as long as this is there.
#[derive(Debug)]
pub(super) struct Paused<'a>(&'a Stage);

impl Stage {
    /// Somebody else has the terminal for a while.
    pub(super) fn pause(&self) -> Paused<'_> {
        self.lock().paused = true;
        Paused(self)
    }

    /// So many lines were written by whoever had the terminal.
    pub(super) fn wrote(&self, lines: usize) {
        self.lock().screen.wrote(lines);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.lock().paused = false;
    }
}

#[derive(Debug, Default)]
struct State {
    tree: RunTree,
    screen: Screen,
    turn: usize,
    /// What was shown of the answer.
    streamed: String,
    /// Nothing is drawn while somebody else has the terminal.
    paused: bool,
}

impl<'a> View<'a> {
    pub(crate) fn new(output: &'a Output, model: &str, decider: Decider) -> Self {
        let kind = match () {
            () if output.wants_json() => Kind::Json,
            () if screen::can_draw() => Kind::Live,
            () => Kind::Plain,
        };
        Self {
            output,
            kind,
            model: model.to_owned(),
            decider,
            started: Instant::now(),
            streams: kind == Kind::Live && std::io::stdout().is_terminal(),
            stage: Arc::default(),
        }
    }

    /// Sees how a run begins, which happened before anybody worked on it.
    pub(crate) fn begin(&self, events: &[LoggedEvent]) {
        replay(events).for_each(|news| self.see(&news));
    }

    /// Takes note of what happened before, without a word about each of it.
    pub(crate) fn recall(&self, events: &[LoggedEvent]) {
        let mut state = self.lock();
        replay(events).for_each(|news| state.tree.see(&news, Duration::ZERO));
    }

    /// Says something that is not part of the run.
    pub(crate) fn say(&self, text: &str) {
        let mut state = self.lock();
        if self.kind == Kind::Live && state.streamed.is_empty() {
            state.screen.say(text);
            self.draw(&mut state);
        } else {
            self.output.talk(text);
        }
    }

    /// Whether somebody sees it draw.
    pub(crate) fn is_live(&self) -> bool {
        self.kind == Kind::Live
    }

    /// Turns the wheels; called a few times a second.
    pub(crate) fn tick(&self) {
        let mut state = self.lock();
        state.turn += 1;
        self.draw(&mut state);
    }

    /// Draws for the last time, and gives what became of the run.
    pub(crate) fn end(self) -> (RunTree, String) {
        let mut state = self.lock();
        self.settle(&mut state);
        (std::mem::take(&mut state.tree), std::mem::take(&mut state.streamed))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.stage.lock()
    }

    fn moment(&self, state: &State) -> Moment {
        let width = match self.kind {
            Kind::Live => screen::size().0.saturating_sub(1).min(120),
            Kind::Plain | Kind::Json => line_width().min(100),
        };
        Moment { now: self.started.elapsed(), width, turn: state.turn }
    }

    fn draw(&self, state: &mut State) {
        if self.kind == Kind::Live && !state.paused && state.streamed.is_empty() {
            let lines = tree_lines(&state.tree, &self.model, &self.moment(state));
            state.screen.draw(&lines);
        }
    }

    fn settle(&self, state: &mut State) {
        if self.kind == Kind::Live && !state.paused && state.streamed.is_empty() {
            state.tree.thinking = None;
            let lines = tree_lines(&state.tree, &self.model, &self.moment(state));
            state.screen.settle(&lines);
        }
    }

    /// Shows more of the answer, below the tree.
    fn stream(&self, state: &mut State, text: &str) {
        if text.is_empty() {
            return;
        }
        self.settle(state);
        state.streamed.push_str(text);
        self.output.piece(text);
    }
}

impl RunWatcher for View<'_> {
    fn see(&self, news: &RunNews) {
        let mut state = self.lock();
        state.tree.see(news, self.started.elapsed());
        match (self.kind, news) {
            (Kind::Json, _) => self.output.json_line(news),
            (Kind::Plain, _) => {
                let lines = plain_lines(&state.tree, news, &self.model, &self.moment(&state));
                lines.iter().for_each(|line| self.output.talk(line));
            }
            (Kind::Live, RunNews::AnswerDelta { text, .. }) if self.streams => self.stream(&mut state, text),
            (Kind::Live, RunNews::AnswerDropped) => {
                // What was shown stays, and a tree begins anew.
                if !std::mem::take(&mut state.streamed).is_empty() {
                    self.output.piece("\n");
                }
                self.draw(&mut state);
            }
            (Kind::Live, _) => self.draw(&mut state),
        }
    }

    fn caller(&self, step: &str) -> Option<Arc<dyn Caller>> {
        let Decider::Person(person) = &self.decider else { return None };
        let (person, stage) = (Arc::clone(person), Arc::clone(&self.stage));
        Some(Arc::new(StepPerson { step: step.to_owned(), person, stage }))
    }

    fn decide<'b>(&'b self, question: &'b ApprovalQuestion) -> BoxFuture<'b, Option<ApprovalDecision>> {
        Box::pin(async move {
            match &self.decider {
                Decider::Everything => Some(ApprovalDecision::Allow),
                Decider::Nobody => None,
                Decider::Person(person) => {
                    let _turn = person.turn().await;
                    let _paused = self.stage.pause();
                    let (decision, lines) = person.decide(question, self.kind != Kind::Json).await;
                    self.stage.wrote(lines);
                    decision
                }
            }
        })
    }
}
