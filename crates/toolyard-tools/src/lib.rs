//! Tools that live in the process: native tools, functions of your own, and skills.
//!
//! Any async function becomes a tool; its schema comes from its types:
//!
//! ```
//! use std::time::{Duration, Instant};
//! use toolyard_core::{CallContext, Tool, ToolCallRequest, ToolError};
//! use toolyard_tools::function;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Convert {
//!     /// How much, in euros
//!     amount: f64,
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let tool = function("convert", "Convert euros to dollars", |c: Convert| async move { c.amount * 2.0 }).read_only();
//!
//! let request = ToolCallRequest::new("convert", serde_json::json!({"amount": 21}));
//! let context = CallContext::until(Instant::now() + Duration::from_secs(1));
//! assert_eq!(tool.call(&request, &context).await?.to_text(), "42");
//! # Ok::<(), ToolError>(()) }).unwrap();
//! ```
//!
//! | room | what is in it |
//! |---|---|
//! | [`function()`] | one of your own functions as a tool |
//! | [`native`] | `calculate`, `get_time`, `search_web`, `get_conversation_history`, `read_result` |
//! | [`skill`] | `SKILL.md` folders: instructions read when they are used, and small programs |
//!
//! Nothing here looks at the home folder, the environment or the terminal: folders, keys and variables come in as
//! plain data. Programs of skills need a Unix system.

mod arguments;
mod function;
pub mod native;
mod secret;
pub mod skill;
mod text;

pub use function::{FunctionTool, IntoOutput, Json, function};
pub use secret::Secret;
