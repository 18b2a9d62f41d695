//! Content of all servers as one: prompts, resources and skills, and the input requests of servers.
//!
//! ```text
//! server_content.rs  ServerContentBridge: lists and forwards the content of all servers of an endpoint
//! content_index.rs   which server owns which prompt, resource and skill
//! uri_template.rs    matches URIs against resource templates
//! local_skills.rs    LocalSkills: skills of this machine as MCP skills; local_skill.rs reads one
//! ```

mod content_index;
mod local_skill;
mod local_skills;
mod server_content;
mod uri_template;

use toolyard_mcp::RpcError;

pub use local_skills::LocalSkills;
pub use server_content::ServerContentBridge;

/// Longer names and URIs in requests and lists are ignored.
const MAX_URI_BYTES: usize = 8 << 10;

fn rpc_error(code: i64, message: String) -> RpcError {
    RpcError { code, message, data: None }
}

/// Whether a URI is a folder or something in it.
fn is_within(uri: &str, folder: &str) -> bool {
    uri.starts_with(folder) || folder.strip_suffix('/') == Some(uri)
}
