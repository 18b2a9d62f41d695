//! `toolyard servers login` and `logout`: tokens for servers that want them.

use std::{process::Stdio, sync::Arc};

use serde_json::json;
use toolyard_core::BoxFuture;
use toolyard_mcp::{
    client::oauth::{Browser, BrowserUrl, OAuthError},
    config::McpServerConfig,
};

use crate::{
    failure::{Code, Failure},
    folders::Workplace,
    machine::Machine,
    output::Output,
    progress::waiting,
};

/// Signs in to a server with a person's consent in the browser.
pub(crate) async fn login(name: &str, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let config = find(name, workplace)?;
    let sign_in = Machine::new(workplace).sign_in(config).ok_or_else(|| {
        Failure::new(Code::BadUse, format!("`{name}` is a program; there is nothing to sign in to"))
            .with_hint("give it what it needs in its environment")
    })?;
    let sign_in = sign_in.map_err(|error| failed(&error))?.with_browser(Arc::new(Desktop));
    waiting("your consent in the browser", sign_in.login(&[])).await?.map_err(|error| failed(&error))?;
    let state = sign_in.state().await.map_err(|error| failed(&error))?;
    let (issuer, scopes) = state.map(|state| (state.issuer, state.scopes)).unwrap_or_default();
    if output.wants_json() {
        output.json(&json!({"server": name, "issuer": issuer, "scopes": scopes}));
    } else {
        output.talk(&format!("signed in to {name} at {issuer}"));
    }
    Ok(())
}

/// Forgets the tokens for a server.
pub(crate) fn logout(name: &str, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    find(name, workplace)?;
    let tokens = Machine::new(workplace).tokens().map_err(|error| failed(&error))?;
    let forgotten = tokens.forget(name).map_err(|error| failed(&error.into()))?;
    output.talk(&if forgotten {
        format!("forgot the tokens for {name}")
    } else {
        format!("there were no tokens for {name}")
    });
    Ok(())
}

fn find<'a>(name: &str, workplace: &'a Workplace) -> Result<&'a McpServerConfig, Failure> {
    workplace.servers.iter().find(|server| server.id.as_str() == name).ok_or_else(|| {
        Failure::new(Code::BadUse, format!("server `{name}` does not exist"))
            .with_hint("list what there is: toolyard servers list")
    })
}

fn failed(error: &OAuthError) -> Failure {
    Failure::new(Code::Unreachable, error.to_string())
}

/// The browser of this desktop; where there is none, the person opens the address.
#[derive(Debug)]
struct Desktop;

impl Browser for Desktop {
    fn open<'a>(&'a self, server: &'a str, url: &'a BrowserUrl) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            Output::new(false).talk(&format!("To sign in to {server}, open: {}", url.as_str()));
            let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
            // One argument, no shell: the address comes from a server. A desktop without such a program is no failure.
            let mut command = tokio::process::Command::new(program);
            command.arg(url.as_str()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            if let Ok(mut child) = command.spawn() {
                tokio::spawn(async move { child.wait().await });
            }
            Ok(())
        })
    }
}
