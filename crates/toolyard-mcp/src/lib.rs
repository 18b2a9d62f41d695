//! Everything that speaks the Model Context Protocol, and nothing else does.
//!
//! This room is still empty. Its plan:
//!
//! - `wire/`: the JSON-RPC envelope over raw JSON, framing, hard limits.
//! - `client/`: connections to servers (stdio, Streamable HTTP, HTTP+SSE) and the manager that starts them when needed.
//! - `server/`: serves any hub to any MCP client, in both protocol eras.
//! - `config/`: `mcp.json` and the formats of the clients people already use.
