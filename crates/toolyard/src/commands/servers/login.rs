//! `toolyard servers login` and `logout`: OAuth tokens of HTTP servers.

use std::sync::Arc;

use serde_json::json;
use toolyard_core::BoxFuture;
use toolyard_mcp_client::oauth::{Browser, BrowserError, BrowserUrl, OAuthError};

use super::find_config;
use crate::{
    config::{CliContext, ServerCredentials},
    error::CliError,
    terminal::{Output, browser::open_browser, progress::with_progress},
};

/// Signs in to a server, with the user's consent in the browser.
pub(super) async fn login(
    name: &str,
    scopes: &[String],
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let config = find_config(name, context)?;
    let authorizer = ServerCredentials::new(context).oauth(config).ok_or_else(|| {
        CliError::usage(format!("`{name}` is a stdio server, which has no OAuth sign-in"))
            .with_hint("pass credentials in its environment: `env` in toolyard.toml")
    })?;
    let authorizer = authorizer.map_err(|error| oauth_error(&error))?.with_browser(Arc::new(DesktopBrowser));
    with_progress("your consent in the browser", authorizer.login(scopes))
        .await?
        .map_err(|error| oauth_error(&error))?;
    let state = authorizer.state().await.map_err(|error| oauth_error(&error))?;
    let (issuer, scopes) = state.map(|state| (state.issuer, state.scopes)).unwrap_or_default();
    let data = json!({"server": name, "issuer": issuer, "scopes": scopes});
    output.report(&data, &format!("signed in to {name} at {issuer}"));
    Ok(())
}

pub(super) fn logout(name: &str, context: &CliContext, output: &Output) -> Result<(), CliError> {
    find_config(name, context)?;
    let tokens = ServerCredentials::new(context).token_store().map_err(|error| oauth_error(&error))?;
    let deleted = tokens.remove(&name.into()).map_err(|error| oauth_error(&error.into()))?;
    output.message(&if deleted {
        format!("deleted the tokens of {name}")
    } else {
        format!("no tokens are stored for {name}")
    });
    Ok(())
}

fn oauth_error(error: &OAuthError) -> CliError {
    CliError::unreachable(error.to_string())
}

/// The desktop's browser. The URL is also printed, for machines without one.
#[derive(Debug)]
struct DesktopBrowser;

impl Browser for DesktopBrowser {
    fn open<'a>(&'a self, server: &'a str, url: &'a BrowserUrl) -> BoxFuture<'a, Result<(), BrowserError>> {
        Box::pin(async move {
            let is_json = false;
            Output::new(is_json).message(&format!("To sign in to {server}, open: {}", url.as_str()));
            let url = url.as_str().to_owned();
            // The user can open the printed URL, so that a missing browser is no failure.
            tokio::spawn(async move { open_browser(&url).await });
            Ok(())
        })
    }
}
