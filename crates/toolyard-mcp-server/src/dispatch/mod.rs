//! Turns messages into responses: which revision a request belongs to, its parameters, its method and its outcome.

mod content_call;
pub(crate) mod incoming_request;
pub(crate) mod methods;
pub(crate) mod operation;
pub(crate) mod outcome;
pub(crate) mod params;
pub(crate) mod revision;
pub(crate) mod served_endpoint;
mod server_info;
mod sign_in;
mod tool_call;
mod tool_list;
mod unknown_method;
