//! Language models behind one small trait.
//!
//! A [`Model`] answers a [`ModelRequest`] with a stream of [`ModelEvent`]s: text, reasoning, tool calls, usage and the
//! reason why it stopped. [`collect_reply`] gathers the stream into a [`ModelReply`].
//!
//! | module | contents |
//! |---|---|
//! | `model`, `request`, `reply`, `error` | the trait [`Model`] and its types |
//! | `anthropic` | [`AnthropicModel`]: servers with Anthropic's Messages API |
//! | `openai` | [`OpenAiModel`]: any OpenAI-compatible server (llama.cpp, vLLM, Ollama, LM Studio, DashScope, …) |
//! | [`tool_call_parser`] | finds tool calls in the text of models that do not call tools natively |
//! | [`json_text`] | reads the JSON at the start of a text |
//! | `probe` | [`probe()`]: finds the mode in which a model calls tools best |
//! | `synthesizer` | [`ModelSynthesizer`]: merges several tool results for the hub |
//! | `testing` | [`ScriptedModel`]: a model for tests |
//!
//! # Example
//!
//! A scripted model, and the tool call in its text:
//!
//! ```
//! use toolyard_model::{
//!     ModelMessage, ModelRequest, ScriptedModel, ToolCalling, collect_reply, tool_call_parser::parse_tool_calls,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), toolyard_model::ModelError> {
//! let model = ScriptedModel::with_replies(
//!     ToolCalling::Text,
//!     ["Let me look.\n<tool_call>{\"name\": \"get_time\", \"arguments\": {\"timezone\": \"Asia/Tokyo\"}}</tool_call>"],
//! );
//! let request =
//!     ModelRequest { messages: vec![ModelMessage::user("What time is it in Tokyo?")], ..ModelRequest::default() };
//! let reply = collect_reply(&model, &request, |event| println!("{event:?}")).await?;
//! let parsed = parse_tool_calls(&reply.text, &|name| name == "get_time");
//! assert_eq!(parsed.text, "Let me look.");
//! assert_eq!(parsed.calls[0].arguments["timezone"], "Asia/Tokyo");
//! # Ok(())
//! # }
//! ```
//!
//! A model behind an OpenAI-compatible server is used in the same way:
//!
//! ```
//! use toolyard_model::{ModelServerConfig, OpenAiModel};
//!
//! let model = OpenAiModel::new(ModelServerConfig::new("local", "http://127.0.0.1:8080/v1", "qwen2.5"))?;
//! # Ok::<(), toolyard_model::ModelError>(())
//! ```

mod anthropic;
mod error;
pub mod json_text;
mod model;
mod openai;
mod operation;
mod probe;
mod provider;
mod reply;
mod request;
mod synthesizer;
mod testing;
pub mod tool_call_parser;

pub use anthropic::{ANTHROPIC_URL, AnthropicModel};
pub use error::{ModelError, ModelErrorKind};
pub use model::{Model, ModelStream, ToolCalling, collect_reply};
pub use openai::OpenAiModel;
pub use operation::{ModelCallOperation, collect_observed_reply};
pub use probe::{ProbeOptions, ProbeOutcome, ProbeReport, probe};
pub use provider::{ModelServerConfig, Prices, ResponseLimits};
pub use reply::{FinishReason, ModelEvent, ModelReply, ModelToolCall, ToolCallDelta, Usage};
pub use request::{ModelMessage, ModelRequest, ModelTool, ResponseSchema, Role};
pub use synthesizer::ModelSynthesizer;
pub use testing::ScriptedModel;
