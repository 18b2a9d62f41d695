//! What is known of a server before it is asked anything: how to reach it and how far it may go.

mod server;

pub use server::{HttpKind, McpServerConfig, ToolFilter, TransportConfig};
