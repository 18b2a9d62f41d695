//! Language models behind one small trait: a stream of text, reasoning, tool calls and usage.
//!
//! | words | file |
//! |---|---|
//! | [`Model`], [`ModelStream`], [`reply()`] | `model.rs` |
//! | [`ModelRequest`], [`ModelMessage`], [`ToolDefinition`], [`WantedSchema`] | `request.rs` |
//! | [`ModelEvent`], [`ModelReply`], [`Usage`], [`FinishReason`] | `reply.rs` |
//! | [`ModelError`] | `error.rs` |
//! | [`OpenAiModel`]: anything that speaks as OpenAI's does (llama.cpp, vLLM, Ollama, LM Studio, DashScope, …) | `openai.rs` |
//! | `GenAiModel`: Anthropic, OpenAI Responses, Gemini, DeepSeek and others, with the feature `genai` | `genai.rs` |
//! | [`tool_call_tag`]: calls that a model wrote into its text, whole or as it comes | `tool_call_tag.rs` |
//! | [`probe()`]: in which way a model calls tools best | `probe.rs` |
//! | [`ModelSynthesizer`]: what the hub asks of a model | `synthesizer.rs` |
//! | [`ScriptedModel`], [`Recorder`], [`Cassette`]: models for tests | `scripted.rs`, `cassette.rs` |
//!
//! A model that says what it was told to, and the calls in what it says:
//!
//! ```
//! use toolyard_model::{ModelMessage, ModelRequest, ScriptedModel, ToolCalling, reply, tool_call_tag::read_calls};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), toolyard_model::ModelError> {
//! let model = ScriptedModel::saying(
//!     ToolCalling::Text,
//!     ["Let me look.\n<tool_call>{\"name\": \"get_time\", \"arguments\": {\"timezone\": \"Asia/Tokyo\"}}</tool_call>"],
//! );
//! let request =
//!     ModelRequest { messages: vec![ModelMessage::user("What time is it in Tokyo?")], ..ModelRequest::default() };
//! let said = reply(&model, &request, |event| println!("{event:?}")).await?;
//! let found = read_calls(&said.text, &|name| name == "get_time");
//! assert_eq!(found.rest, "Let me look.");
//! assert_eq!(found.calls[0].arguments["timezone"], "Asia/Tokyo");
//! # Ok(())
//! # }
//! ```
//!
//! With a real one, only the first line is another:
//!
//! ```
//! use toolyard_model::{OpenAiConfig, OpenAiModel};
//!
//! let model = OpenAiModel::new(OpenAiConfig::new("local", "http://127.0.0.1:8080/v1", "qwen2.5"))?;
//! # Ok::<(), toolyard_model::ModelError>(())
//! ```

mod cassette;
mod error;
#[cfg(feature = "genai")]
mod genai;
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
#[cfg(feature = "genai")]
pub use genai::{GenAiConfig, GenAiModel};
pub use model::{Model, ModelStream, ToolCalling, reply};
pub use openai::{ApiKey, OpenAiConfig, OpenAiModel, Prices, StreamLimits};
pub use probe::{ProbeOptions, ProbeOutcome, ProbeReport, probe};
pub use reply::{FinishReason, ModelEvent, ModelReply, NativeCall, ToolCallDelta, Usage};
pub use request::{ModelMessage, ModelRequest, Role, ToolDefinition, WantedSchema};
pub use scripted::{Script, ScriptedModel};
pub use synthesizer::ModelSynthesizer;
