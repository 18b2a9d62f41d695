//! Answers input requests that belong to no caller.

use toolyard_core::{BoxFuture, RawJson, SourceId};
use toolyard_mcp::{RpcError, error_code::METHOD_NOT_FOUND};

/// An input request of a server: `elicitation/create`, `sampling/createMessage` or `roots/list`.
#[derive(Debug)]
pub struct InputRequest<'a> {
    /// The server.
    pub server: &'a SourceId,
    /// The method.
    pub method: &'a str,
    /// The parameters as they were sent.
    pub params: Option<&'a RawJson>,
}

/// Answers input requests that belong to no caller, in every revision.
pub trait InputHandler: Send + Sync + std::fmt::Debug {
    /// The client capabilities to announce, as JSON: `{"elicitation":{"form":{}}}`.
    fn capabilities(&self) -> RawJson;

    /// The result of the method, or the error to respond with.
    fn answer<'a>(&'a self, request: InputRequest<'a>) -> BoxFuture<'a, Result<RawJson, RpcError>>;
}

/// Declines all input requests.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoInputHandler;

impl InputHandler for NoInputHandler {
    fn capabilities(&self) -> RawJson {
        RawJson::empty_object()
    }

    fn answer<'a>(&'a self, request: InputRequest<'a>) -> BoxFuture<'a, Result<RawJson, RpcError>> {
        Box::pin(async move { Err(unsupported_method(request.method)) })
    }
}

pub(super) fn unsupported_method(method: &str) -> RpcError {
    let message = format!("this client does not support {method}");
    RpcError { code: METHOD_NOT_FOUND, message, data: None }
}
