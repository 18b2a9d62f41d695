//! The messages of a call as JSON: [`request`], then [`message`] with [`output`], [`error`] and [`input`].

pub(super) mod error;
mod field;
pub(super) mod input;
pub(super) mod message;
pub(super) mod output;
pub(super) mod request;
