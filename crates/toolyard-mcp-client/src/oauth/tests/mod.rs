//! Whole flows against a test authorization server and a test MCP server.

mod attacks;
mod caller_tokens;
mod flow;
mod test_servers;
