//! Tool definitions as servers send them: validation, canonical form, pins and diffs. Pure decisions, no I/O.
//!
//! - `validate`: accepts or rejects one definition, with the reason; uses `sanitize`, `complexity` and `mirrored_headers`.
//! - `canonical`: the form and hash that identify a definition.
//! - `pins`: which tools may be called, given earlier approvals.
//! - `diff`: how two definitions differ, as lines for a terminal.
//! - `task_support`: whether a tool can only be called as a task.
//! - `validated_spec`: the fast path for definitions that were validated before.

mod canonical;
mod complexity;
mod diff;
mod json_tree;
mod mirrored_headers;
mod pins;
mod preview;
mod sanitize;
mod task_support;
mod validate;
mod validated_spec;

pub use complexity::SchemaComplexityError;
pub use diff::diff_definitions;
pub use json_tree::JsonTreeError;
pub use mirrored_headers::{MirroredHeaderError, MirroredParameter, mirrored_parameters};
pub use pins::{NewToolPolicy, NotQuarantined, PinDecision, QuarantineReason, QuarantinedTool, decide_pins};
pub use sanitize::UnsafeText;
pub use task_support::requires_task;
pub use validate::{
    RejectedTool, Rejection, ValidTool, ValidatedTools, ValidationRules, validate_tool, validate_tools,
};
pub use validated_spec::parse_validated_spec;
