//! What happens between a request and its response: progress, log messages, input requests, suspension and cancellation.
//! Also notifies clients of changes.

pub(crate) mod cancellation;
mod change_notifications;
pub(crate) mod elicitations;
pub(crate) mod input_requests;
pub(crate) mod request_channel;
pub(crate) mod request_task;
pub(crate) mod suspended_calls;
