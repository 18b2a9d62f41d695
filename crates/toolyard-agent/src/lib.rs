//! The agent pipeline: plan, execute, verify, answer.
//!
//! So far it holds what a model is told: [`AgentConfig`] says who it is, [`prompt`] puts the tools before it, within a
//! budget that [`TokenCount`] measures.
//!
//! ```
//! use toolyard_agent::{
//!     AgentConfig, O200k,
//!     prompt::{Limit, Offer, PromptTool, build_agent_system_prompt_with_tools},
//! };
//! use toolyard_core::ToolSpec;
//!
//! let hello = PromptTool::new(&ToolSpec::new("hello", "Greets whoever asks"));
//! let offer = Offer { core: Vec::new(), others: [hello], exist: 1 };
//! let agent = AgentConfig::new("assistant");
//! let prompt = build_agent_system_prompt_with_tools(&agent, offer, Limit::of_tokens(2_000), &O200k)?;
//! assert!(prompt.text.contains("1. **hello**\n  > Greets whoever asks\n"));
//! assert!(prompt.tokens <= 2_000);
//! # Ok::<(), toolyard_agent::prompt::PromptError>(())
//! ```
//!
//! Its plan: `PlanningAgent`, `ExecutionAgent`, `VerificationAgent` and `CoordinationAgent` around a run that is a pure,
//! serializable state machine; the chat.

mod agent;
mod agent_config;
mod approval_rules;
mod cancel;
mod caps;
mod chat;
mod coordination;
mod discovery;
mod driver;
mod event;
mod execution;
mod fit;
mod memory;
mod plan;
mod plan_check;
mod planning;
pub mod prompt;
mod reference;
mod replay;
mod result_form;
mod run;
pub mod schedule;
mod shape;
mod tokens;
mod values;
mod verification;

pub use agent::{Agent, AgentError, AgentParts, ApprovalDecision, ApprovalQuestion, RunWatcher, Unwatched};
pub use agent_config::{AgentCapabilities, AgentConfig, CORE_TOOLS, DEFAULT_AGENT, Language, SEARCH_TOOLS};
pub use approval_rules::ApprovalRules;
pub use cancel::CancelToken;
pub use caps::{Cap, Caps, Spent};
pub use chat::{Chat, recent};
pub use coordination::{CoordinationAgent, ResultForAnswer};
pub use discovery::{AgentTools, Rates, offer, tools_for_task};
pub use driver::RUN_KIND;
pub use event::{Ask, ModelTask, Permission, RunEnd, RunEvent, RunNews, StepEnd, StepFacts, Verification};
pub use execution::{ExecutionAgent, prepare_tool_input};
pub use memory::MemoryLog;
pub use plan::{Complexity, NO_TOOL, Plan, PlanProblem, Step};
pub use plan_check::{KnownTools, check_plan, cycle};
pub use planning::{Decision, Digest, MAKE_PLAN, PlanningAgent, Situation};
pub use reference::{
    Part, Reference, ReferenceError, Resolved, ResolvedJson, ValueOf, references, resolve, resolve_json,
};
pub use replay::{answer_question, ask_to_stop, cancel, load, replay, worked};
pub use result_form::result_form;
pub use run::{Approval, Phase, Repair, Run, RunError, StepRun, Task};
pub use shape::{preview, shape, step_value};
pub use tokens::{O200k, TokenCount};
pub use values::{ValueError, Values, value_of};
pub use verification::{VerificationAgent, VerifyInput};
