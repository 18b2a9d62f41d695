//! Whole runs against scripted models and tools, under a clock that tests can pause.

mod adversaries;
mod hiccups;
mod house;
mod odd_log;
mod parallel;
mod persons;
mod resume;
mod steps;
mod stopping;

pub(crate) use house::{Act, House, Seen, ask, failing, plan, saying, tool};
