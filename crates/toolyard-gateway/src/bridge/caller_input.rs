//! [`ForwardInputToCaller`]: lets servers request input from the clients of a gateway.

use serde_json::json;
use toolyard_core::{BoxFuture, RawJson};
use toolyard_mcp::{RpcError, error_code};
use toolyard_mcp_client::{InputHandler, InputRequest};

use super::rpc_error;

/// Announces to servers every kind of input that a client may be able to provide. Input requests during a call are forwarded
/// to the caller; any other input request is rejected.
#[derive(Debug, Clone, Copy, Default)]
pub struct ForwardInputToCaller;

impl InputHandler for ForwardInputToCaller {
    fn capabilities(&self) -> RawJson {
        json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}).into()
    }

    fn answer<'a>(&'a self, request: InputRequest<'a>) -> BoxFuture<'a, Result<RawJson, RpcError>> {
        let message = format!("{} is only possible during a call whose client supports it", request.method);
        Box::pin(std::future::ready(Err(rpc_error(error_code::METHOD_NOT_FOUND, message))))
    }
}
