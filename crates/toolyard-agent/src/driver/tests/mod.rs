//! Whole runs against scripted models and fake tools, on a clock that tests can pause.

mod adversaries;
mod approvals;
mod argument_examples;
mod create;
mod failed_calls;
mod fallback;
mod fixture;
mod flaky_log;
mod open_world;
mod parallel;
mod policies;
mod quotas;
mod resume;
mod shutdown;
mod single_calls;
mod steps;
mod store_failures;
mod take_over;
mod telemetry;
mod tool_search;
mod wrapped_log;

pub(crate) use fixture::{Behavior, Fixture, RecordingWatcher, failing, plan, replying, request, tool};
