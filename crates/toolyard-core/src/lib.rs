//! Shared types and extension traits of Toolyard. No I/O and no async runtime.
//!
//! A model or a client requests a call of a tool by name ([`ToolCallRequest`]). A [`Tool`] executes it and returns a
//! [`ToolOutput`] or a [`ToolError`] that says what failed, on which source, whether it may have had an effect, and how to
//! resolve it.
//!
//! ```
//! use toolyard_core::{
//!     BoxFuture, CallContext, RawJson, Tool, ToolCallRequest, ToolError, ToolHints, ToolOutput, ToolSpec,
//! };
//!
//! struct Greet(ToolSpec);
//!
//! impl Tool for Greet {
//!     fn spec(&self) -> &ToolSpec {
//!         &self.0
//!     }
//!
//!     fn call<'a>(
//!         &'a self,
//!         request: &'a ToolCallRequest,
//!         _context: &'a CallContext,
//!     ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
//!         let arguments = request.arguments.to_value();
//!         Box::pin(async move {
//!             let name = arguments["name"].as_str().ok_or_else(|| ToolError::failed("no name given"))?;
//!             Ok(ToolOutput::text(format!("Hello, {name}!")))
//!         })
//!     }
//! }
//!
//! let schema = r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;
//! let spec = ToolSpec::new("greet", "Greets a person by name")
//!     .with_input_schema(RawJson::parse(schema.to_owned())?)
//!     .with_hints(ToolHints::READ_ONLY);
//! let greet = Greet(spec);
//! assert_eq!(greet.spec().params()[0].name, "name");
//! # Ok::<(), toolyard_core::InvalidJson>(())
//! ```
//!
//! # Tour
//!
//! | topic | items |
//! |---|---|
//! | defining tools | [`Tool`], [`ToolSpec`], [`Param`], [`ToolHints`], [`Capability`], [`SourceInfo`] |
//! | calling tools | [`ToolCallRequest`], [`CallContext`], [`Caller`], [`ExtendableDeadline`] |
//! | results | [`ToolOutput`], [`OutputMeta`], [`ToolError`], [`ErrorKind`], [`ResultRef`] |
//! | serving a set of tools | [`ToolService`], [`Catalogue`], [`ServiceCall`] |
//! | selecting tools | [`ToolPattern`], [`EffectiveHints`], [`CapabilityTable`] |
//! | JSON as text | [`RawJson`] (unchanged bytes, cheap clones), [`JsonCursor`] (one validating pass) |
//! | secrets | [`SecretText`], [`redact()`], [`redact_json`], [`SecretValues`] |
//! | unsafe characters | [`sanitize`], [`escape_unsafe`], [`find_unsafe`], [`text::sanitize_json`], module [`text`] |
//! | ports | [`Journal`], [`RunLog`], [`Approvals`], [`Audit`], [`History`], [`PastRequests`], [`Results`], [`ResultShapes`], [`ArgumentExamples`], [`Servers`], [`Conversations`], [`AgentDefinitions`], [`Authenticator`], [`CallerStore`], [`Synthesizer`], [`Embedder`] |
//! | addresses of metadata | [`issuer_metadata_urls`], [`well_known_url`] |
//! | clusters | [`SessionLeases`], [`Peers`], [`Exchange`], [`WorkerNetwork`], [`WorkerTransport`] |
//!
//! A port is a trait that the hub or the agent needs and another crate implements: `toolyard-store` implements most of
//! them, a language model implements [`Synthesizer`].

mod busy_executable;
mod clock;
mod cluster;
mod hash;
mod json;
mod ports;
mod quota;
mod redact;
mod secret_text;
pub mod sse;
pub mod telemetry;
pub mod text;
mod text_id;
mod tool;
mod well_known;

pub use busy_executable::busy_executable_delay;
pub use clock::{unix_millis, unix_seconds};
pub use cluster::{
    leases::{LeaseCount, SessionLease, SessionLeases},
    peers::{Exchange, PeerError, PeerService, Peers},
    workers::{WorkerEndpoint, WorkerNetwork, WorkerObserver, WorkerTransport},
};
pub use hash::{ContentHash, InvalidHash};
pub use json::{
    cursor::JsonCursor,
    raw::{InvalidJson, RawJson, SharedText},
    value::{JsonError, JsonKind, JsonText},
};
pub use ports::{
    access::{
        authenticator::{AuthenticationError, Authenticator, Credentials, InvalidHeader},
        call_policy::{CallPolicy, PolicyDecision, PolicyGrounds, PolicyRequest, PolicySubject, PolicyTool},
        call_quota::{
            CallQuota, ModelUse, QuotaCall, QuotaExceeded, QuotaLimit, QuotaPermit, QuotaSubject, QuotaTool,
        },
        callers::{CallerStore, MemoryCallerStore, StoredCaller, StoredKey},
        person_sign_in::{PersonLogin, PersonSignIn, PersonSignInError},
        quota_budgets::{BudgetCharge, BudgetName, BudgetTake, PermitHold, QuotaBudgets},
    },
    embedder::{Embedder, EmbeddingError},
    records::{
        argument_examples::{ArgumentExample, ArgumentExamples},
        audit::{Audit, AuditRecord, AuditUnavailable, AuditedDecision},
        history::{CallRecord, History, PastRequest, PastRequests, SuccessRate},
        result_shapes::{ResultShape, ResultShapes},
        results::{ResultPage, Results, ResultsError, ResultsUsage},
    },
    runs::{
        agents::{AgentDefinitions, AgentOrigin, MemoryAgentDefinitions, StoredAgent},
        approvals::{ApprovalId, ApprovalKind, ApprovalOutcome, ApprovalRecord, Approvals},
        conversations::{
            Conversation, ConversationId, ConversationMessage, ConversationQuery, Conversations,
            InvalidConversationName,
        },
        journal::{
            FinishedStep, Journal, JournalError, JournalFuture, Lease, Recovery, Resolution, RunId,
            RunRecord, RunState, StepIntent, StepRecord, StepResult, StepStart, StepState, idempotency_key,
            recovery,
        },
        run_log::{LoggedEvent, RunLog},
    },
    servers::{
        RevisionFamily, ServerRecord, Servers, SkillDescriptionCache, StoredDefinition, TrustDecision,
    },
    storage_error::StorageError,
    synthesizer::{SynthesisError, SynthesisInput, SynthesisRequest, Synthesizer},
};
pub use quota::window::{WindowLimit, WindowUse};
pub use redact::{SecretValues, redact, redact_json};
pub use secret_text::SecretText;
pub use text::{UnsafeKind, UnsafeSpan, escape_unsafe, find_unsafe, is_attack, is_visible, sanitize};
pub use tool::{
    calls::{
        audit_name::RESERVED_CALLER_NAMES,
        call::{CallContext, ToolCallRequest, process_tag},
        caller::{CallInputError, CallInputKind, CallInputRequest, CallInputResponses, CallProgress, Caller},
        data_owner::DataOwner,
        extendable_deadline::ExtendableDeadline,
        identity::{API_KEY_ISSUER, CallerIdentity, PROXY_ISSUER},
        presented_token::PresentedToken,
        service::{Catalogue, ClientInfo, ListedTool, ServiceCall, ToolService},
    },
    capability::{Capability, CapabilityRule, CapabilityTable, ToolKind, extract_capabilities},
    definition::{QuarantineNotice, SourceTools, Tool, ToolSpec},
    hints::{EffectiveHints, ToolHints},
    name_claim::{ClaimTime, NameClaim, NameClaims},
    pattern::{ToolPattern, matches_wildcards},
    results::{
        error::{ArgumentProblem, ErrorKind, RawToolError, SourceSignal, ToolError},
        error_parts::ToolErrorParts,
        output::{ContentBlock, OutputMeta, ToolOutput, ToolResult, Truncation, group_digits},
        result_ref::ResultRef,
        sign_in::SignInLink,
    },
    schema::{Param, ParamType, are_compatible, params},
    scope::{SourceScope, is_absolute_path},
    source::{SourceId, SourceInfo, SourceKind},
    spec_check::InvalidToolSpec,
};
pub use well_known::{issuer_metadata_urls, well_known_url};

/// A boxed future: the return type of traits that are used as objects.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
