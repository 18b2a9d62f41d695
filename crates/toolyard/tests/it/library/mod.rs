//! What a program that embeds Toolyard relies on: the builder, servers, runs as streams, its own MCP server.

mod builder;
mod mcp_endpoint;
mod runs;
