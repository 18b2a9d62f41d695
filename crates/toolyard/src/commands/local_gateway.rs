//! [`LocalGateway`]: a running gateway of this operator on this machine, and the HTTP client for its secrets.

use std::time::Duration;

use reqwest::{Client, Url, redirect::Policy};
use toolyard_core::SecretText;

use crate::{
    config::{
        CliContext,
        running_hubs::{RunningHub, running_hubs},
    },
    error::CliError,
};

/// A gateway on this machine that serves HTTP.
#[derive(Debug)]
pub(super) struct LocalGateway {
    /// The URL of its main endpoint.
    pub(super) mcp_url: String,
    /// Whether clients need the token.
    pub(super) needs_token: bool,
    /// Proves that a command is run by the gateway's user; none if the gateway has no console.
    pub(super) operator_secret: Option<SecretText>,
}

impl LocalGateway {
    /// The gateway of a hub, if it serves HTTP.
    fn of_hub(hub: RunningHub) -> Option<Self> {
        Some(Self { mcp_url: hub.url?, needs_token: hub.needs_token, operator_secret: hub.operator_secret })
    }

    /// The URL without a path.
    pub(super) fn origin(&self) -> &str {
        origin(&self.mcp_url)
    }
}

/// The gateways that run now with the settings and the project of this invocation, so that they have the same tools.
pub(super) fn gateways_of_project(context: &CliContext) -> Vec<LocalGateway> {
    let hubs = running_hubs(context).into_iter().filter(|hub| hub.has_settings_of(context));
    hubs.filter_map(LocalGateway::of_hub).collect()
}

/// All gateways of this operator that run now, such as one that runs as a service.
pub(super) fn gateways_of_operator(context: &CliContext) -> Vec<LocalGateway> {
    let hubs = running_hubs(context).into_iter().filter(|hub| hub.has_operator_of(context));
    hubs.filter_map(LocalGateway::of_hub).collect()
}

/// The gateways that a command without an address means: those of this project, or all if it has none.
pub(super) fn usual_gateways(context: &CliContext) -> Vec<LocalGateway> {
    let of_project = gateways_of_project(context);
    if of_project.is_empty() { gateways_of_operator(context) } else { of_project }
}

/// The address of a gateway, whether or not it is given with the path of its main endpoint.
pub(super) fn origin(url: &str) -> &str {
    url.trim_end_matches('/').trim_end_matches("/mcp").trim_end_matches('/')
}

/// A client for requests with a secret of a gateway. It follows no redirect, so that the secret stays with this address; and a
/// proxy sees no request without TLS.
pub(super) fn http_client(url: &Url, timeout: Duration) -> Result<Client, CliError> {
    let builder = Client::builder().timeout(timeout).redirect(Policy::none()).referer(false);
    let builder = if url.scheme() == "https" { builder } else { builder.no_proxy() };
    builder.build().map_err(|error| CliError::failed(format!("failed to prepare requests: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_gateway_has_no_path() {
        for url in ["http://127.0.0.1:7300", "http://127.0.0.1:7300/", "http://127.0.0.1:7300/mcp/"] {
            assert_eq!(origin(url), "http://127.0.0.1:7300");
        }
    }
}
