//! What a door shows of the hub: under which names, in which form, and to whom.
//!
//! ```text
//! profile.rs    which tools, in which form, within which limits
//! names.rs      a name for each: short, plain, nobody else's, the same tomorrow
//! definition.rs what its server sent, under that name
//! offer.rs      everything a profile offers at one moment
//! auto.rs       all tools, or three that find them: whichever costs less
//! finding.rs    these three: search_tools, describe_tool, call_tool
//! service.rs    [`HubService`], which the MCP server serves
//! ```

mod auto;
mod definition;
mod finding;
mod names;
mod offer;
mod profile;
mod service;
mod words;

pub use auto::{FEW_TOKENS, FEW_TOOLS, Weight, automatic};
pub use names::{
    CALL_TOOL, DESCRIBE_TOOL, LONGEST_NAME, RESERVED, SEARCH_TOOLS, Wanted, is_plain, offered_names,
};
pub use profile::{CLIENT_BUDGET, CLIENT_PATIENCE, Profile, Surface};
pub use service::HubService;
