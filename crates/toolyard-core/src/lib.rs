//! The words everyone in Toolyard shares; no IO, no runtime.
//!
//! A model names a tool and its arguments ([`ToolCallRequest`]); whoever implements [`Tool`] answers with a
//! [`ToolOutput`] or a [`ToolError`] that says what failed, where, and what to do.
//!
//! | words | file |
//! |---|---|
//! | [`Tool`], [`ToolSpec`] | `tool.rs` |
//! | [`ToolCallRequest`], [`CallContext`] | `call.rs` |
//! | [`Caller`]: who can be told and asked while a call goes on | `caller.rs` |
//! | [`ToolService`]: what a door serves | `service.rs` |
//! | [`ToolOutput`], [`ContentBlock`], [`OutputMeta`], [`ToolResult`] | `output.rs` |
//! | [`SourceKind`], [`SourceId`], [`SourceInfo`] | `source.rs` |
//! | [`ToolHints`], [`EffectiveHints`] | `hints.rs` |
//! | [`Capability`], [`ToolKind`], [`extract_capabilities`] | `capability.rs` |
//! | [`Hidden`], [`without_hidden`], [`shown`]: text that people do not see | `hidden.rs` |
//! | [`Param`]: JSON Schema as parameters | `schema.rs` |
//! | [`ToolPattern`]: `read_*`, `*@excel` | `pattern.rs` |
//! | [`Journal`], [`RunLog`], [`ResultForms`], [`Approvals`], [`Audit`], [`Servers`], [`History`], [`PastRequests`], [`Results`], [`Conversations`], [`Synthesizer`]: what others plug in | a file each |
//!
//! ```
//! use toolyard_core::{BoxFuture, CallContext, RawJson, Tool, ToolCallRequest, ToolError, ToolOutput, ToolSpec};
//!
//! struct Hello(ToolSpec);
//!
//! impl Tool for Hello {
//!     fn spec(&self) -> &ToolSpec {
//!         &self.0
//!     }
//!     fn call<'a>(
//!         &'a self,
//!         _request: &'a ToolCallRequest,
//!         _context: &'a CallContext,
//!     ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
//!         Box::pin(async { Ok(ToolOutput::text("hello")) })
//!     }
//! }
//!
//! let hello = Hello(ToolSpec::new("hello", "Greets whoever asks"));
//! assert_eq!(hello.spec().name.as_ref(), "hello");
//! ```

mod approval;
mod audit;
mod call;
mod caller;
mod capability;
mod conversation;
mod error;
mod hash;
mod hidden;
mod hints;
mod history;
mod journal;
mod output;
mod patience;
mod pattern;
mod raw_json;
mod redact;
mod result_forms;
mod results;
mod run_log;
mod schema;
mod servers;
mod service;
mod source;
mod synthesizer;
mod tool;

pub use approval::{Answer, Approvals, Question, QuestionKind};
pub use audit::{Audit, AuditRecord};
pub use call::{CallContext, ToolCallRequest};
pub use caller::{CallAnswers, CallProgress, CallQuestion, Caller, Unanswered};
pub use capability::{Capability, CapabilityRule, CapabilityTable, ToolKind, extract_capabilities};
pub use conversation::{ConversationQuery, Conversations, Message};
pub use error::{ArgumentProblem, ErrorKind, RawFailure, ToolError};
pub use hash::ContentHash;
pub use hidden::{Hidden, HiddenPlace, hidden_places, is_hostile, shown, without_hidden};
pub use hints::{EffectiveHints, ToolHints};
pub use history::{CallOutcome, History, PastRequest, PastRequests};
pub use journal::{
    Begun, Intent, Journal, JournalError, JournalFuture, Lease, Recovery, Resolution, RunId, RunRecord,
    RunState, StepAnswer, StepOutcome, StepRecord, StepState, idempotency_key, recovery,
};
pub use output::{ContentBlock, Omitted, OutputMeta, ToolOutput, ToolResult, grouped};
pub use patience::Patience;
pub use pattern::{ToolPattern, matches_wildcards};
pub use raw_json::{JsonCursor, JsonFault, JsonKind, JsonText, NotJson, RawJson, SharedText};
pub use redact::{redact, redact_json};
pub use result_forms::{ResultForm, ResultForms};
pub use results::{ResultPage, ResultRef, Results, ResultsError};
pub use run_log::{LoggedEvent, RunLog};
pub use schema::{Param, ParamType, compatible, params};
pub use servers::{Descriptions, ProtocolEra, ServerRecord, Servers, ToolDefinition, TrustDecision};
pub use service::{Catalogue, OfferedTool, ServiceCall, ToolService, Viewer};
pub use source::{SourceId, SourceInfo, SourceKind};
pub use synthesizer::{SynthesisError, SynthesisPiece, SynthesisRequest, Synthesizer};
pub use tool::{Tool, ToolSpec};

/// A boxed future, the return type of the few traits that must be usable as objects.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
