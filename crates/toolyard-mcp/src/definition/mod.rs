//! Tool definitions: what is usable of them, their canonical form, their pins, and how two of them differ.
//!
//! Everything here is a pure decision over what a server sent:
//!
//! - `judge`: one definition is usable or quarantined with the reason; the others of its list are not touched by it.
//! - `canonical`: what a definition says once its spelling is taken away, and its hash.
//! - `pins`: which tools may serve, given what was approved before.
//! - `difference`: how two definitions differ, in lines that a person reads.

mod canonical;
mod difference;
mod headers;
mod hidden;
mod judge;
mod pins;
mod quick;
mod text;
mod tree;
mod weight;

pub use difference::difference;
pub use headers::{HeaderProblem, MirroredParameter, mirrored_parameters};
pub use hidden::HiddenText;
pub use judge::{JudgeRules, Judged, JudgedList, Quarantine, QuarantinedTool, UsableTool, judge, judge_list};
pub use pins::{Blocked, BlockedTool, FirstSight, NotBlocked, PinDecision, decide};
pub(crate) use quick::quick_spec;
pub use tree::TreeError;
pub use weight::TooHeavy;
