//! How a client sees the tools of a profile: all of them (`full`), or three tools that find and call the others (`search`).
//!
//! ```text
//! hub_service.rs     HubService, which the MCP server serves
//! exposed_tools.rs   the tools of a profile under their exposed names
//! definition.rs      a tool definition under another name
//! surface_choice.rs  the cheaper surface for a client
//! search_tools.rs    definitions of search_tools, describe_tool and call_tool
//! search_calls.rs    their arguments and results
//! ```

mod definition;
mod exposed_tools;
mod hub_service;
mod search_calls;
mod search_tools;
mod surface_choice;

pub use hub_service::HubService;
