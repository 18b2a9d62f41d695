//! Language models behind one small trait: a stream of text, reasoning, tool calls and usage.
//!
//! | words | file |
//! |---|---|
//! | [`Model`], [`ModelStream`] | `model.rs` |
//! | [`ModelRequest`], [`ModelMessage`], [`ToolDefinition`], [`WantedSchema`] | `request.rs` |
//! | [`ModelEvent`], [`ModelReply`], [`Usage`], [`FinishReason`] | `reply.rs` |
//! | [`ModelError`] | `error.rs` |
//! | [`tool_call_tag::read_calls`]: calls that a model wrote into its text | `tool_call_tag.rs` |
//! | [`ScriptedModel`]: a model that says what it was told to | `scripted.rs` |

mod cassette;
mod error;
mod model;
pub mod openai;
mod probe;
mod reply;
mod request;
mod scripted;
mod synthesizer;
pub mod tool_call_tag;

pub use cassette::{Cassette, CassetteError, Recorder};
pub use error::{ModelError, ModelErrorKind};
pub use model::{Model, ModelStream, ToolCalling, reply};
pub use openai::{ApiKey, OpenAiConfig, OpenAiModel, Prices, StreamLimits};
pub use probe::{ProbeOptions, ProbeOutcome, ProbeReport, probe};
pub use reply::{FinishReason, ModelEvent, ModelReply, NativeCall, ToolCallDelta, Usage};
pub use request::{ModelMessage, ModelRequest, Role, ToolDefinition, WantedSchema};
pub use scripted::{Script, ScriptedModel};
pub use synthesizer::ModelSynthesizer;
