//! What servers behind a door are told of whom they can ask: whoever calls, and nobody else.

use serde_json::json;
use toolyard_core::{BoxFuture, RawJson};

use crate::{
    client::{InputHandler, InputRequest},
    wire::RpcError,
};

/// Announces to servers everything that clients of a door may be able to answer, and answers nothing by itself: what a server
/// asks during a call goes to whoever made that call.
#[derive(Debug, Clone, Copy, Default)]
pub struct AskTheCaller;

impl InputHandler for AskTheCaller {
    fn capabilities(&self) -> RawJson {
        json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}).into()
    }

    fn answer<'a>(&'a self, request: InputRequest<'a>) -> BoxFuture<'a, Result<RawJson, RpcError>> {
        let message =
            format!("{} can be asked only during a call whose client can answer it", request.method);
        Box::pin(std::future::ready(Err(RpcError { code: -32601, message, data: None })))
    }
}
