//! [`ForwardToCaller`]: what servers behind a gateway can request from clients.

use serde_json::json;
use toolyard_core::{BoxFuture, RawJson};
use toolyard_mcp::{RpcError, error_code};
use toolyard_mcp_client::{InputHandler, InputRequest};

/// Announces to servers everything that a client may be able to answer, and answers nothing itself: input requests during
/// a call are forwarded to the caller.
#[derive(Debug, Clone, Copy, Default)]
pub struct ForwardToCaller;

impl InputHandler for ForwardToCaller {
    fn capabilities(&self) -> RawJson {
        json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}).into()
    }

    fn answer<'a>(&'a self, request: InputRequest<'a>) -> BoxFuture<'a, Result<RawJson, RpcError>> {
        let message = format!("{} is only possible during a call whose client supports it", request.method);
        Box::pin(std::future::ready(Err(RpcError {
            code: error_code::METHOD_NOT_FOUND,
            message,
            data: None,
        })))
    }
}
