//! Serves any [`toolyard_core::ToolService`] over MCP: stdio and Streamable HTTP, both protocol eras on one endpoint.

mod content;

pub use content::{ContentEvent, ContentKind, ContentKinds, ContentRequest, ContentService};
