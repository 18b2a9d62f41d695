//! How a client sees the tools of a profile: all of them (`full`), or three tools that find and call the others (`search`).
//!
//! ```text
//! hub_service.rs                 HubService, which the MCP server serves
//! main_tools.rs                  the tools of the main endpoint for the HTTP API
//! exposed_tools.rs               the tools of a profile under the names that clients see
//! sorted_tools.rs                these tools by name, cheap to change
//! permitted_tools.rs             what of them a caller may call, if a policy decides that
//! name_errors.rs                 errors for unknown and ambiguous names
//! server_instructions.rs         what trusted servers say about the use of their tools
//! definition.rs                  the definition of a tool under its exposed name
//! raw_result.rs                  removes unsafe characters from results and stores their unchanged form
//! surface_choice.rs              the cheaper surface for a client
//! search_surface_definitions.rs  definitions of search_tools, describe_tool and call_tool
//! search_surface_calls.rs        their arguments and results
//! test_tools.rs                  tools for the tests
//! ```

mod definition;
mod exposed_tools;
mod hub_service;
mod main_tools;
mod name_errors;
mod permitted_tools;
mod raw_result;
mod search_surface_calls;
mod search_surface_definitions;
mod server_instructions;
mod sorted_tools;
mod surface_choice;
#[cfg(test)]
mod test_tools;

pub(crate) use main_tools::hub_service;
pub(crate) use permitted_tools::VisibleTools;
pub use {definition::tool_definition, hub_service::HubService, main_tools::MainTools};
