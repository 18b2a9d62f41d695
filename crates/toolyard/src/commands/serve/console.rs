//! The web console of a gateway on HTTP.

use std::sync::Arc;

use http::Extensions;
use toolyard_console::{Console, ConsoleAccess, ConsoleConfig, Role, is_console_path};
use toolyard_core::SecretText;
use toolyard_gateway::{AuthenticatedCaller, HttpApi, OperatorAccess, StartsNoTrace};
use toolyard_mcp_server::SharedAccessRules;

use super::secrets::{Secrets, random_secret};
use crate::error::CliError;

/// The console, and the secret by which `toolyard open` gets a link to it.
pub(super) struct ServedConsole {
    pub(super) console: Console,
    pub(super) operator_secret: SecretText,
}

/// A new secret by which `toolyard open` gets a link to the console.
pub(super) fn operator_secret() -> Result<SecretText, CliError> {
    let failed = |error| CliError::failed(format!("failed to generate the console's secret: {error}"));
    Ok(SecretText::new(random_secret().map_err(failed)?.to_string()))
}

/// Adds the console to the API that it shows.
pub(super) fn attach(
    api: HttpApi,
    access: &SharedAccessRules,
    secrets: &Secrets,
    operator_secret: SecretText,
) -> (HttpApi, ServedConsole) {
    let callers = access.clone();
    let config = ConsoleConfig {
        authorize: Arc::new(move |extensions, role| authorize(&callers, extensions, role)),
        operator_secret: Some(operator_secret.expose().to_owned()),
        ..ConsoleConfig::new(api.router(), Arc::new(GatewayAccess(access.clone())), secrets.console_key())
    };
    let console = Console::new(config);
    let api = api.with_pages(console.router(), is_console_path);
    (api, ServedConsole { console, operator_secret })
}

/// Requests of the console are those of clients with the token, so that they share conversations.
fn authorize(access: &SharedAccessRules, extensions: &mut Extensions, role: Role) {
    extensions.insert(AuthenticatedCaller(access.local_identity()));
    // Open pages ask again and again.
    extensions.insert(StartsNoTrace);
    if role == Role::Operator {
        extensions.insert(OperatorAccess);
    }
}

#[derive(Debug)]
struct GatewayAccess(SharedAccessRules);

impl ConsoleAccess for GatewayAccess {
    fn is_open(&self) -> bool {
        self.0.is_open()
    }

    fn accepts_token(&self, presented: &str) -> bool {
        self.0.accepts_token(presented)
    }

    fn credential_hash(&self) -> [u8; 32] {
        self.0.local_identity().owner_hash()
    }
}
