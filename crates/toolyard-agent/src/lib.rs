//! The agent pipeline: plan, execute, verify, answer.
//!
//! A question becomes a [`Run`]: a pure state machine that is folded from its transitions ([`RunEvent`]) and says what may be
//! done next ([`Task`]). An [`Agent`] drives it: it asks its model for a plan, carries out the steps that nothing stands
//! before, all at once, passes their values by reference, looks at what they brought, asks persons where it must, and answers.
//! Every transition is written down before anything follows from it, so that any process can go on with any run.
//!
//! ```
//! use std::sync::Arc;
//!
//! use toolyard_agent::{
//!     Agent, AgentConfig, AgentParts, ApprovalRules, Ask, CancelToken, MemoryLog, O200k, RunEnd, Unwatched,
//! };
//! use toolyard_hub::ToolHub;
//! use toolyard_model::{ScriptedModel, ToolCalling};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), toolyard_agent::AgentError> {
//! let log = MemoryLog::new();
//! let agent = Agent::new(AgentParts {
//!     config: AgentConfig::new("assistant"),
//!     hub: Arc::new(ToolHub::default()),
//!     model: Arc::new(ScriptedModel::saying(ToolCalling::Schema, [r#"{"steps": [], "answer": "Four."}"#])),
//!     log: Arc::new(log.clone()),
//!     approvals: Arc::new(log),
//!     rules: ApprovalRules::default(),
//!     forms: None,
//!     counter: Arc::new(O200k),
//!     owner: "example".to_owned(),
//! });
//! let ask = Ask { question: "What are two and two?".to_owned(), ..Ask::default() };
//! let (_run, end) = agent.ask(ask, &Unwatched, &CancelToken::new()).await?;
//! assert!(matches!(end, RunEnd::Answered { answer, .. } if answer == "Four."));
//! # Ok(())
//! # }
//! ```
//!
//! | words | what they do |
//! |---|---|
//! | [`Agent`], [`RunWatcher`], [`CancelToken`] | drive a run, watch it, end it |
//! | [`Run`], [`Task`], [`schedule`] | where a run stands, what may be begun |
//! | [`load`], [`replay()`], [`cancel`], [`answer_question`] | runs from their log alone |
//! | [`PlanningAgent`], [`ExecutionAgent`], [`VerificationAgent`], [`CoordinationAgent`] | what models are asked, and what is decided without one |
//! | [`resolve_json`], [`shape`](shape()) | values by reference, and what is shown of them |
//! | [`prompt`], [`AgentConfig`], [`TokenCount`] | what a model is told of itself and its tools, within a budget |

mod agent;
mod agent_config;
mod approval_rules;
mod ask;
mod cancel;
mod caps;
mod cells;
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
mod present;
pub mod prompt;
mod reference;
mod replay;
mod result_form;
mod run;
pub mod schedule;
mod shape;
mod tokens;
mod tool_name;
mod values;
mod verification;

pub use agent::{Agent, AgentError, AgentParts, ApprovalDecision, ApprovalQuestion, RunWatcher, Unwatched};
pub use agent_config::{AgentCapabilities, AgentConfig, CORE_TOOLS, DEFAULT_AGENT, Language, SEARCH_TOOLS};
pub use approval_rules::ApprovalRules;
pub use ask::{Ask, RequestMark};
pub use cancel::CancelToken;
pub use caps::{Cap, Caps, Spent};
pub use chat::{Chat, recent};
pub use coordination::{CoordinationAgent, ResultForAnswer};
pub use discovery::{AgentTools, Rates, offer, tools_for_task};
pub use driver::{RUN_KIND, request_of};
pub use event::{ModelTask, Permission, RunEnd, RunEvent, RunNews, StepEnd, StepFacts, Verification};
pub use execution::{ExecutionAgent, prepare_tool_input};
pub use memory::MemoryLog;
pub use plan::{Complexity, NO_TOOL, Plan, PlanProblem, Step};
pub use plan_check::{KnownTools, check_plan, cycle};
pub use planning::{Decision, Digest, MAKE_PLAN, PlanNotes, PlanningAgent, Situation};
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
