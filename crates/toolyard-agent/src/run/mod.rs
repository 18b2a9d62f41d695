//! The state machine of a run, without I/O.
//!
//! | file | contents |
//! |---|---|
//! | `request.rs`, `limits.rs` | what is requested, and what a run may use |
//! | `event.rs` | the events that make up a run |
//! | `state.rs`, `step.rs` | the state of a run and of one step |
//! | `effect.rs`, `receipt.rs` | what became of the changes that a run planned |
//! | `data_sources.rs`, `data_flow.rs` | which non-public data arguments and results may contain |
//! | `apply.rs` | folds an event into the state and rejects invalid ones |
//! | `task.rs` | derives from the state what may be done next |
//! | `schedule.rs` | which calls may run at the same time |
//!
//! A driver executes [`Run::tasks`] and reports their results as events to [`Run::apply`].

mod apply;
mod data_flow;
mod data_sources;
mod effect;
mod event;
mod limits;
pub(crate) mod receipt;
mod request;
pub(crate) mod schedule;
mod state;
mod step;
mod task;

pub use data_sources::DataSources;
pub use effect::{Effect, EffectCause, EffectState};
pub use event::{
    ApprovalDetails, ModelTask, Permission, PlannedTool, RunEnd, RunEvent, RunUpdate, StepEnd, Verification,
};
pub use limits::{RunLimit, RunLimits, RunUsage};
pub use request::{RequestFingerprint, RunOwner, RunRequest};
pub use state::{Run, RunError};
pub use step::{ApprovalState, RepairState, StepPhase, StepRun};
pub use task::Task;

#[cfg(test)]
mod tests;
