//! What the server knows about a client: its identity, its session id, sealed request state and preferences.

pub(crate) mod client_capabilities;
pub(crate) mod clients;
pub(crate) mod log_level;
pub(crate) mod peer;
pub(crate) mod request_state;
pub(crate) mod sealing;
pub(crate) mod session_id;
