//! Approved tool definitions of servers, cached between processes.
//!
//! - `server_cache`: stores tool lists and pins, and approves definitions.
//! - `record_changes`: what other processes changed in the store.
//! - `tool_approvals`: which tools of a server may be called.
//! - `pinned_source`: what is pinned: an MCP server, or another source of tools.
//! - `memory_store`: a store that lives as long as the process.

mod memory_store;
mod pinned_source;
mod record_changes;
mod server_cache;
mod tool_approvals;

pub use memory_store::MemoryServerStore;
pub use pinned_source::PinnedSource;
pub(crate) use record_changes::list_hash;
pub use server_cache::{CacheError, NameUser, NameUsers, ServerCache, ServerPins};
pub(crate) use server_cache::{CachedServer, definition_hashes};
pub use tool_approvals::{ApprovedTool, QuarantinedTool, RejectedTool, ToolApprovals};
