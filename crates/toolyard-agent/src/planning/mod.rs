//! Planning: asks a model for a plan or an immediate answer, reads its reply, and repairs and checks the plan.
//!
//! | file | purpose |
//! |---|---|
//! | `agent.rs`, `context.rs` | [`PlanningAgent`]: the request to the model, from a [`PlanningContext`] |
//! | `signature.rs`, `plan_schema.rs`, `examples.rs` | the request for small models: signatures, JSON Schema, examples |
//! | `reply/` | reads a plan or an answer from the reply |
//! | `normalize/` | normalizes a plan and repairs what does not fit, before it is checked |
//! | `argument_changes.rs` | what a repair changed in arguments |
//! | `tool_search.rs` | how a model asks for tools that its prompt does not show |
//! | `paths.rs` | paths in arguments: from the settings of a server, or refused |
//! | `plan.rs`, `plan_check.rs`, `tool_params.rs`, `tool_name.rs` | plans, their problems, and the tools they may use |

mod agent;
pub(crate) mod argument_changes;
mod context;
mod examples;
mod normalize;
pub(crate) mod paths;
mod plan;
pub(crate) mod plan_check;
pub(crate) mod plan_schema;
pub(crate) mod reply;
mod signature;
pub(crate) mod tool_name;
mod tool_params;
pub(crate) mod tool_search;

pub(crate) use self::normalize::prepare_tool_input;
pub use self::{
    agent::PlanningAgent,
    context::{PlannerDecision, PlanningContext, StepSummary},
    normalize::RepairNotes,
    paths::ToolPlaces,
    plan::{NO_TOOL, Plan, PlanProblem, Step},
    plan_check::{ToolCatalog, check_plan},
};
