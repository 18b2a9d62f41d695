//! Whole flows against a test authorization server and a test MCP server.

mod attacks;
mod caller_tokens;
mod flow;
mod impersonated_issuers;
mod per_caller;
mod test_servers;
