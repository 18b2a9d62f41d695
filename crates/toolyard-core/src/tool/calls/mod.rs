//! Calling a tool: the request, who makes it, until when, and the service that receives it.
//!
//! - The call: [`call`], [`extendable_deadline`], [`service`]
//! - Who makes it: [`caller`], [`identity`], [`presented_token`], [`data_owner`], [`audit_name`]

pub(crate) mod audit_name;
pub(crate) mod call;
pub(crate) mod caller;
pub(crate) mod data_owner;
pub(crate) mod extendable_deadline;
pub(crate) mod identity;
pub(crate) mod presented_token;
pub(crate) mod service;
