//! Sign-ins of callers at upstream servers: the pages of the gateway for them.
//!
//! A call that needs tokens of its caller begins a sign-in ([`SignIns::begin`]) and gets a link to a page. The person who opens
//! it must prove to be the caller; otherwise somebody could send a link to others and receive their access. Then the person goes
//! to the authorization server of the upstream server and comes back to `/oauth/callback`.
//!
//! ```text
//! pending.rs     the sign-ins in progress, in memory: bounded, short-lived, each step once
//! service.rs     SignIns: begins sign-ins, and tells clients when they are over
//! public_url.rs  where browsers reach this gateway
//! routes.rs      the pages
//! person.rs      who opened a page
//! browser.rs     the cookie that binds all steps to one browser
//! page.rs        HTML and headers
//! ```

mod browser;
mod page;
mod pending;
mod person;
mod public_url;
mod routes;
mod service;

pub use self::{
    pending::SignInRequest,
    public_url::{InvalidPublicUrl, PublicUrl},
    routes::is_sign_in_path,
    service::SignIns,
};

#[cfg(test)]
mod tests;
