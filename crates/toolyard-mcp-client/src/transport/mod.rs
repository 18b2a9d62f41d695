//! Transports: how messages reach a server and how its messages come back.
//!
//! - [`message`]: the [`Transport`](message::Transport) trait and the messages that it sends.
//! - [`error`]: why a message was not delivered. `stderr_summary`: the line of stderr that it quotes.
//! - [`requests`]: requests that await a response, and the callers that server messages belong to.
//! - [`stdio`]: a child process. [`http`]: Streamable HTTP. [`sse`]: HTTP+SSE of revision 2024-11-05.

pub(crate) mod error;
pub(crate) mod http;
pub(crate) mod message;
pub(crate) mod requests;
pub(crate) mod sse;
pub(crate) mod stderr_summary;
pub(crate) mod stdio;
