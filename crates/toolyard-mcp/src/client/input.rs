//! What a server may ask back while it works: questions to a person, a model, or about folders.

use toolyard_core::{BoxFuture, RawJson, SourceId};

use crate::wire::RpcError;

/// JSON-RPC's code for a method that is not there.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;

/// One question of a server: `elicitation/create`, `sampling/createMessage` or `roots/list`.
#[derive(Debug)]
pub struct InputRequest<'a> {
    /// Who asks.
    pub server: &'a SourceId,
    /// What is asked.
    pub method: &'a str,
    /// The question as it came.
    pub params: Option<&'a RawJson>,
}

/// Answers what servers ask back, in both eras. Nothing is answered behind anyone's back: without a handler, a server is
/// told that nobody is there to ask.
pub trait InputHandler: Send + Sync + std::fmt::Debug {
    /// What can be asked, as the JSON object of client capabilities: `{"elicitation":{"form":{}}}`.
    fn capabilities(&self) -> RawJson;

    /// The result to send back, as the method's JSON, or why there is none.
    fn answer<'a>(&'a self, request: InputRequest<'a>) -> BoxFuture<'a, Result<RawJson, RpcError>>;
}

/// Nobody is there to ask.
#[derive(Debug, Clone, Copy, Default)]
pub struct NobodyToAsk;

impl InputHandler for NobodyToAsk {
    fn capabilities(&self) -> RawJson {
        RawJson::empty_object()
    }

    fn answer<'a>(&'a self, request: InputRequest<'a>) -> BoxFuture<'a, Result<RawJson, RpcError>> {
        Box::pin(async move {
            let message = format!("{} is not offered by this client", request.method);
            Err(RpcError { code: METHOD_NOT_FOUND, message, data: None })
        })
    }
}
