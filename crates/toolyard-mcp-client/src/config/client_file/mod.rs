//! Parses the server files of MCP clients, field by field.
//!
//! - `document`: JSON with comments or TOML as plain data.
//! - `env_file`: environment files that entries refer to.
//! - `server_entry`: the fields of one server.
//! - `variable_dialect`: how a client writes references to variables.
//! - `parsed_servers`: the servers of a file under valid, unique names.
//! - `mcp_json`: plain `mcp.json` files.

pub(super) mod document;
mod env_file;
pub(super) mod mcp_json;
pub(super) mod parsed_servers;
pub(super) mod server_entry;
pub(super) mod variable_dialect;
