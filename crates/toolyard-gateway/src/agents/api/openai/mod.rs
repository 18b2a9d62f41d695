//! The OpenAI-compatible API: chat completions and responses, answered by runs of agents.

mod answer;
mod answer_stream;
mod completion;
pub(super) mod handlers;
mod parameters;
mod response;
