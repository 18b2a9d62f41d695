//! Results and notifications of MCP methods, decoded from raw JSON.

mod call_result;
mod content;
mod handshake;
mod list_page;
mod progress;

pub use call_result::{CallResult, InputRequired, ResultKind};
pub use handshake::{DiscoverResult, InitializeResult, ServerCapabilities, ServerDescription};
pub use list_page::ListPage;
pub use progress::Progress;
