//! The agent pipeline: plan, execute, verify, answer.
//!
//! An [`Agent`] turns a [`RunRequest`] into a [`Run`]. It asks its model for a [`Plan`], calls the tools of all steps that
//! are ready in parallel, passes results between steps by reference, verifies them, requests approvals, and answers.
//!
//! A run is a state machine without I/O, folded from logged [`RunEvent`]s. Every event is logged before anything follows
//! from it, so any process can resume any run.
//!
//! ```
//! use std::sync::Arc;
//!
//! use toolyard_agent::{
//!     Agent, AgentConfig, AgentParts, ApprovalRules, CancelToken, MemoryRunLog, NoWatcher, O200k, RunEnd,
//!     RunRequest,
//! };
//! use toolyard_hub::ToolHub;
//! use toolyard_model::{ScriptedModel, ToolCalling};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), toolyard_agent::AgentError> {
//! let log = MemoryRunLog::new();
//! let agent = Agent::new(AgentParts {
//!     config: Arc::new(AgentConfig::new("assistant")),
//!     hub: Arc::new(ToolHub::default()),
//!     model: Arc::new(ScriptedModel::with_replies(
//!         ToolCalling::Schema,
//!         [r#"{"steps": [], "answer": "Paris."}"#],
//!     )),
//!     log: Arc::new(log.clone()),
//!     approvals: Arc::new(log),
//!     rules: ApprovalRules::default(),
//!     result_shapes: None,
//!     argument_examples: None,
//!     counter: Arc::new(O200k),
//!     owner: "example".to_owned(),
//! });
//! let request = RunRequest { question: "What is the capital of France?".to_owned(), ..RunRequest::default() };
//! let (_run, end) = agent.ask(request, &NoWatcher, &CancelToken::new()).await?;
//! assert!(matches!(end, RunEnd::Answered { answer, .. } if answer == "Paris."));
//! # Ok(())
//! # }
//! ```
//!
//! | to | use |
//! |---|---|
//! | start, resume, watch and stop runs | [`Agent`], [`RunWatcher`], [`CancelToken`] |
//! | hold a conversation | [`Chat`] |
//! | inspect the state of a run | [`Run`], [`Task`], [`RunEvent`] |
//! | read, cancel or approve runs from their log alone | [`load_run`], [`replay_updates`], [`cancel_run`], [`decide_approval`] |
//! | build one stage's model requests and read the replies | [`PlanningAgent`], [`ExecutionAgent`], [`VerificationAgent`], [`CoordinationAgent`] |
//! | describe an agent and its tools in a prompt | [`AgentConfig`], [`prompt`], [`TokenCounter`] |

mod agent;
mod chat;
mod coordination;
mod data_readers;
mod discovery;
mod driver;
mod escape;
mod execution;
mod planning;
pub mod prompt;
mod reference;
mod run;
mod run_log;
mod token_counter;
mod tool_access;
mod values;
mod verification;

pub use agent::{
    Agent, AgentCapabilities, AgentConfig, AgentError, AgentParts, ApprovalDecision, ApprovalRequest,
    ApprovalRules, DEFAULT_AGENT, Language, NoWatcher, OpenWorldRule, RunWatcher, TakeOverError,
};
pub use chat::{Chat, MemoryConversations, recent_history};
pub use coordination::{CoordinationAgent, StepReport, receipt_lines, review_line};
pub use discovery::{AgentTools, available_tools};
pub use driver::{CancelToken, discard_run, is_being_created, owner_of_run, run_trace_id};
pub use execution::ExecutionAgent;
pub use planning::{
    NO_TOOL, Plan, PlanProblem, PlannerDecision, PlanningAgent, PlanningContext, RepairNotes, Step,
    StepSummary, ToolCatalog, ToolPlaces, check_plan,
};
pub use run::{
    ApprovalDetails, ApprovalState, DataSources, Effect, EffectCause, EffectState, ModelTask, Permission,
    PlannedTool, RepairState, RequestFingerprint, Run, RunEnd, RunError, RunEvent, RunLimit, RunLimits,
    RunOwner, RunRequest, RunUpdate, RunUsage, StepEnd, StepPhase, StepRun, Task, Verification,
};
pub use run_log::{
    AGENT_RUN_KIND, MemoryRunLog, cancel_run, close_run, decide_approval, load_run, replay_updates,
    request_cancellation, request_fingerprint,
};
pub use token_counter::{O200k, TokenCounter};
pub use verification::{Fulfilled, Review, ReviewRule, VerificationAgent, VerificationInput};
