//! Decides who may call which tool with which arguments.
//!
//! Rules are policies in the language [Cedar](https://docs.cedarpolicy.com) and the patterns of `[approvals]`. Both lead to
//! one [`PolicyDecision`](toolyard_core::PolicyDecision): deny overrides ask, ask overrides allow.
//!
//! ```
//! use toolyard_core::{CallPolicy, EffectiveHints, PolicyRequest, PolicySubject, PolicyTool, RawJson, ToolHints};
//! use toolyard_policy::{DefaultDecision, PatternRules, Policy, PolicySource};
//!
//! let text = r#"
//!     @id("no-system-files")
//!     forbid (principal, action == Action::"call", resource in Source::"files")
//!     when { context.arguments has path && context.arguments.path like "/etc/*" };
//! "#;
//! let file = PolicySource { name: "example.cedar".into(), text: text.to_owned() };
//! let policy = Policy::load(&[file], PatternRules::default(), DefaultDecision::Allow)?;
//!
//! let hints = EffectiveHints::of(ToolHints::READ_ONLY, true, ToolHints::default());
//! let tool = PolicyTool::new("read_file".into(), "files".into(), true, hints, Vec::new());
//! let decide = |arguments: serde_json::Value| {
//!     let arguments = RawJson::from(arguments);
//!     policy.decide(&PolicyRequest { subject: PolicySubject::default(), tool: &tool, arguments: &arguments })
//! };
//! assert_eq!(decide(serde_json::json!({"path": "/home/me/a"})).label(), "allow");
//! assert_eq!(decide(serde_json::json!({"path": "/etc/passwd"})).label(), "deny");
//! // A policy that cannot be evaluated denies.
//! assert_eq!(decide(serde_json::json!({"path": ["/etc/passwd"]})).label(), "deny");
//! # Ok::<(), toolyard_policy::PolicyError>(())
//! ```
//!
//! ```text
//! policy.rs           Policy, the decision point
//! compile.rs          reads, validates and prepares policies
//! attribute_usage.rs  which arguments and claims a policy reads, and as which types
//! type_checks.rs      makes the evaluation of a policy fail for values of other types
//! entities.rs         callers and tools as entities
//! values.rs           JSON as Cedar values
//! patterns.rs         the patterns of `[approvals]`
//! matched_rules.rs    what follows from the rules that apply
//! cache.rs            what does not depend on arguments, computed once
//! ```

mod attribute_usage;
mod cache;
mod compile;
mod entities;
mod error;
mod matched_rules;
mod patterns;
mod policy;
mod type_checks;
mod values;

pub use compile::PolicySource;
pub use error::{PolicyError, PolicyProblem};
pub use matched_rules::DefaultDecision;
pub use patterns::PatternRules;
pub use policy::Policy;
