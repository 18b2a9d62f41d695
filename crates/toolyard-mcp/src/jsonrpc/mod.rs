//! JSON-RPC 2.0 messages: [`Message::read`] decodes them, the functions of this module encode them.

mod encode;
mod message;
mod rpc_error;

pub use encode::{error_response, notification, request, request_with_id, response};
pub use message::{Message, RequestId, ResponseId};
pub use rpc_error::RpcError;
