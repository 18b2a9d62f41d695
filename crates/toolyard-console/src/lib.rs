//! The web console of a Toolyard gateway: pages for people on top of its HTTP API.
//!
//! The console is an axum router. It reads and changes everything by requests to the [HTTP API](ConsoleConfig::api) in the same
//! process, so that it can do nothing that the API cannot. Pages are rendered completely on the server and work without
//! JavaScript.
//!
//! ```
//! use std::sync::Arc;
//! use toolyard_console::{Console, ConsoleAccess, ConsoleConfig};
//!
//! #[derive(Debug)]
//! struct OneToken;
//!
//! impl ConsoleAccess for OneToken {
//!     fn is_open(&self) -> bool {
//!         false
//!     }
//!     fn accepts_token(&self, presented: &str) -> bool {
//!         presented == "secret" // in constant time, outside of examples
//!     }
//!     fn credential_hash(&self) -> [u8; 32] {
//!         [7; 32]
//!     }
//! }
//!
//! let console = Console::new(ConsoleConfig::new(axum::Router::new(), Arc::new(OneToken), [0; 32]));
//! let link = format!("http://127.0.0.1:7300{}", console.sign_in_path().unwrap());
//! let application = axum::Router::new().merge(console.router());
//! # let _ = (link, application);
//! ```
//!
//! ```text
//! config.rs            ConsoleConfig: the API, who may sign in, and how requests to the API are marked
//! router.rs            Console: the router, one-time sign-in links
//! request_context.rs   reads session, language and theme of each request; layer around all pages
//! security_headers.rs  Content-Security-Policy and the other headers of each response
//! session/             signed session cookies, CSRF tokens, one-time codes, roles
//! api/                 the client of the HTTP API, and the types of its responses
//! form_fields.rs       reads submitted forms and refuses forged ones
//! forms/               forms built from JSON Schemas, and arguments built from submitted forms; pure
//! pages/               one file per page, with its template in templates/
//! svg/                 plans and timelines as SVG; pure
//! text/                the texts of the pages, in English and Chinese
//! page.rs, format.rs   the frame of all pages; numbers, durations and times
//! assets.rs            style sheet and scripts under URLs with a content hash
//! ```

mod api;
mod assets;
mod config;
mod form_fields;
mod format;
mod forms;
mod page;
mod pages;
mod request_context;
mod router;
mod security_headers;
mod session;
mod svg;
mod text;

pub use config::{AuthorizeRequest, ConsoleAccess, ConsoleConfig, OpenAccess};
pub use router::Console;
pub use session::{CodeError, Role};

/// Path that creates one-time codes, for requests with the operator's secret in [`OPERATOR_HEADER`].
pub const SIGN_IN_CODE_PATH: &str = "/console/sign-in-codes";
/// The page that signs in with `?code=`.
pub const SIGN_IN_PATH: &str = "/console/sign-in";
/// The header with the operator's secret.
pub const OPERATOR_HEADER: &str = "x-toolyard-operator";

/// Whether a path is one of the console: the overview at `/`, and everything below `/console`.
pub fn is_console_path(path: &str) -> bool {
    path == "/" || path.strip_prefix("/console").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests;
