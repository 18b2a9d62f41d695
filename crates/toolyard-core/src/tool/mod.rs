//! Tools, calls of tools, and what they return.
//!
//! - What a tool is: [`definition`], [`schema`], [`hints`], [`capability`], [`source`], [`scope`], [`name_claim`], [`pattern`]
//! - Calling one: [`call`], [`caller`], [`identity`], [`presented_token`], [`data_owner`], [`audit_name`], [`extendable_deadline`], [`service`]
//! - What a call returns: [`output`], [`result_ref`], [`error`], [`error_parts`], [`sign_in`]

pub(crate) mod audit_name;
pub(crate) mod call;
pub(crate) mod caller;
pub(crate) mod capability;
pub(crate) mod data_owner;
pub(crate) mod definition;
pub(crate) mod error;
pub(crate) mod error_parts;
pub(crate) mod extendable_deadline;
pub(crate) mod hints;
pub(crate) mod identity;
pub(crate) mod name_claim;
pub(crate) mod output;
pub(crate) mod pattern;
pub(crate) mod presented_token;
pub(crate) mod result_ref;
pub(crate) mod schema;
pub(crate) mod scope;
pub(crate) mod service;
pub(crate) mod sign_in;
pub(crate) mod source;
pub(crate) mod spec_check;
