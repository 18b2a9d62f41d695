//! JSON-RPC 2.0 messages: [`Message::read`] decodes them, the functions of this module encode them.

mod encode;
mod message;
mod rpc_error;

pub use encode::{error_response, notification, request, response};
pub use message::{Message, RequestId};
pub use rpc_error::RpcError;
