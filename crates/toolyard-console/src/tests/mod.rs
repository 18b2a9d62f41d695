//! Tests of the router with a fake API.

mod fixture;
mod pages;
mod runs;
mod sign_in;
