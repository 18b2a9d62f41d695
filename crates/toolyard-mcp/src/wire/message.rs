//! One JSON-RPC message: what is needed of its envelope, its payload untouched.

use toolyard_core::RawJson;

use super::{RequestId, WireError, WireLimits};

/// A message from the other side.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// An answer to a request of ours.
    Response {
        /// The number we gave the request; none when the other side could not read it, or made one up.
        id: Option<u64>,
        /// The result as it came, or the error.
        outcome: Result<RawJson, RpcError>,
    },
    /// The other side asks something.
    Request {
        /// To be given back.
        id: RequestId,
        /// What is asked.
        method: String,
        /// The parameters as they came.
        params: Option<RawJson>,
    },
    /// The other side tells something.
    Notification {
        /// What happened.
        method: String,
        /// The parameters as they came.
        params: Option<RawJson>,
    },
}

/// A JSON-RPC error as the other side sent it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct RpcError {
    /// Such as -32601.
    pub code: i64,
    /// What it says.
    pub message: String,
    /// Anything else it says.
    pub data: Option<RawJson>,
}

impl Message {
    /// Reads all messages of one text: one, or several of a batch (which only the revision 2025-03-26 knew).
    pub fn read(text: String, limits: &WireLimits) -> Result<Vec<Self>, WireError> {
        let _ = (text, limits);
        Err(WireError::NotJsonRpc("not written yet"))
    }
}
