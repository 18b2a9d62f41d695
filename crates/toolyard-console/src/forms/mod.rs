//! Forms built from JSON Schemas, and arguments built from submitted forms. Pure.
//!
//! Strings, numbers, booleans and choices get inputs of their own; everything else is entered as JSON. A schema that is no object,
//! or that has too many properties, gets one input for all arguments.

mod agent_form;
mod arguments;
mod field;
mod schema;

pub(crate) use agent_form::{AgentForm, LimitField};
#[cfg(test)]
use field::FieldKind;
pub(crate) use field::{FieldError, FormField};
pub(crate) use schema::SchemaForm;

#[cfg(test)]
mod forms_tests;
