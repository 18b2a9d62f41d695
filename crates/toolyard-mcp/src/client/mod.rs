//! Connections to servers, in both protocol eras, over all transports, and the manager that starts them when needed.
//!
//! A call travels: [`McpTool`] → [`Server`] (starts it if need be, once for everyone) → [`Session`] (one request, its
//! answer, what the server asks back) → [`Exchange`] (who waits for what) → a [`Transport`].

mod beats;
mod calling;
mod common;
mod content;
mod elicitation;
pub mod environment;
pub mod era;
mod error;
mod exchange;
mod guard;
mod handshake;
mod headers;
mod host;
mod http;
mod http1;
mod http_answer;
mod http_caller;
mod http_events;
mod http_plain;
mod http_streams;
mod http_target;
#[cfg(test)]
mod http_test_server;
mod input;
mod last_words;
mod listener;
mod manager;
mod minding;
pub mod oauth;
mod offer;
mod params;
mod process;
mod program;
mod questions;
mod review;
mod server;
mod session;
mod skills;
mod sse;
mod state;
pub mod stdio;
mod subscription;
mod tool;
mod transport;
mod watching;
mod whose;

pub use crate::shelf::{InService, OutOfService, Quarantined, Shelf};
pub use calling::ToolCall;
pub use common::ServerEvent;
pub use content::ContentCall;
pub use elicitation::{Form, FormError, FormField, declined};
pub use error::RequestError;
pub use exchange::{Exchange, Heard, Waiting};
pub use guard::{GuardProgram, guard};
pub use handshake::{ConnectError, ConnectOptions, Link, connect};
pub use host::{Host, Registrar, Surroundings};
pub use http::StreamableHttp;
pub use http_caller::http_client;
pub use http_target::{Authorizer, HttpTarget, SecretHeader};
pub use input::{InputHandler, InputRequest, NobodyToAsk};
pub use last_words::LastWords;
pub use manager::{Applied, McpManager};
pub use offer::Offer;
pub use server::Server;
pub use session::{News, Session};
pub use skills::{
    LoadedSkill, MOST_SKILL_BYTES, MOST_SKILL_FILES, SKILLS_EXTENSION, SkillEntry, SkillError, SkillFile,
    SkillListing,
};
pub(crate) use skills::{frontmatter, is_name as is_skill_name};
pub use sse::LegacySse;
pub use state::ServerState;
pub use stdio::{StdioLaunch, StdioTransport};
pub use tool::McpTool;
pub use transport::{Outgoing, Sent, Transport, TransportError};
pub use watching::AskError;
