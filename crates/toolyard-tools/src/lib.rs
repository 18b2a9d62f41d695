//! Tools that run in the process: function tools, native tools and skills.
//!
//! Any async function becomes a tool; its schema is derived from its argument type:
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
//! | item | contents |
//! |---|---|
//! | [`function()`] | a tool made from a function |
//! | [`native`] | the tools `calculate`, `get_time`, `search_web`, `get_conversation_history` and `read_result` |
//! | [`skill`] | `SKILL.md` folders: instructions that are read on demand, and programs |
//!
//! The features `native` and `skills`, both on by default, can be left out.
//!
//! This crate reads neither the home folder nor the environment: paths, keys and variables are passed in. Programs of
//! skills require Unix.

mod arguments;
mod function;
#[cfg(feature = "native")]
pub mod native;
#[cfg(feature = "skills")]
pub mod skill;
mod text;

pub use function::{
    FunctionFuture, FunctionTool, Image, IntoOutput, Json, ToolContext, ToolFunction, function,
};
