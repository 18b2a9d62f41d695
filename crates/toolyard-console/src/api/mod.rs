//! The client of the HTTP API and the shapes of its answers.
//!
//! View types are tolerant: absent fields have defaults, unknown fields are ignored, so that a page never fails because the API
//! has learned something new.

mod client;
mod cluster_views;
mod failure;
mod run_views;
mod views;

pub(crate) use client::ApiClient;
pub(crate) use cluster_views::*;
pub(crate) use failure::ApiFailure;
pub(crate) use run_views::*;
pub(crate) use views::*;
