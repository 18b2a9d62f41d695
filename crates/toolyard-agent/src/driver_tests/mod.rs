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
#[path = "../../tests/support/wrapped_log.rs"]
mod wrapped_log;

pub(crate) use house::{Act, House, Seen, ask, failing, plan, saying, tool};
