//! Tests of the router with a fake API.

mod cluster;
mod fixture;
mod pages;
mod runs;
mod sign_in;
