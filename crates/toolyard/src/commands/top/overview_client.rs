//! [`OverviewClient`]: asks a running gateway for its overview.

use std::time::Duration;

use reqwest::{Client, StatusCode, Url};
use serde_json::Value;

use super::overview::Overview;
use crate::{
    commands::{
        connect::entry::TOKEN_VARIABLE,
        local_gateway::{http_client, origin, usual_gateways},
        serve::stored_token,
    },
    config::CliContext,
    error::CliError,
};

const TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than any overview.
const MAX_BODY_BYTES: usize = 8 << 20;

#[derive(Debug)]
pub(super) struct OverviewClient {
    client: Client,
    address: String,
    url: Url,
    token: Option<String>,
}

impl OverviewClient {
    /// The gateway at `url`, or a running one of this user.
    pub(super) fn find(url: Option<&str>, context: &CliContext) -> Result<Self, CliError> {
        match url {
            Some(url) => Self::new(url, std::env::var(TOKEN_VARIABLE).ok()),
            None => {
                // Of several, the first: its address is shown.
                let gateway = usual_gateways(context).into_iter().next().ok_or_else(|| {
                    CliError::unreachable("no gateway of yours runs on this machine over HTTP")
                        .with_hint("start one: toolyard serve --http; or name one: toolyard top --url URL")
                })?;
                Self::new(&gateway.mcp_url, if gateway.needs_token { stored_token(context) } else { None })
            }
        }
    }

    fn new(url: &str, token: Option<String>) -> Result<Self, CliError> {
        let address = origin(url);
        let invalid = |reason: &dyn std::fmt::Display| {
            CliError::usage(format!("`{url}` is not the address of a gateway: {reason}"))
                .with_hint("an address is such as http://127.0.0.1:7300")
        };
        let overview = Url::parse(&format!("{address}/api/v1/overview")).map_err(|error| invalid(&error))?;
        if !matches!(overview.scheme(), "http" | "https") {
            return Err(invalid(&"it is neither http nor https"));
        }
        let client = http_client(&overview, TIMEOUT)?;
        Ok(Self { client, address: address.to_owned(), url: overview, token })
    }

    /// The address without a path.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The overview as it is shown.
    pub(super) async fn overview(&self) -> Result<Overview, CliError> {
        serde_json::from_value(self.overview_json().await?).map_err(|error| {
            CliError::failed(format!("{} sent an overview that cannot be read: {error}", self.address))
                .with_hint("the gateway may be of another version")
        })
    }

    /// The overview as the gateway sent it.
    pub(super) async fn overview_json(&self) -> Result<Value, CliError> {
        let failed = |error: &dyn std::fmt::Display| {
            CliError::unreachable(format!("{} does not answer: {error}", self.address))
        };
        let mut request = self.client.get(self.url.clone());
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let mut response = request.send().await.map_err(|error| failed(&error.without_url()))?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED => {
                return Err(CliError::denied(format!("{} refused the token", self.address))
                    .with_hint(format!("set {TOKEN_VARIABLE} to the token of the gateway")));
            }
            StatusCode::NOT_FOUND => {
                return Err(CliError::failed(format!("{} has no overview", self.address))
                    .with_hint("the gateway may be of an older version"));
            }
            status => return Err(failed(&format!("status {status}"))),
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error.without_url()))? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_BODY_BYTES {
                return Err(failed(&"the overview is too long"));
            }
        }
        serde_json::from_slice(&body).map_err(|error| failed(&error))
    }
}
