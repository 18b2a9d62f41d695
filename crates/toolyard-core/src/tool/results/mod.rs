//! What a call returns: [`output`] with [`result_ref`], or [`error`] with [`error_parts`] and [`sign_in`].

pub(crate) mod error;
pub(crate) mod error_parts;
pub(crate) mod output;
pub(crate) mod result_ref;
pub(crate) mod sign_in;
