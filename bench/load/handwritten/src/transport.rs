//! The modules of `toolyard-mcp-client` around its HTTP/1.1 client, under the same paths as there.

#[path = "../../../../crates/toolyard-mcp-client/src/transport/error.rs"]
#[expect(dead_code, reason = "the client constructs two of the errors")]
pub(crate) mod error;
pub(crate) mod http;
