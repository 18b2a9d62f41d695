//! The HTTP client for model servers.

use std::time::Duration;

use reqwest::{Client, redirect::Policy};

use crate::{ModelError, ModelErrorKind};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// A client that follows no redirects, so that keys reach the configured server only.
pub(crate) fn build_http_client(model: &str) -> Result<Client, ModelError> {
    Client::builder()
        .redirect(Policy::none())
        .referer(false)
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .build()
        .map_err(|_| {
            let message = "cannot be used: TLS is not available on this machine";
            ModelError::new(model, ModelErrorKind::Rejected, message)
        })
}
